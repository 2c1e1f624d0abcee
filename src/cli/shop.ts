import type { Command } from "commander";
import { SdsError } from "../domain/error.ts";
import { DEFAULT_RETRY_DAYS, parseRetryDays } from "../domain/retry-plan.ts";
import { DEFAULT_CREDIT_TITLE, PLANS, parseCreditTitle, parseCurrency, parseDomain, parsePlan, type Shop } from "../domain/shop.ts";
import { parseTriggers, TRIGGER_HANDLES } from "../domain/trigger.ts";
import { isoUtc } from "../lib/time.ts";
import type { Store } from "../store/store.ts";
import { addConnectCommands } from "./connect.ts";
import { example, findShop, JSON_OPTION, withStore } from "./context.ts";
import { printFields, printJson, printTable, tell } from "./print.ts";

interface Options {
  json?: boolean;
  plan?: string;
  currency?: string;
  yes?: boolean;
  retryDays?: string;
  creditTitle?: string;
  triggers?: string;
}

const PLAN_HELP = `one of ${PLANS.join(", ")}`;
/** In the place of a plan: the platform decides. */
const FOLLOW = "platform";

export function addShopCommands(program: Command): void {
  const shop = program.command("shop").description("add, list, change and remove shops").addHelpText("after", example("sds shop add alpha.myshopify.com"));

  shop
    .command("add <domain>")
    .description("add a shop by its platform domain")
    .option("--plan <plan>", PLAN_HELP, "pro")
    .option("--currency <code>", "the shop's currency, ISO 4217", "USD")
    .option(...JSON_OPTION)
    .addHelpText("after", example("sds shop add alpha.myshopify.com --plan free+addon --currency EUR"))
    .action(async (domain: string, options: Options, command: Command) => {
      const wanted = {
        domain: parseDomain(domain),
        plan: parsePlan(options.plan ?? "pro"),
        currency: parseCurrency(options.currency ?? "USD"),
        // What somebody typed is meant; the default is not.
        planFixed: command.getOptionValueSource("plan") === "cli",
      };
      const added = await withStore(command, (store) => store.shops.add(wanted, Date.now()));
      show(added, options);
    });

  shop
    .command("list")
    .description("list all shops")
    .option(...JSON_OPTION)
    .addHelpText("after", example("sds shop list"))
    .action(async (options: Options, command: Command) => {
      const shops = await withStore(command, (store) => store.shops.list());
      if (options.json) printJson(shops.map(shown));
      else if (shops.length === 0) tell("There is no shop yet. Add one with `sds shop add alpha.myshopify.com`.");
      else
        printTable(
          ["DOMAIN", "PLAN", "CURRENCY", "CREATED"],
          shops.map((each) => Object.values(shown(each))),
        );
    });

  shop
    .command("show <domain>")
    .description("show one shop")
    .option(...JSON_OPTION)
    .addHelpText("after", example("sds shop show alpha.myshopify.com"))
    .action(async (domain: string, options: Options, command: Command) => {
      const { found, platform } = await withStore(command, async (store) => {
        const found = await findShop(store, domain);
        return { found, platform: await platformSide(store, found.id) };
      });
      if (options.json) printJson({ ...shown(found), ...(platform !== undefined && { platform }) });
      else printFields({ ...shown(found), ...(platform === undefined ? { platform: "not connected" } : described(platform)) });
    });

  shop
    .command("set <domain>")
    .description("change what is set of a shop")
    .option("--plan <plan>", `${PLAN_HELP}; or ${FOLLOW}, to go by the shop's subscription to the app`)
    .option("--currency <code>", "ISO 4217")
    .option("--retry-days <days>", "days between a declined attempt and the next, like 1,3,5; or none")
    .option("--credit-title <title>", "the discount that is store credit, by its title")
    .option("--triggers <handles>", `workflow triggers: ${TRIGGER_HANDLES.join(",")}; or all or none`)
    .option(...JSON_OPTION)
    .addHelpText("after", example("sds shop set alpha.myshopify.com --plan free", "sds shop set alpha.myshopify.com --triggers all --retry-days 2,4"))
    .action(async (domain: string, options: Options, command: Command) => {
      const { plan, currency, retryDays, creditTitle, triggers } = options;
      const change = {
        ...(plan !== undefined && (plan === FOLLOW ? { planFixed: false } : { plan: parsePlan(plan), planFixed: true })),
        ...(currency !== undefined && { currency: parseCurrency(currency) }),
        ...(retryDays !== undefined && { retryDays: parseRetryDays(retryDays) }),
        ...(creditTitle !== undefined && { creditTitle: parseCreditTitle(creditTitle) }),
        ...(triggers !== undefined && { triggers: parseTriggers(triggers) }),
      };
      if (Object.keys(change).length === 0) {
        throw new SdsError("invalid", "say what to change: --plan, --currency, --retry-days, --credit-title or --triggers");
      }
      const known = parseDomain(domain);
      show(await withStore(command, (store) => store.shops.set(known, change)), options);
    });

  addConnectCommands(shop);

  shop
    .command("remove <domain>")
    .description("remove a shop with its keys and all that is mirrored of it")
    .option("--yes", "really remove it")
    .addHelpText("after", example("sds shop remove alpha.myshopify.com --yes"))
    .action(async (domain: string, options: Options, command: Command) => {
      await withStore(command, async (store) => {
        const { domain: known } = await findShop(store, domain);
        if (options.yes !== true) throw new SdsError("invalid", `this removes ${known} with its keys and all that is mirrored of it: say --yes to do so`);
        await store.shops.remove(known);
      });
      tell(`Removed ${domain}.`);
    });
}

/** How a shop stands with the platform; undefined where that was never touched. */
async function platformSide(store: Store, shopId: number) {
  const [connection, settings, inbox] = await Promise.all([store.connections.find(shopId), store.shops.settings(shopId), store.inbox.count(shopId)]);
  const [full, changes] = await Promise.all([store.syncs.lastComplete(shopId, "full"), store.syncs.lastComplete(shopId, "changes")]);
  const { retryDays, creditTitle, triggers } = settings;
  const untouched = triggers.length === 0 && creditTitle === DEFAULT_CREDIT_TITLE && String(retryDays) === String(DEFAULT_RETRY_DAYS);
  if (connection === undefined && full === undefined && untouched) return undefined;
  return {
    connected: connection !== undefined && connection.trouble === null,
    trouble: connection?.trouble ?? null,
    syncedAt: full === undefined ? null : isoUtc(full.endedAt),
    reconciledAt: changes === undefined ? null : isoUtc(changes.endedAt),
    /** Rows that the last reconciling run changed. */
    repairs: changes?.changed ?? null,
    inbox,
    retryDays,
    creditTitle,
    triggers,
  };
}

function described({ trouble, connected, inbox, retryDays, triggers, ...rest }: NonNullable<Awaited<ReturnType<typeof platformSide>>>): Record<string, string> {
  const texts = Object.fromEntries(Object.entries(rest).map(([name, value]) => [name, String(value ?? "never")]));
  return {
    platform: trouble ?? (connected ? "connected" : "not connected"),
    ...texts,
    inbox: `${inbox.waiting} waiting, ${inbox.failed} failed`,
    retryDays: retryDays.join(",") || "none",
    triggers: triggers.join(",") || "none",
  };
}

function shown({ domain, plan, currency, createdAt }: Shop) {
  return { domain, plan, currency, createdAt: isoUtc(createdAt) };
}

function show(shop: Shop, options: Options): void {
  if (options.json) printJson(shown(shop));
  else printFields(shown(shop));
}

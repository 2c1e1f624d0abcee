import type { Command } from "commander";
import { changeShop, connectionText, type ShopStatus, shopStatus } from "../actions/shop.ts";
import { removeShop } from "../actions/shop-removal.ts";
import { SdsError } from "../domain/error.ts";
import { parseTriggers, TRIGGER_HANDLES } from "../domain/events/trigger.ts";
import { DEFAULT_RETRY_DAYS, parseRetryDays } from "../domain/retry-plan.ts";
import {
  DEFAULT_CREDIT_TITLE,
  PLANS,
  parseCreditTitle,
  parseCurrency,
  parseNewDomain,
  parsePlan,
  type Shop,
} from "../domain/shop.ts";
import { isoUtc } from "../lib/time.ts";
import type { Store } from "../store/port/store.ts";
import { confirm } from "./confirm.ts";
import { addConnectionCommands } from "./connection.ts";
import { findShop, withStore } from "./context.ts";
import { sleep } from "./dependencies.ts";
import { addNoun, example, JSON_OPTION } from "./options.ts";
import { printFields, printJson, printTable, tell, warn } from "./print.ts";

interface Options {
  json?: boolean | undefined;
}

interface AddOptions extends Options {
  plan: string;
  currency: string;
}

interface SetOptions extends Options {
  plan?: string;
  currency?: string;
  retryDays?: string;
  creditTitle?: string;
  triggers?: string;
}

const PLAN_HELP = `one of ${PLANS.join(", ")}`;
/** The value of `--plan` that lets the platform decide. */
const FOLLOW_PLATFORM = "platform";

export function addShopCommands(program: Command): void {
  const shop = addNoun(
    program,
    "shop",
    "add, list, change, connect and remove shops",
    "sds shop add alpha.myshopify.com",
  );

  shop
    .command("add <domain>")
    .description("add a shop by its platform domain")
    .option("--plan <plan>", PLAN_HELP, "pro")
    .option("--currency <code>", "the shop's currency, an ISO 4217 code", "USD")
    .option(...JSON_OPTION)
    .addHelpText("after", example("sds shop add alpha.myshopify.com --plan free+addon --currency EUR"))
    .action(add);

  shop
    .command("list")
    .description("list all shops")
    .option(...JSON_OPTION)
    .addHelpText("after", example("sds shop list"))
    .action(list);

  shop
    .command("show <domain>")
    .description("show a shop, its settings and its connection to the platform")
    .option(...JSON_OPTION)
    .addHelpText("after", example("sds shop show alpha.myshopify.com"))
    .action(show);

  shop
    .command("set <domain>")
    .description("change the settings of a shop")
    .option("--plan <plan>", `${PLAN_HELP}; or ${FOLLOW_PLATFORM}, to follow the shop's subscription to the app`)
    .option("--currency <code>", "the shop's currency, an ISO 4217 code")
    .option(
      "--retry-days <days>",
      "days to wait after each declined billing attempt before the next one, like 1,3,5; or none",
    )
    .option("--credit-title <title>", "the title of the discount that is store credit")
    .option(
      "--triggers <handles>",
      `workflow triggers to switch on, separated by commas: ${TRIGGER_HANDLES.join(", ")}; or all, or none`,
    )
    .option(...JSON_OPTION)
    .addHelpText(
      "after",
      example(
        "sds shop set alpha.myshopify.com --plan free",
        "sds shop set alpha.myshopify.com --triggers all --retry-days 2,4",
      ),
    )
    .action(set);

  addConnectionCommands(shop);

  shop
    .command("remove <domain>")
    .description("remove a shop with its keys, its deliveries and its mirror")
    .option("--yes", "really remove it")
    .addHelpText("after", example("sds shop remove alpha.myshopify.com --yes"))
    .action(remove);
}

async function add(domain: string, { plan, currency, json }: AddOptions, command: Command): Promise<void> {
  const shop = {
    domain: parseNewDomain(domain),
    plan: parsePlan(plan),
    currency: parseCurrency(currency),
    // A plan given with --plan stays. The platform's plan replaces the default.
    planFixed: command.getOptionValueSource("plan") === "cli",
  };
  print(await withStore(command, (store) => store.shops.add(shop, Date.now())), { json });
}

async function list({ json }: Options, command: Command): Promise<void> {
  const shops = (await withStore(command, (store) => store.shops.list())).map(shopEntry);
  if (json) return printJson(shops);
  if (shops.length === 0) return tell("There is no shop yet. Add one with `sds shop add alpha.myshopify.com`.");
  printTable(
    ["DOMAIN", "PLAN", "CURRENCY", "CREATED"],
    shops.map((each) => Object.values(each)),
  );
}

async function show(domain: string, { json }: Options, command: Command): Promise<void> {
  const { shop, status } = await withStore(command, async (store) => {
    const shop = await findShop(store, domain);
    return { shop, status: await shopStatus(store, shop) };
  });
  const isShown = !isPlatformUnused(status);
  const dataRequests = status.dataRequests.map(dataRequestEntry);
  if (json) printJson({ ...shopEntry(shop), ...(isShown && { platform: platformEntry(status), dataRequests }) });
  else printFields({ ...shopEntry(shop), platform: connectionText(status), ...(isShown && platformTexts(status)) });
}

async function set(
  domain: string,
  { plan, currency, retryDays, creditTitle, triggers, json }: SetOptions,
  command: Command,
): Promise<void> {
  const change = {
    ...(plan !== undefined &&
      (plan === FOLLOW_PLATFORM ? { planFixed: false } : { plan: parsePlan(plan), planFixed: true })),
    ...(currency !== undefined && { currency: parseCurrency(currency) }),
    ...(retryDays !== undefined && { retryDays: parseRetryDays(retryDays) }),
    ...(creditTitle !== undefined && { creditTitle: parseCreditTitle(creditTitle) }),
    ...(triggers !== undefined && { triggers: parseTriggers(triggers) }),
  };
  if (Object.keys(change).length === 0) {
    throw new SdsError("invalid", "say what to change: --plan, --currency, --retry-days, --credit-title or --triggers");
  }
  const { shop, warnings } = await withStore(command, async (store) =>
    changeShop(store, { shop: await findShop(store, domain), change, actor: "operator" }),
  );
  print(shop, { json }, change);
  warn(warnings);
}

async function remove(domain: string, { yes = false }: { yes?: boolean }, command: Command): Promise<void> {
  if (!yes) {
    await withStore(command, (store) => checkRemovable(store, domain));
    // Nothing is open meanwhile: an answer can take hours, and nobody could restore a backup.
    await confirm(`this removes ${domain} with its keys, its deliveries and its mirror`, yes);
  }
  await withStore(command, async (store) => {
    await checkRemovable(store, domain);
    await removeShop(store.shops, domain, Date.now(), sleep);
  });
  tell(`Removed ${domain}.`);
}

/** @throws SdsError `not_found`. A shop whose removal was interrupted is found by this command alone. */
async function checkRemovable(store: Store, domain: string): Promise<void> {
  const isBeingRemoved = (await store.shops.removing()).some((each) => each.domain === domain);
  if (!isBeingRemoved) await findShop(store, domain);
}

function shopEntry({ domain, plan, currency, createdAt }: Shop) {
  return { domain, plan, currency, createdAt: isoUtc(createdAt) };
}

type Settings = Pick<ShopStatus, "retryDays" | "creditTitle" | "triggers">;

/** @param change what was set: those settings that `shopEntry` does not show are printed too */
function print(shop: Shop, { json }: Options, { retryDays, creditTitle, triggers }: Partial<Settings> = {}): void {
  const settings = {
    ...(retryDays !== undefined && { retryDays }),
    ...(creditTitle !== undefined && { creditTitle }),
    ...(triggers !== undefined && { triggers }),
  };
  if (json) printJson({ ...shopEntry(shop), ...settings });
  else {
    const texts = Object.entries(settings).map(([name, setting]) => [name, settingText(setting)]);
    printFields({ ...shopEntry(shop), ...Object.fromEntries(texts) });
  }
}

function settingText(setting: string | readonly (string | number)[]): string {
  return typeof setting === "string" ? setting : setting.join(",") || "none";
}

/** Whether the shop is not connected, was never loaded, has only default settings, and no customer waits for data. */
function isPlatformUnused(status: ShopStatus): boolean {
  const { hasConnection, loadedAt, triggers, creditTitle, retryDays, dataRequests } = status;
  const isDefault =
    triggers.length === 0 && creditTitle === DEFAULT_CREDIT_TITLE && String(retryDays) === String(DEFAULT_RETRY_DAYS);
  return !hasConnection && loadedAt === null && isDefault && dataRequests.length === 0;
}

function dataRequestEntry({ customer, requestedAt, dueAt }: ShopStatus["dataRequests"][number]) {
  return { customer, requestedAt: isoUtc(requestedAt), dueAt: isoUtc(dueAt) };
}

function platformEntry({
  hasConnection,
  trouble,
  loadedAt,
  reconciledAt,
  reconciledRows,
  inbox,
  retryDays,
  creditTitle,
  triggers,
}: ShopStatus) {
  return {
    connected: hasConnection && trouble === null,
    trouble,
    syncedAt: dateOrNull(loadedAt),
    reconciledAt: dateOrNull(reconciledAt),
    repairs: reconciledRows,
    inbox,
    retryDays,
    creditTitle,
    triggers,
  };
}

function platformTexts(status: ShopStatus): Record<string, string> {
  const { syncedAt, reconciledAt, repairs, inbox, retryDays, creditTitle, triggers } = platformEntry(status);
  return {
    syncedAt: syncedAt ?? "never",
    reconciledAt: reconciledAt ?? "never",
    repairs: String(repairs ?? "never"),
    creditTitle,
    inbox: `${inbox.waiting} waiting, ${inbox.failed} failed`,
    retryDays: settingText(retryDays),
    triggers: settingText(triggers),
    dataRequests:
      status.dataRequests
        .map(dataRequestEntry)
        .map(({ customer, dueAt }) => `${customer} until ${dueAt}`)
        .join(", ") || "none",
  };
}

function dateOrNull(ms: number | null): string | null {
  return ms === null ? null : isoUtc(ms);
}

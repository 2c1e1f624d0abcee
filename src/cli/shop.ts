import type { Command } from "commander";
import { audited } from "../actions/audit.ts";
import {
  changeShop,
  connectionText,
  operatorLoadText,
  type ShopStatus,
  shopStatus,
  sinceText,
} from "../actions/shop.ts";
import { removeShop } from "../actions/shop-removal.ts";
import { invalid } from "../domain/error.ts";
import { parseTriggers, TRIGGER_HANDLES } from "../domain/events/trigger.ts";
import { DEFAULT_RETRY_DAYS, parseRetryDays } from "../domain/retry-plan.ts";
import {
  DEFAULT_CREDIT_TITLE,
  PLANS,
  type Plan,
  parseCreditTitle,
  parseCurrency,
  parseNewDomain,
  parsePlan,
  type Shop,
} from "../domain/shop.ts";
import { counted } from "../lib/text.ts";
import { isoUtc, isoUtcOrNull } from "../lib/time.ts";
import type { Store } from "../store/port/store.ts";
import { addAuditCommand } from "./audit.ts";
import type { JsonFlag, SdsCommand } from "./command.ts";
import { addConnectionCommands } from "./connection.ts";
import { findShop, operator, withStore } from "./context.ts";
import { sleep } from "./dependencies.ts";
import { printFields, printJson, printList, tell, warn } from "./print.ts";
import { addMoveCommand } from "./shop-move.ts";
import { confirm } from "./stdin.ts";

type PrintedSettings = Pick<ShopStatus, "retryDays" | "creditTitle" | "triggers">;
type ShopAddFlags = JsonFlag & { plan: Plan; currency: string };
type ShopSetFlags = JsonFlag & Partial<PrintedSettings> & { plan?: Plan | typeof FOLLOW_PLATFORM; currency?: string };

const PLAN_HELP = `one of ${PLANS.join(", ")}`;
/** The value of `--plan` that lets the platform decide. */
const FOLLOW_PLATFORM = "platform";

export function addCommands(program: SdsCommand): void {
  const shop = program
    .command("shop")
    .description("add, list, change, connect and remove shops")
    .examples("sds shop add alpha.myshopify.com");

  shop
    .command("add <domain>")
    .description("add a shop by its platform domain")
    .option("--plan <plan>", PLAN_HELP, parsePlan, "pro")
    .option("--currency <code>", "the shop's currency, an ISO 4217 code", parseCurrency, "USD")
    .jsonOption()
    .examples("sds shop add alpha.myshopify.com --plan free+addon --currency EUR")
    .action(add);

  shop.command("list").description("list all shops").jsonOption().examples("sds shop list").action(list);

  shop
    .command("show <domain>")
    .description("show a shop, its settings and its connection to the platform")
    .jsonOption()
    .examples("sds shop show alpha.myshopify.com")
    .action(show);

  addSetCommand(shop);
  addRenameCommand(shop);
  addMoveCommand(shop);
  addAuditCommand(shop);
  addConnectionCommands(shop);

  shop
    .command("remove <domain>")
    .description("remove a shop with its keys, its deliveries and its mirror")
    .option("--yes", "really remove the shop")
    .jsonOption()
    .examples("sds shop remove alpha.myshopify.com --yes")
    .action(remove);
}

function addSetCommand(shop: SdsCommand): void {
  shop
    .command("set <domain>")
    .description("change the settings of a shop")
    .option(
      "--plan <plan>",
      `${PLAN_HELP}; or ${FOLLOW_PLATFORM}, to follow the shop's subscription to the app`,
      (text) => (text === FOLLOW_PLATFORM ? text : parsePlan(text)),
    )
    .option("--currency <code>", "the shop's currency, an ISO 4217 code", parseCurrency)
    .option(
      "--retry-days <days>",
      "days to wait after each declined billing attempt before the next one, like 1,3,5; or none",
      parseRetryDays,
    )
    .option("--credit-title <title>", "the title of the discount that is store credit", parseCreditTitle)
    .option(
      "--triggers <handles>",
      `workflow triggers to switch on, separated by commas: ${TRIGGER_HANDLES.join(", ")}; or all, or none`,
      parseTriggers,
    )
    .jsonOption()
    .examples(
      "sds shop set alpha.myshopify.com --plan free",
      "sds shop set alpha.myshopify.com --triggers all --retry-days 2,4",
    )
    .action(set);
}

function addRenameCommand(shop: SdsCommand): void {
  shop
    .command("rename <old> <new>")
    .description("give a shop the domain that it has at the platform now; keys, rows, ids and secrets stay")
    .jsonOption()
    .examples("sds shop rename alpha.myshopify.com beta.myshopify.com")
    .action(async (old: string, next: string, { json }: JsonFlag, command: Command) => {
      const domain = parseNewDomain(next);
      await withStore(command, async (store) => {
        const shop = await findShop(store, old);
        const details = { before: { domain: shop.domain }, after: { domain } };
        const { shops } = audited(store, { shop, actor: operator() }, Date.now(), "shop.renamed", details);
        await shops.rename(shop.domain, domain);
      });
      if (json) printJson({ domain });
      else tell(`Renamed ${old} to ${domain}.`);
    });
}

async function add(domain: string, { plan, currency, json }: ShopAddFlags, command: Command): Promise<void> {
  // The platform's plan replaces the default plan, but not a plan given with --plan.
  const planFixed = command.getOptionValueSource("plan") === "cli";
  const shop = { domain: parseNewDomain(domain), plan, currency, planFixed };
  print(await withStore(command, (store) => store.shops.add(shop, Date.now())), json);
}

async function list({ json }: JsonFlag, command: Command): Promise<void> {
  const shops = await withStore(command, (store) => store.shops.list());
  printList(json, shops.map(shopEntry), "There is no shop yet. Add one with `sds shop add alpha.myshopify.com`.", {
    DOMAIN: ({ domain }) => domain,
    PLAN: ({ plan }) => plan,
    CURRENCY: ({ currency }) => currency,
    CREATED: ({ createdAt }) => createdAt,
  });
}

async function show(domain: string, { json }: JsonFlag, command: Command): Promise<void> {
  const { shop, status } = await withStore(command, async (store) => {
    const shop = await findShop(store, domain);
    return { shop, status: await shopStatus(store, shop, Date.now()) };
  });
  const isShown = usesPlatform(status);
  const dataRequests = status.dataRequests.map(dataRequestEntry);
  if (json) printJson({ ...shopEntry(shop), ...(isShown && { platform: platformEntry(status), dataRequests }) });
  else printFields({ ...shopEntry(shop), platform: connectionText(status), ...(isShown && platformTexts(status)) });
}

async function set(domain: string, { plan, json, ...settings }: ShopSetFlags, command: Command): Promise<void> {
  const change = {
    ...(plan === FOLLOW_PLATFORM && { planFixed: false }),
    ...(plan !== undefined && plan !== FOLLOW_PLATFORM && { plan, planFixed: true }),
    ...settings,
  };
  if (Object.keys(change).length === 0)
    throw invalid("say what to change: --plan, --currency, --retry-days, --credit-title or --triggers");
  const { shop, warnings } = await withStore(command, async (store) =>
    changeShop(store, { shop: await findShop(store, domain), change, actor: operator() }, Date.now()),
  );
  print(shop, json, change);
  warn(warnings);
}

async function remove(
  domain: string,
  { yes = false, json }: JsonFlag & { yes?: boolean },
  command: Command,
): Promise<void> {
  if (!yes) {
    const contents = await withStore(command, (store) => contentsOf(store, domain));
    // The store is closed during the confirmation prompt, which can take hours. An open store would block a restore.
    await confirm(`this removes ${domain} with ${contents}`, yes);
  }
  await withStore(command, async (store) => {
    await checkRemovable(store, domain);
    const known = await store.shops.find(domain);
    await removeShop(store.shops, known?.domain ?? domain, Date.now(), sleep);
  });
  if (json) printJson({ domain });
  else tell(`Removed ${domain}.`);
}

/** Describes what a removal deletes, for the confirmation prompt. @throws SdsError `not_found` */
async function contentsOf(store: Store, domain: string): Promise<string> {
  await checkRemovable(store, domain);
  const shop = await store.shops.find(domain);
  if (shop === undefined) return "what its interrupted removal left";
  const { customers, subscriptions, orders } = await store.shops.rowCounts(shop.id);
  const keys = await store.keys.list(shop.id);
  return [
    counted(keys.length, "API key", "API keys"),
    counted(subscriptions, "subscription", "subscriptions"),
    counted(orders, "order", "orders"),
    `${counted(customers, "customer", "customers")} and its delivery log`,
  ].join(", ");
}

/** Checks that a shop exists, or that its removal was interrupted. @throws SdsError `not_found` */
async function checkRemovable(store: Store, domain: string): Promise<void> {
  const isBeingRemoved = (await store.shops.removing()).some((each) => each.domain === domain);
  if (!isBeingRemoved) await findShop(store, domain);
}

function shopEntry({ domain, plan, currency, createdAt }: Shop) {
  return { domain, plan, currency, createdAt: isoUtc(createdAt) };
}

/** @param change settings that were just changed and that `shopEntry` does not include */
function print(shop: Shop, json: boolean | undefined, change: Partial<PrintedSettings> = {}): void {
  const { retryDays, creditTitle, triggers } = change;
  const settings = { retryDays, creditTitle, triggers };
  const texts = Object.entries(settings).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, settingText(value)]],
  );
  // JSON leaves out undefined settings.
  if (json) printJson({ ...shopEntry(shop), ...settings });
  else printFields({ ...shopEntry(shop), ...Object.fromEntries(texts) });
}

function settingText(setting: string | readonly (string | number)[]): string {
  return typeof setting === "string" ? setting : setting.join(",") || "none";
}

/** Whether the shop was ever connected, has a setting that is not the default, or has an open data request. */
function usesPlatform(status: ShopStatus): boolean {
  const { hasConnection, uninstalledAt, loadedAt, triggers, creditTitle, retryDays, dataRequests } = status;
  const isDefault =
    triggers.length === 0 && creditTitle === DEFAULT_CREDIT_TITLE && String(retryDays) === String(DEFAULT_RETRY_DAYS);
  return hasConnection || uninstalledAt !== null || loadedAt !== null || !isDefault || dataRequests.length > 0;
}

function dataRequestEntry({ customer, requestedAt, dueAt }: ShopStatus["dataRequests"][number]) {
  return { customer, requestedAt: isoUtc(requestedAt), dueAt: isoUtc(dueAt) };
}

function platformEntry(status: ShopStatus) {
  const { hasConnection, trouble, reconciledRows, inbox, retryDays, creditTitle, triggers } = status;
  return {
    connected: hasConnection && trouble === null,
    trouble,
    troubleSince: isoUtcOrNull(status.troubleSince),
    warnings: status.warnings.map(({ text, since }) => ({ text, since: isoUtc(since) })),
    uninstalledAt: isoUtcOrNull(status.uninstalledAt),
    load: status.load === null ? null : operatorLoadText(status.load),
    syncedAt: isoUtcOrNull(status.loadedAt),
    reconciledAt: isoUtcOrNull(status.reconciledAt),
    repairs: reconciledRows,
    inbox,
    retryDays,
    creditTitle,
    triggers,
  };
}

function platformTexts(status: ShopStatus): Record<string, string> {
  const { load, syncedAt, reconciledAt, repairs, inbox, retryDays, creditTitle, triggers } = platformEntry(status);
  const warnings = status.warnings.map(({ text, since }) => sinceText(text, since)).join(". ");
  return {
    ...(warnings !== "" && { warnings }),
    ...(load !== null && { load }),
    syncedAt: syncedAt ?? "never",
    reconciledAt: reconciledAt ?? "never",
    repairs: repairs === null ? "never" : `${counted(repairs, "row", "rows")} changed by the last reconciliation`,
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

import type { Command } from "commander";
import { invalid, SdsError } from "../domain/error.ts";
import { progressText, type SyncProgress, stepText } from "../domain/platform/load-progress.ts";
import { NO_COUNTS, type SyncCounts } from "../domain/platform/sync.ts";
import type { Shop } from "../domain/shop.ts";
import { counted } from "../lib/text.ts";
import { isoUtc } from "../lib/time.ts";
import { isLoading, loadExclusively } from "../shopify/sync/exclusive-load.ts";
import type { LoadOptions } from "../shopify/sync/full-sync.ts";
import type { OnProgress } from "../shopify/sync/progress.ts";
import type { Synchronizer } from "../shopify/sync/synchronizer.ts";
import type { Store } from "../store/port/store.ts";
import type { JsonFlag, SdsCommand } from "./command.ts";
import { missingLevels, NO_CONTRACTS, platformOf } from "./connection.ts";
import { chooseShop, configOf, withStore } from "./context.ts";
import { sleep } from "./dependencies.ts";
import { EVENTS_OPTION, parseSince } from "./options.ts";
import { printJson, printLine, tell, warn } from "./print.ts";
import { createProgressBar } from "./progress-bar.ts";

/** Interval at which the progress of another process is read. */
const FOLLOW_INTERVAL_MS = 500;

type SyncFlags = JsonFlag & { events?: boolean; since?: number; pages?: boolean };

export function addCommands(program: SdsCommand): void {
  program
    .command("sync [domain]")
    .description("load a connected shop from the platform; an interrupted run continues where it stopped")
    .option(...EVENTS_OPTION)
    .option(
      "--since <time>",
      "load only what changed since then, and queue the events that were missed: " +
        "an ISO date in UTC, or an age like 2h or 7d",
      parseSince,
    )
    .option("--pages", "read everything page by page, and use no bulk operations of the platform")
    .jsonOption()
    .examples("sds sync alpha.myshopify.com", "sds sync --since 24h")
    .action(sync);
}

async function sync(
  domain: string | undefined,
  { events = false, since, pages = false, json }: SyncFlags,
  command: Command,
): Promise<void> {
  if (since !== undefined && events) throw invalid("--since always queues events: leave out --events");
  if (since !== undefined && pages) throw invalid("--since always reads pages: leave out --pages");
  const config = configOf(command);
  const progress = createProgressBar(process.stderr);
  const startedAt = performance.now();
  const counts = await withStore(command, async (store) => {
    const shop = await chooseShop(store, domain ?? config.shop);
    if ((await store.connections.find(shop.id)) === undefined) {
      throw new SdsError(
        "failed",
        `${shop.domain} is not connected: connect it with \`sds shop connect ${shop.domain}\``,
      );
    }
    const { synchronizer } = platformOf(config, store);
    warn(await missingLevels(config, store, shop));
    const step = ({ stage }: Pick<SyncProgress, "stage">) => (since === undefined ? ` (${stepText({ stage })})` : "");
    const show = (update: SyncProgress) => progress.update(update.done, `${progressText(update)}${step(update)}`);
    try {
      return since === undefined
        ? await load({ store, synchronizer, show }, shop, { events, pages })
        : await synchronizer.reconcile(shop, since, show);
    } finally {
      progress.end();
    }
  });
  if (since === undefined && counts.subscriptions === 0 && counts.skipped === 0) warn([NO_CONTRACTS]);
  if (json) return printJson(counts);
  const { changed, events: eventCount, skipped } = counts;
  if (skipped > 0) {
    const what = counted(skipped, "object of the platform", "objects of the platform");
    tell(`${what} could not be mirrored. The warnings above say why; \`sds inbox list\` shows what is retried.`);
  }
  const seconds = Math.round((performance.now() - startedAt) / 1000);
  printLine(`read ${countsText(counts)} in ${seconds} s; changed ${changed}, events ${eventCount}`);
}

interface LoadContext {
  store: Store;
  synchronizer: Synchronizer;
  show: OnProgress;
}

/** Loads the shop, or follows the load of another process. If the other process stops, continues its load. */
async function load(context: LoadContext, shop: Shop, options: LoadOptions): Promise<SyncCounts> {
  const { store, synchronizer, show } = context;
  const { syncs } = store;
  const unfinished = await syncs.unfinished(shop.id, "full");
  if (unfinished !== undefined) tell(`Continuing the run that started at ${isoUtc(unfinished.startedAt)}.`);
  const clocks = { now: Date.now, clock: () => performance.now() };
  for (;;) {
    const before = await syncs.lastComplete(shop.id, "full");
    const counts = await loadExclusively({ syncs, synchronizer, ...clocks }, shop, options, show);
    if (counts !== undefined) return counts;
    if (options.events || options.pages === true) {
      const advice = `wait until it ends with \`sds sync ${shop.domain}\`, then run this command again`;
      throw new SdsError("conflict", `a load of ${shop.domain} without these options is under way: ${advice}`);
    }
    tell(`A load of ${shop.domain} is under way already. This command shows its progress, and ends with it.`);
    const followed = await follow(context, shop);
    const after = await syncs.lastComplete(shop.id, "full");
    if (after !== undefined && after.endedAt !== before?.endedAt) return followed;
  }
}

/** Shows the progress of another process until its load ends or the process is dead. @returns that load's counts */
async function follow({ store, show }: LoadContext, shop: Shop): Promise<SyncCounts> {
  for (;;) {
    const state = await store.syncs.loadState(shop.id, Date.now());
    const { counts = NO_COUNTS, stage = "customers", done, bulk } = state?.progress ?? {};
    if (!isLoading(state)) return counts;
    show({ counts, stage, done, ...(bulk && { bulk }) });
    await sleep(FOLLOW_INTERVAL_MS);
  }
}

function countsText(counts: SyncCounts): string {
  return `${counted(counts.customers, "customer", "customers")}, ${contractsText(counts)}`;
}

function contractsText({ subscriptions, orders }: SyncCounts): string {
  return `${counted(subscriptions, "subscription", "subscriptions")}, ${counted(orders, "order", "orders")}`;
}

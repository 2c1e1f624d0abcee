import type { Command } from "commander";
import { invalid, SdsError } from "../domain/error.ts";
import type { SyncCounts, SyncRun } from "../domain/platform/sync.ts";
import { counted } from "../lib/text.ts";
import { isoUtc } from "../lib/time.ts";
import type { SyncProgress } from "../shopify/sync/progress.ts";
import type { JsonFlag, SdsCommand } from "./command.ts";
import { NO_CONTRACTS, platformOf } from "./connection.ts";
import { chooseShop, configOf, withStore } from "./context.ts";
import { EVENTS_OPTION, parseSince } from "./options.ts";
import { printJson, printLine, tell, warn } from "./print.ts";
import { createProgressBar } from "./progress-bar.ts";

/** The steps of a load, in their order. The progress bar shows the time left of the current step. */
const LOAD_STEPS: SyncRun["stage"][] = ["customers", "orders", "subscriptions"];

type SyncFlags = JsonFlag & { events?: boolean; since?: number; pages?: boolean };

export function addSyncCommand(program: SdsCommand): void {
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
    const { synchronizer, missingLevels } = platformOf(config, store);
    warn(await missingLevels(shop));
    const unfinished = since === undefined ? await store.syncs.unfinished(shop.id, "full") : undefined;
    if (unfinished !== undefined) tell(`Continuing the run that started at ${isoUtc(unfinished.startedAt)}.`);
    const step = ({ stage }: SyncProgress) =>
      since === undefined ? ` (step ${LOAD_STEPS.indexOf(stage) + 1} of 3)` : "";
    const show = (update: SyncProgress) => progress.update(update.done, `${progressText(update)}${step(update)}`);
    try {
      return since === undefined
        ? await synchronizer.load(shop, { events, pages }, show)
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

function progressText({ counts, stage, bulk }: SyncProgress): string {
  if (bulk?.state === "preparing") {
    return `the platform prepares the file of ${bulk.what}, ${bulk.count.toLocaleString("en")} so far`;
  }
  if (bulk?.what === "orders") return counted(bulk.count, "order", "orders");
  return stage === "customers" ? counted(counts.customers, "customer", "customers") : contractsText(counts);
}

function countsText(counts: SyncCounts): string {
  return `${counted(counts.customers, "customer", "customers")}, ${contractsText(counts)}`;
}

function contractsText({ subscriptions, orders }: SyncCounts): string {
  return `${counted(subscriptions, "subscription", "subscriptions")}, ${counted(orders, "order", "orders")}`;
}

import type { Command } from "commander";
import { SdsError } from "../domain/error.ts";
import type { SyncCounts } from "../domain/sync.ts";
import type { SyncProgress } from "../shopify/sync/progress.ts";
import { platformOf } from "./connect.ts";
import { chooseShop, configOf, example, JSON_OPTION, parseSince, withStore } from "./context.ts";
import { printJson, printLine, tell } from "./print.ts";
import { Progress } from "./progress.ts";

interface Options {
  events?: boolean;
  since?: string;
  json?: boolean;
}

export function addSyncCommand(program: Command): void {
  program
    .command("sync [domain]")
    .description("load a connected shop from the platform; one that was cut off goes on where it was")
    .option("--events", "queue events for what changes, as if it happened now")
    .option("--since <time>", "only what changed since then, with the events that were missed: an ISO date in UTC, or an age like 2h or 7d")
    .option(...JSON_OPTION)
    .addHelpText("after", example("sds sync alpha.myshopify.com", "sds sync --since 24h"))
    .action(async (domain: string | undefined, options: Options, command: Command) => {
      if (options.since !== undefined && options.events === true) throw new SdsError("invalid", "--since queues the events that were missed without --events");
      const since = options.since === undefined ? undefined : parseSince(options.since);
      const config = configOf(command);
      const progress = new Progress(process.stderr);
      const began = performance.now();
      const counts = await withStore(command, async (store) => {
        const shop = await chooseShop(store, domain);
        if ((await store.connections.find(shop.id)) === undefined) {
          throw new SdsError("failed", `${shop.domain} is not connected: connect it with \`sds shop connect ${shop.domain}\``);
        }
        const { synchronizer } = platformOf(config, store);
        const unfinished = since === undefined ? await store.syncs.unfinished(shop.id, "full") : undefined;
        if (unfinished !== undefined) tell(`Going on with the run that began ${new Date(unfinished.startedAt).toISOString()}.`);
        const show = (update: SyncProgress) => progress.update(update.done, progressText(update));
        try {
          return since === undefined
            ? await synchronizer.load(shop, { events: options.events === true }, show)
            : await synchronizer.reconcile(shop, since, show);
        } finally {
          progress.end();
        }
      });
      if (options.json) printJson(counts);
      else {
        if (counts.skipped > 0) tell(`${counts.skipped} could not be mirrored for what the platform says of them: the warnings above say which and why.`);
        printLine(`read ${summary(counts)} in ${Math.round((performance.now() - began) / 1000)} s; changed ${counts.changed}, events ${counts.events}`);
      }
    });
}

function progressText({ counts, stage }: SyncProgress): string {
  const { customers, subscriptions, orders } = counts;
  return stage === "customers"
    ? `${customers.toLocaleString("en")} customers`
    : `${subscriptions.toLocaleString("en")} subscriptions, ${orders.toLocaleString("en")} orders`;
}

function summary({ customers, subscriptions, orders }: SyncCounts): string {
  return `${customers} customers, ${subscriptions} subscriptions, ${orders} orders`;
}

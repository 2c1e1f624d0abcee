import { Cron } from "croner";
import { ANSWERED_RETENTION_DAYS, DATA_REQUEST_WARNING_MS } from "../domain/people/data-request.ts";
import type { ApiKeyAuthenticator } from "../http/read/api-key-authenticator.ts";
import type { WrongKeyLog } from "../http/read/wrong-key-log.ts";
import type { Readiness } from "../http/readiness.ts";
import type { Log } from "../lib/log.ts";
import { isoUtc } from "../lib/time.ts";
import { cancelUninstalled } from "../shopify/sync/uninstalled.ts";
import type { DataRequestStore } from "../store/port/data-requests.ts";
import { failureFields } from "../store/port/store-error.ts";
import type { Monitor } from "./monitor.ts";
import type { AppResources, Work } from "./work.ts";

const DAY_MS = 24 * 3_600_000;
/**
 * How long the ids of received platform webhooks are kept, to recognise repeats. The platform repeats a webhook for
 * four hours, and sometimes sends a webhook a day late. The other days are a margin.
 */
const RECEIPT_RETENTION_DAYS = 7;

/** How long the counts of attempts are kept: a year and a month. */
const COUNTS_RETENTION_DAYS = 396;
const AUDIT_RETENTION_DAYS = 365;

type JobDependencies = AppResources &
  Work & {
    authenticator: ApiKeyAuthenticator;
    readiness: Readiness;
    wrongKeys: WrongKeyLog;
    monitor: Monitor | undefined;
    /** The clock by which counts of wrong sign-in tokens expire. */
    steadyTime: () => number;
  };

/** Starts the jobs, each with its schedule. A job never overlaps with itself, and its errors are logged. */
export function startJobs(dependencies: JobDependencies): Cron[] {
  const { store, sender, processor, remover, reconciler, authenticator, readiness, wrongKeys, now, log } = dependencies;
  const { firstLoader, teller, membership, recordWriter, steadyTime, config, monitor } = dependencies;
  const { dataRequests, deliveries, inbox } = store;
  const remindOfDataRequests = createDataRequestReminder(dataRequests, now, log);
  /** Returns a job that only the leader runs, for all nodes. */
  const onLeader = (run: () => Promise<void>) => async () => {
    if (membership.isLeader) await run();
  };
  const before = (days: number) => now() - days * DAY_MS;
  const jobs: [pattern: string, name: string, run: () => Promise<void>][] = [
    ["* * * * * *", "write when API keys were last used", () => authenticator.writeUses()],
    ["20 * * * * *", "report wrong API keys", async () => wrongKeys.report()],
    ["25 * * * * *", "check whether the database can be written", async () => void (await readiness.reason())],
    ["* * * * * *", "check whether the database can be used again", () => readiness.watch()],
    ["*/15 * * * * *", "read the figures of the metrics", async () => monitor?.refresh()],
    ["30 * * * * *", "shorten the write-ahead log", () => store.checkpoint()],
    [
      "35 * * * * *",
      "remove expired sessions of the settings page",
      onLeader(() => store.settingsPage.removeExpired(now(), steadyTime())),
    ],
    ["* * * * * *", "tell other nodes that this one is alive", () => membership.beat()],
    ["* * * * * *", "send due deliveries", async () => sender.wake()],
    ["*/5 * * * * *", "tell of alerts", async () => teller.wake()],
    ["* * * * * *", "process platform webhooks", async () => processor.wake()],
    ["* * * * * *", "go on with the removal of shops", async () => remover.wake()],
    ["* * * * * *", "load connected shops for the first time", () => firstLoader.begin()],
    ["40 * * * * *", "reconcile mirrors with the platform", () => reconciler.begin()],
    [
      "15 5,35 * * * *",
      "cancel the contracts of shops that uninstalled the app",
      onLeader(() => cancelUninstalled({ ...store, recordWriter, now, log })),
    ],
    [
      "0 10 * * * *",
      "remove old deliveries",
      onLeader(() => deliveries.prune(now() - config.keepDeliveredMs, before(COUNTS_RETENTION_DAYS))),
    ],
    [
      "0 15 * * * *",
      "remove old entries of the audit lists",
      onLeader(async () => void (await store.audit.prune(before(AUDIT_RETENTION_DAYS)))),
    ],
    [
      "0 0 * * * *",
      "forget the ids of old platform webhooks",
      onLeader(() => inbox.forgetReceipts(before(RECEIPT_RETENTION_DAYS))),
    ],
    ["45 */10 * * * *", "warn of data requests that are due soon", onLeader(remindOfDataRequests)],
    [
      "0 5 * * * *",
      "forget answered data requests",
      onLeader(() => dataRequests.forgetAnswered(before(ANSWERED_RETENTION_DAYS))),
    ],
  ];
  return jobs.map(([pattern, name, run]) => {
    const report = (thrown: unknown) => log.error(`cannot ${name}`, failureFields(thrown));
    return new Cron(pattern, { protect: true, catch: report }, run);
  });
}

/**
 * Returns a function that logs a warning for each shop with data requests that are overdue or due within a week. It
 * logs at most one warning a day for a shop.
 */
export function createDataRequestReminder(
  dataRequests: Pick<DataRequestStore, "dueBefore">,
  now: () => number,
  log: Log,
): () => Promise<void> {
  /** The time of the last warning, by shop id. */
  const warnedAt = new Map<number, number>();
  return async () => {
    for (const { shop, count, first } of await dataRequests.dueBefore(now() + DATA_REQUEST_WARNING_MS)) {
      const last = warnedAt.get(shop.id);
      // The absolute difference is used, because the clock may have been set back.
      if (last !== undefined && Math.abs(now() - last) < DAY_MS) continue;
      warnedAt.set(shop.id, now());
      const message =
        "customers wait for their data, and the time for an answer ends in a week or less: send it with " +
        "`sds customer export`, then run `sds customer answered`";
      log.warn(message, { shop: shop.domain, requests: count, customer: first.customer, dueAt: isoUtc(first.dueAt) });
    }
  };
}

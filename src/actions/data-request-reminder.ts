import { DATA_REQUEST_WARNING_MS } from "../domain/people/data-request.ts";
import type { Log } from "../lib/log.ts";
import { isoUtc } from "../lib/time.ts";
import type { DataRequestStore } from "../store/port/data-requests.ts";

const DAY_MS = 86_400_000;

/** Warns of customers' requests for their data that are due in a week or less, or overdue. */
export interface DataRequestReminder {
  /** Logs one line for each shop, once a day. */
  remind(): Promise<void>;
}

export function createDataRequestReminder(
  dataRequests: Pick<DataRequestStore, "dueBefore">,
  now: () => number,
  log: Log,
): DataRequestReminder {
  /** When a shop was last warned of, by its id. */
  const warnedAt = new Map<number, number>();
  return {
    async remind() {
      for (const { shop, count, first } of await dataRequests.dueBefore(now() + DATA_REQUEST_WARNING_MS)) {
        const last = warnedAt.get(shop.id);
        // The clock may have been set back.
        if (last !== undefined && Math.abs(now() - last) < DAY_MS) continue;
        warnedAt.set(shop.id, now());
        const message =
          "customers wait for their data, and the time for an answer ends in a week or less: send it with " +
          "`sds customer export`, then run `sds customer answered`";
        log.warn(message, { shop: shop.domain, requests: count, customer: first.customer, dueAt: isoUtc(first.dueAt) });
      }
    },
  };
}

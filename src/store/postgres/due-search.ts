import { createDueFinder, type DueReads } from "../engine/due-finder.ts";
import type { Queries } from "./database.ts";

/** A table of planned work. It holds two queues of each shop. */
interface DuePlan {
  table: "deliveries" | "inbox";
  /** The column that tells a shop's two queues apart. */
  queue: "kind" | "needs_platform";
  /** The column with the time at which a row is due; NULL for a row that is not planned. */
  dueAt: "claimable_at" | "next_attempt_at";
}

interface DueQueue<Q> {
  shopId: number;
  queue: Q;
  /** The time at which the queue's first row was due, epoch milliseconds. */
  at: number;
}

interface DueRow<Q> extends DueQueue<Q> {
  /** False while the shop is being removed. */
  isServed: boolean;
  /** How many rows or queues the statement read before it grouped or filtered them. */
  readCount: number;
}

export interface DueSearch<Q> {
  /** Returns the queues with due rows, sorted by shop. */
  find(now: number): Promise<DueQueue<Q>[]>;
  /**
   * Returns the earliest due time to read in a queue: WINDOW_MS before the first due row that the last search found in
   * the queue. Returns 0 if the search found no row.
   */
  since(shopId: number, queue: Q): number;
}

/**
 * A search begins this long before the first row that the previous search found, because rows may appear late. The
 * clocks of nodes differ, and a transaction commits after it has read the clock. Searches over all times find even
 * older rows.
 */
const WINDOW_MS = 60_000;
/** Interval between two searches over all times. */
const WHOLE_SEARCH_MS = 60_000;

/**
 * Makes the search for due work. While `pg_dump` or another transaction keeps an old snapshot, the index keeps the
 * entries of finished rows. So a search by time begins a little before the first row that the last search found.
 */
export function dueSearch<Q>(db: Pick<Queries, "all">, plan: DuePlan): DueSearch<Q> {
  const { byTime, byQueue } = statements(plan);
  let wholeAt = Number.NEGATIVE_INFINITY;
  let searchedAt = Number.NEGATIVE_INFINITY;
  let from = 0;
  let firsts = new Map<string, number>();
  const finder = createDueFinder();

  const key = (shopId: number, queue: Q) => `${shopId} ${queue}`;

  const reads: DueReads<DueRow<Q>> = {
    async byTime(limit) {
      const queues = await db.all<DueRow<Q>>(byTime, [searchedAt, from, limit]);
      return { queues, isComplete: (queues[0]?.readCount ?? 0) < limit };
    },
    async byQueue(limit) {
      const queues = await db.all<DueRow<Q>>(byQueue, [searchedAt, limit]);
      // An empty result does not tell how many queues the statement read. So with a limit, it is not complete.
      return {
        queues,
        isComplete: limit === null || (queues[0]?.readCount ?? limit) < limit,
      };
    },
  };

  return {
    async find(now) {
      // The clock may have been set back.
      if (now < searchedAt || now - wholeAt >= WHOLE_SEARCH_MS) [from, wholeAt] = [0, now];
      searchedAt = now;
      const found = await finder.find(reads);
      firsts = new Map(found.map(({ shopId, queue, at }) => [key(shopId, queue), at]));
      from = Math.max(0, Math.min(now, ...firsts.values()) - WINDOW_MS);
      return found.filter(({ isServed }) => isServed);
    },
    since: (shopId, queue) => Math.max(0, (firsts.get(key(shopId, queue)) ?? 0) - WINDOW_MS),
  };
}

function statements({ table, queue, dueAt }: DuePlan): {
  byTime: string;
  byQueue: string;
} {
  const columns = `found.shop_id::float8 AS "shopId", found.queue, found.at::float8 AS at,
    removal_started_at IS NULL AS "isServed"`;
  const first = (where: string) => `SELECT shop_id, ${queue} AS queue, ${dueAt} AS at FROM ${table}
    WHERE ${where} AND ${dueAt} IS NOT NULL ORDER BY shop_id, ${queue}, ${dueAt} LIMIT 1`;
  return {
    // The due time of an urgent item is 0.
    byTime: `WITH rows AS MATERIALIZED (
        (SELECT shop_id, ${queue} AS queue, ${dueAt} AS at FROM ${table} WHERE ${dueAt} = 0 LIMIT $3::bigint)
        UNION ALL
        (SELECT shop_id, ${queue}, ${dueAt} FROM ${table}
          WHERE ${dueAt} > $2::bigint AND ${dueAt} <= $1::bigint ORDER BY ${dueAt} LIMIT $3::bigint)
      ), found AS (SELECT shop_id, queue, min(at) AS at FROM rows GROUP BY shop_id, queue)
      SELECT ${columns}, (SELECT count(*) FROM rows)::float8 AS "readCount"
      FROM found JOIN shops ON shops.id = found.shop_id ORDER BY found.shop_id, found.queue`,
    // One seek in the index for each queue with due or planned rows.
    byQueue: `WITH RECURSIVE each_queue AS (
        (${first("shop_id > 0")})
        UNION ALL
        SELECT next.* FROM each_queue CROSS JOIN LATERAL (
          ${first(`(shop_id, ${queue}) > (each_queue.shop_id, each_queue.queue)`)}
        ) AS next
      ), found AS MATERIALIZED (SELECT * FROM each_queue LIMIT $2::bigint)
      SELECT ${columns}, (SELECT count(*) FROM found)::float8 AS "readCount"
      FROM found JOIN shops ON shops.id = found.shop_id
      WHERE found.at <= $1::bigint ORDER BY found.shop_id, found.queue`,
  };
}

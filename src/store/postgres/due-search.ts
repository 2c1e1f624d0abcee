import { createDueChoice, MAX_DUE_READ } from "../engine/due-choice.ts";
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

interface Found<Q> extends DueQueue<Q> {
  isServed: boolean;
  /** The due rows that a search by time read, or the queues with planned rows that a search by queue read. */
  count: number;
}

export interface DueSearch<Q> {
  /** Returns the queues with due rows, sorted by shop. */
  find(now: number): Promise<DueQueue<Q>[]>;
  /** Returns a time before which the most recent search found no due row in the queue. */
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
 * Makes the search for due work. It uses an index of due times. So its cost depends on the due rows, and not on work
 * that is planned for later. It skips old times, because `pg_dump` or another old snapshot keeps the index entries of
 * finished rows. While few queues have many due rows, it searches each queue instead.
 */
export function dueSearch<Q>(db: Pick<Queries, "all">, plan: DuePlan): DueSearch<Q> {
  const { byTime, byQueue } = statements(plan);
  let wholeAt = Number.NEGATIVE_INFINITY;
  let searchedAt = Number.NEGATIVE_INFINITY;
  let from = 0;
  let firsts = new Map<string, number>();
  const choice = createDueChoice();

  const key = (shopId: number, queue: Q) => `${shopId} ${queue}`;

  async function read(now: number): Promise<Found<Q>[]> {
    if (choice.isByQueue(now)) return db.all(byQueue, [now]);
    const found = await db.all<Found<Q>>(byTime, [now, from, MAX_DUE_READ]);
    const rows = found[0]?.count ?? 0;
    if (!choice.needsQueues(rows)) return found;
    // If more rows may be due, searches each queue. Otherwise a shop with many due rows would hide other shops.
    const first = await db.all<Found<Q>>(byQueue, [now]);
    choice.choose(rows, first[0]?.count ?? 0);
    return first;
  }

  return {
    async find(now) {
      // The clock may have been set back.
      if (now < searchedAt || now - wholeAt >= WHOLE_SEARCH_MS) [from, wholeAt] = [0, now];
      const found = await read(now);
      searchedAt = now;
      firsts = new Map(found.map(({ shopId, queue, at }) => [key(shopId, queue), at]));
      from = Math.max(0, Math.min(now, ...firsts.values()) - WINDOW_MS);
      return found.filter(({ isServed }) => isServed);
    },
    since: (shopId, queue) => Math.max(0, (firsts.get(key(shopId, queue)) ?? 0) - WINDOW_MS),
  };
}

function statements({ table, queue, dueAt }: DuePlan): { byTime: string; byQueue: string } {
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
      SELECT ${columns}, (SELECT count(*) FROM rows)::float8 AS count
      FROM found JOIN shops ON shops.id = found.shop_id ORDER BY found.shop_id, found.queue`,
    // One seek in the index for each queue with planned rows.
    byQueue: `WITH RECURSIVE planned AS (
        (${first("shop_id > 0")})
        UNION ALL
        SELECT next.* FROM planned CROSS JOIN LATERAL (
          ${first(`(shop_id, ${queue}) > (planned.shop_id, planned.queue)`)}
        ) AS next
      )
      SELECT ${columns}, (SELECT count(*) FROM planned)::float8 AS count
      FROM planned AS found JOIN shops ON shops.id = found.shop_id
      WHERE found.at <= $1::bigint ORDER BY found.shop_id, found.queue`,
  };
}

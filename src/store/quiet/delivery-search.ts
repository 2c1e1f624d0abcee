import { type SQL, sql as template } from "drizzle-orm";
import type { DeliveryKind } from "../../domain/deliveries/delivery.ts";
import { SUBJECT_CHARACTERS, type SubjectSearch, subjectOf } from "../../domain/deliveries/subject.ts";
import { type Delivery, type DeliveryFilter, type DeliveryPage, kindsOf } from "../port/deliveries.ts";
import { either, type QuietDatabase, sql, tableOf } from "./quiet-database.ts";

/** Maximum number of deliveries that a page scans in a range. In SQLite, a scan blocks the program for milliseconds. */
const SCANNED = 5_000;
/** Margin when a time is converted to a delivery number. The clocks of nodes differ, and a clock may be set back. */
const CLOCK_MARGIN_MS = 3_600_000;

export const LISTED = sql`id, kind, topic, test, status, attempts, next_attempt_at AS "nextAttemptAt",
  last_status_code AS "lastStatusCode", error, created_at AS "createdAt", (
    SELECT duration FROM attempts WHERE attempts.shop_id = deliveries.shop_id AND delivery = deliveries.number
    ORDER BY attempts.number DESC LIMIT 1
  ) AS "lastDuration"`;
/** A literal, not a parameter: PostgreSQL has no `substr` with a bigint. */
const BODY_START = template.raw(String(SUBJECT_CHARACTERS));
/** Literals, not parameters: an engine uses a partial index only if the statement's text has the index's condition. */
export const KINDS = { webhook: sql`'webhook'`, trigger: sql`'trigger'` } satisfies Record<DeliveryKind, SQL>;
const STATUSES = { pending: sql`'pending'`, retrying: sql`'retrying'`, delivered: sql`'delivered'`, dead: sql`'dead'` };

/** The expression of SQLite's index `deliveries_of_subject`. PostgreSQL has the table `delivery_subjects` instead. */
const SUBJECT = sql`CASE
    WHEN topic = 'loyalty.reward_earned' THEN substr(body, instr(body, '"customer_id":"') + 15, 28)
    WHEN topic = 'streak-milestone-reached' THEN 'customer/' || substr(
      substr(body, instr(body, '"customer_id":') + 14, 21), 1,
      instr(substr(body, instr(body, '"customer_id":') + 14, 21), ',') - 1
    )
    WHEN instr(body, '"gid://shopify/SubscriptionContract/') > 0 THEN substr(
      substr(body, instr(body, '"gid://shopify/SubscriptionContract/') + 36, 21), 1,
      instr(substr(body, instr(body, '"gid://shopify/SubscriptionContract/') + 36, 21), '"') - 1
    )
  END`;

/** First step of the binary search for a delivery number. Every delivery number is less than twice this step. */
const HIGHEST_STEP = 2 ** 40;

interface LogPlace {
  number: number;
  id: string;
}

type LogRow = Omit<Delivery, "subject"> & LogPlace & { bodyStart: string };

/** Deliveries that one index finds, sorted by number. */
interface LogRange {
  kind: DeliveryKind;
  index: "deliveries_of_shop" | "deliveries_dead" | "deliveries_due" | "deliveries_of_subject";
  condition: SQL;
  /** Further condition on the deliveries that the index finds. With a filter, at most `SCANNED` deliveries are read. */
  filter: SQL | undefined;
}

/** A range of delivery numbers that excludes `low` and `high`. With `isNewer`, the lowest numbers come first. */
interface Between {
  low: number;
  high: number;
  isNewer: boolean;
}

/** Searches the log. Reads a separate range of an index for each kind and each subject. */
export async function searchDeliveries(
  db: QuietDatabase,
  shopId: number,
  filter: DeliveryFilter,
): Promise<DeliveryPage> {
  const { limit, before, after } = filter;
  const cursor = await placeOf(db, shopId, after ?? before);
  const isNewer = cursor !== undefined && after !== undefined;
  const nearestFirst = (a: LogPlace, b: LogPlace) => (isNewer ? a.number - b.number : b.number - a.number);
  const between = {
    low: isNewer ? cursor.number : 0,
    high: isNewer ? Number.MAX_SAFE_INTEGER : (cursor?.number ?? Number.MAX_SAFE_INTEGER),
    isNewer,
  };
  const parts = await Promise.all(
    kindsOf(filter.kind).map(async (kind) => {
      const ofTime = await betweenTimes(db, shopId, kind, filter, between);
      const ranges = await rangesOf(db, shopId, kind, filter);
      return Promise.all(ranges.map((range) => readRange(db, shopId, range, ofTime, limit)));
    }),
  );
  // A scan may have stopped before the end of its range. So the page ends at the first place where a scan stopped.
  const end = parts
    .flat()
    .flatMap((part) => part.end ?? [])
    .sort(nearestFirst)[0];
  const rows = parts.flat().flatMap((part) => part.rows);
  const reached = [...new Map(rows.map((row) => [row.number, row])).values()]
    .sort(nearestFirst)
    .filter((row) => end === undefined || nearestFirst(row, end) <= 0);
  const shown = reached.slice(0, limit);
  const last = (reached.length > limit ? shown.at(-1) : end)?.id ?? null;
  const deliveries = (isNewer ? shown.toReversed() : shown).map(shownDelivery);
  return isNewer
    ? { deliveries, newer: last, older: deliveries.at(-1)?.id ?? cursor.id }
    : { deliveries, newer: cursor === undefined ? null : (deliveries[0]?.id ?? cursor.id), older: last };
}

/** Reads the deliveries with these ids, newest first. */
export async function pickDeliveries(db: QuietDatabase, shopId: number, ids: readonly string[]): Promise<Delivery[]> {
  const picked = tableOf(
    db,
    "picked",
    { id: "text" },
    ids.map((id) => ({ id })),
  );
  const rows = await db.all<LogRow>(
    sql`SELECT number, ${LISTED}, substr(body, 1, ${BODY_START}) AS "bodyStart" FROM deliveries
      WHERE shop_id = ${shopId} AND id IN (SELECT id FROM ${picked}) ORDER BY number DESC`,
  );
  return rows.map(shownDelivery);
}

function shownDelivery({ number: _, bodyStart, ...row }: LogRow): Delivery {
  return { ...row, test: Boolean(row.test), subject: subjectOf(row.topic, bodyStart) };
}

/** @returns undefined for an unknown id, such as the id of an old delivery that was removed */
async function placeOf(db: QuietDatabase, shopId: number, id: string | undefined): Promise<LogPlace | undefined> {
  if (id === undefined) return undefined;
  return db.get<LogPlace>(sql`SELECT number, id FROM deliveries WHERE shop_id = ${shopId} AND id = ${id}`);
}

/** Narrows a range to the deliveries that were queued between the times of a filter, with a margin. */
async function betweenTimes(
  db: QuietDatabase,
  shopId: number,
  kind: DeliveryKind,
  { from, to }: DeliveryFilter,
  { low, high, isNewer }: Between,
): Promise<Between> {
  const first = from === undefined ? 0 : await numberAt(db, shopId, kind, from - CLOCK_MARGIN_MS);
  const end = to === undefined ? high : await numberAt(db, shopId, kind, to + CLOCK_MARGIN_MS);
  return { low: Math.max(low, first - 1), high: Math.min(high, end), isNewer };
}

/** Returns the number after the last delivery that was queued before a time. Uses a binary search. */
async function numberAt(db: QuietDatabase, shopId: number, kind: DeliveryKind, time: number): Promise<number> {
  const found = await db.get<{ number: number }>(
    sql`WITH RECURSIVE halves (number, step) AS (
        SELECT ${0}, ${HIGHEST_STEP}
        UNION ALL
        SELECT number + CASE WHEN (
            SELECT created_at FROM deliveries
            WHERE shop_id = ${shopId} AND kind = ${KINDS[kind]} AND deliveries.number > halves.number - 1 + step
            ORDER BY deliveries.number LIMIT 1
          ) < ${time} THEN step ELSE 0 END, step / 2
        FROM halves WHERE step > 0
      )
      SELECT max(number) + 1 AS number FROM halves`,
  );
  return found?.number ?? 0;
}

/** Chooses the index that finds the fewest deliveries for a filter. @returns the ranges to read */
async function rangesOf(
  db: QuietDatabase,
  shopId: number,
  kind: DeliveryKind,
  { status, topic, from, to, subjects }: DeliveryFilter,
): Promise<LogRange[]> {
  const conditions = [
    ...(topic === undefined ? [] : [sql`topic = ${topic}`]),
    ...(from === undefined ? [] : [sql`created_at >= ${from}`]),
    ...(to === undefined ? [] : [sql`created_at < ${to}`]),
  ];
  const ofStatus = status === undefined ? [] : [sql`status = ${STATUSES[status]}`];
  if (subjects !== undefined)
    return subjects.map((each) => ({
      kind,
      index: "deliveries_of_subject",
      condition: sql`${either(db, { sqlite: SUBJECT, postgres: sql`subject` })} = ${each.subject}`,
      filter: all([...conditions, ...ofStatus, ...orderConditions(db, each)]),
    }));
  if (status === "dead")
    return [{ kind, index: "deliveries_dead", condition: sql`status = 'dead'`, filter: all(conditions) }];
  const isWaiting = status === "pending" || status === "retrying";
  if (isWaiting && (await hasFewWaiting(db, shopId, kind)))
    return [
      {
        kind,
        index: "deliveries_due",
        condition: sql`claimable_at IS NOT NULL`,
        filter: all([...conditions, ...ofStatus]),
      },
    ];
  return [{ kind, index: "deliveries_of_shop", condition: sql`1 = 1`, filter: all([...conditions, ...ofStatus]) }];
}

function all(conditions: readonly SQL[]): SQL | undefined {
  return conditions.length === 0 ? undefined : conditions.reduce((first, second) => sql`${first} AND ${second}`);
}

/** Returns conditions on the body's text. Quotes in strings are escaped, so the conditions can only match fields. */
function orderConditions(db: QuietDatabase, { order }: SubjectSearch): SQL[] {
  if (order === undefined) return [];
  const has = (text: string) => sql`${either(db, { sqlite: sql`instr`, postgres: sql`strpos` })}(body, ${text}) > 0`;
  const isDeclined = sql`(${has('"order_id":null,')} AND ${has(`"cycle_number":${order.cycle},`)})`;
  return [order.gid === null ? isDeclined : sql`(${has(`"order_id":"${order.gid}"`)} OR ${isDeclined})`];
}

async function hasFewWaiting(db: QuietDatabase, shopId: number, kind: DeliveryKind): Promise<boolean> {
  const counted = await db.get<{ n: number }>(
    sql`SELECT count(*) AS n FROM (
        SELECT 1 AS one FROM deliveries
        WHERE shop_id = ${shopId} AND kind = ${KINDS[kind]} AND claimable_at IS NOT NULL LIMIT ${SCANNED + 1}
      ) AS waiting`,
  );
  return (counted?.n ?? 0) <= SCANNED;
}

/** Reads up to `limit` + 1 deliveries. `end` is the last scanned delivery, if the scan reached its limit. */
async function readRange(
  db: QuietDatabase,
  shopId: number,
  { kind, index, condition, filter }: LogRange,
  { low, high, isNewer }: Between,
  limit: number,
): Promise<{ rows: LogRow[]; end: LogPlace | undefined }> {
  const order = isNewer ? sql`ORDER BY number` : sql`ORDER BY number DESC`;
  // Without the index hint, SQLite would read all deliveries of a shop that has no dead deliveries.
  const table = either(db, { sqlite: INDEXED[index], postgres: index === "deliveries_of_subject" ? OF_SUBJECT : ALL });
  const ofRange = sql`FROM ${table} WHERE shop_id = ${shopId} AND kind = ${KINDS[kind]} AND ${condition}`;
  const scanned =
    filter === undefined || index === "deliveries_due"
      ? undefined
      : await db.get<LogPlace>(
          sql`SELECT number, id ${ofRange} AND number > ${low} AND number < ${high} ${order}
            LIMIT 1 OFFSET ${SCANNED - 1}`,
        );
  const first = isNewer || scanned === undefined ? low : scanned.number - 1;
  const end = isNewer && scanned !== undefined ? scanned.number + 1 : high;
  const rows = await db.all<LogRow>(
    sql`SELECT number, ${LISTED}, substr(body, 1, ${BODY_START}) AS "bodyStart" ${ofRange}
      AND number > ${first} AND number < ${end} ${filter === undefined ? sql`` : sql`AND ${filter}`}
      ${order} LIMIT ${limit + 1}`,
  );
  return { rows, end: rows.length > limit ? undefined : scanned };
}

const ALL = sql`deliveries`;
const OF_SUBJECT = sql`delivery_subjects JOIN deliveries USING (shop_id, kind, number)`;
const INDEXED = {
  deliveries_of_shop: sql`deliveries INDEXED BY deliveries_of_shop`,
  deliveries_dead: sql`deliveries INDEXED BY deliveries_dead`,
  deliveries_due: sql`deliveries INDEXED BY deliveries_due`,
  deliveries_of_subject: sql`deliveries INDEXED BY deliveries_of_subject`,
} satisfies Record<LogRange["index"], SQL>;

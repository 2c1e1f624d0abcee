import type { AuditEntry, AuditedValues } from "../../domain/audit.ts";
import { nextTurn } from "../../lib/waits.ts";
import type { AuditFilter, AuditPage, AuditPlace, AuditStore, NumberedEntry } from "../port/audit.ts";
import { type QuietDatabase, sql, type TransactionWork, tx } from "./quiet-database.ts";

/** Maximum number of rows per transaction of `prune`. A low number keeps waits of other transactions short. */
const ROWS_PER_STEP = 500;
/** Maximum number of entries that one step scans. A scan takes milliseconds, during which SQLite blocks the program. */
const SCANNED = 5_000;

interface StoredEntry extends Omit<NumberedEntry, "before" | "after"> {
  before: string | null;
  after: string | null;
}

export function auditStore(db: QuietDatabase): AuditStore {
  return {
    async add(shopId, entry) {
      await db.run(entryInsertion(shopId, entry));
    },

    async list(shopId, filter, place, limit) {
      return (await search(db, shopId, { filter, place, limit }, () => true)).entries;
    },

    page: (shopId, filter, place, limit, goesOn) => search(db, shopId, { filter, place, limit }, goesOn),

    async prune(before) {
      let removed = 0;
      for (let some = ROWS_PER_STEP; some === ROWS_PER_STEP; await nextTurn()) {
        some = await db.run(
          sql`DELETE FROM audit WHERE number IN
            (SELECT number FROM audit WHERE at < ${before} ORDER BY at LIMIT ${ROWS_PER_STEP})`,
        );
        removed += some;
      }
      return removed;
    },
  };
}

interface EntrySearch {
  filter: AuditFilter;
  place: AuditPlace;
  limit: number;
}

async function search(
  db: QuietDatabase,
  shopId: number,
  { filter, place, limit }: EntrySearch,
  goesOn: () => boolean,
): Promise<AuditPage> {
  let { entries, end } = await searchPart(db, shopId, { filter, place, limit });
  while (end !== null && goesOn()) {
    await nextTurn();
    const beside = place.newerThan === undefined ? { olderThan: end } : { newerThan: end };
    const next = await searchPart(db, shopId, { filter, place: beside, limit: limit - entries.length });
    entries = newestFirst([...entries, ...next.entries]);
    end = next.end;
  }
  return { entries, end };
}

async function searchPart(
  db: QuietDatabase,
  shopId: number,
  { filter, place: { olderThan = Number.MAX_SAFE_INTEGER, newerThan }, limit }: EntrySearch,
): Promise<AuditPage> {
  const isNewer = newerThan !== undefined;
  const order = isNewer ? sql`ORDER BY number` : sql`ORDER BY number DESC`;
  const place = isNewer ? sql`number > ${newerThan}` : sql`number < ${olderThan}`;
  const isFiltered = Object.values(filter).some((value) => value !== undefined);
  const last = isFiltered
    ? await db.get<{ number: number }>(
        sql`SELECT number FROM audit WHERE shop_id = ${shopId} AND ${place} ${order} LIMIT 1 OFFSET ${SCANNED - 1}`,
      )
    : undefined;
  const within =
    last === undefined ? sql`` : isNewer ? sql`AND number <= ${last.number}` : sql`AND number >= ${last.number}`;
  const rows = await db.all<StoredEntry>(
    sql`SELECT number, at, who, origin AS "from", action, subject,
        old_values AS "before", new_values AS "after" FROM audit
      WHERE shop_id = ${shopId} AND ${place} ${within} ${conditions(filter)} ${order} LIMIT ${limit}`,
  );
  const entries = rows.map((row) => ({ ...row, before: valuesIn(row.before), after: valuesIn(row.after) }));
  return { entries: newestFirst(entries), end: rows.length === limit ? null : (last?.number ?? null) };
}

function newestFirst(entries: NumberedEntry[]): NumberedEntry[] {
  return entries.sort((a, b) => b.number - a.number);
}

/**
 * Returns a database that adds an entry to the audit list, in the transaction of each change. It adds no entry if the
 * change throws, changes no row or returns false. Each operation of a store must be one statement or one transaction.
 */
export function withEntry(db: QuietDatabase, shopId: number, entry: AuditEntry): QuietDatabase {
  const audited = <T>(work: () => TransactionWork<T>, isChange: (result: T) => boolean) =>
    db.transaction(function* () {
      const result = yield* work();
      if (isChange(result)) yield* tx.run(entryInsertion(shopId, entry));
      return result;
    });
  return {
    ...db,
    run: (statement) =>
      audited(
        () => tx.run(statement),
        (rows) => rows > 0,
      ),
    transaction: (work) => audited(work, (result) => result !== false),
  };
}

/** Returns the statement that adds an entry. */
export function entryInsertion(shopId: number, { at, who, from, action, subject, before, after }: AuditEntry) {
  return sql`INSERT INTO audit (shop_id, at, who, origin, action, subject, old_values, new_values)
    VALUES (${shopId}, ${at}, ${who}, ${from}, ${action}, ${subject}, ${textOf(before)}, ${textOf(after)})`;
}

function textOf(values: AuditedValues | null): string | null {
  return values === null ? null : JSON.stringify(values);
}

function valuesIn(text: string | null): AuditedValues | null {
  return text === null ? null : (JSON.parse(text) as AuditedValues);
}

function conditions({ who, action, from, to }: AuditFilter) {
  const who_ = who === undefined ? sql`` : sql`AND substr(who, 1, length(${who})) = ${who}`;
  const action_ = action === undefined ? sql`` : sql`AND action = ${action}`;
  const from_ = from === undefined ? sql`` : sql`AND at >= ${from}`;
  const to_ = to === undefined ? sql`` : sql`AND at < ${to}`;
  return sql`${who_} ${action_} ${from_} ${to_}`;
}

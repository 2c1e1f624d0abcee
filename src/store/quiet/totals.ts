import { type SQL, sql as template } from "drizzle-orm";
import { nextTurn } from "../../lib/waits.ts";
import type { Totals, TotalsStore } from "../port/totals.ts";
import { either, type QuietDatabase, type StatementValue, sql } from "./quiet-database.ts";
import { coveredUntil, JOIN_SYNCS } from "./syncs.ts";

/** Maximum number of rows in a slice. On SQLite, a slice blocks the program. */
const SLICE = 500;

/** Rows to read in the order of an index whose first column is the shop. */
interface IndexWalk {
  from: SQL;
  condition: SQL;
  /** The columns of the index, by which the rows are read. The first is the id of the shop. */
  columns: readonly string[];
  selected?: SQL;
}

type IndexRow = Record<string, StatementValue>;

/** Counts the waiting and failed work of all shops, and their refused connections. Also reads the times of `Totals`. */
export function totalsStore(db: QuietDatabase): TotalsStore {
  return {
    async read(now) {
      const waiting = await countWaiting(db);
      return {
        deliveries: { ...waiting.counts, dead: await countRows(walk(db, deadDeliveries(db))) },
        firstDueAt: waiting.firstDueAt,
        inbox: { waiting: await countRows(walk(db, INBOX.waiting)), failed: await countRows(walk(db, INBOX.failed)) },
        ...(await readConnections(db, now)),
      };
    },
  };
}

/** Names the index, because SQLite would sometimes choose an index of the whole log. */
function deliveriesBy(db: QuietDatabase, index: "deliveries_due" | "deliveries_dead"): SQL {
  return either(db, { sqlite: sql`deliveries INDEXED BY ${template.raw(index)}`, postgres: sql`deliveries` });
}

function deadDeliveries(db: QuietDatabase): IndexWalk {
  const from = deliveriesBy(db, "deliveries_dead");
  return { from, condition: sql`status = 'dead'`, columns: ["shop_id", "kind", "number"] };
}

const INBOX: Record<"waiting" | "failed", IndexWalk> = {
  waiting: {
    from: sql`inbox`,
    condition: sql`next_attempt_at IS NOT NULL`,
    columns: ["shop_id", "needs_platform", "next_attempt_at", "number"],
  },
  failed: { from: sql`inbox`, condition: sql`status = 'failed'`, columns: ["shop_id", "number"] },
};

async function countWaiting(db: QuietDatabase) {
  const counts = { pending: 0, retrying: 0 };
  let firstDueAt: number | null = null;
  const due: IndexWalk = {
    from: deliveriesBy(db, "deliveries_due"),
    condition: sql`claimable_at IS NOT NULL`,
    columns: ["shop_id", "kind", "claimable_at", "number"],
    selected: sql`status`,
  };
  for await (const rows of walk<{ status: "pending" | "retrying"; claimable_at: number }>(db, due))
    for (const { status, claimable_at } of rows) {
      counts[status] += 1;
      firstDueAt = Math.min(firstDueAt ?? claimable_at, claimable_at);
    }
  return { counts, firstDueAt };
}

async function readConnections(db: QuietDatabase, now: number): Promise<Pick<Totals, "refusedShops" | "reconciledAt">> {
  const totals = { refusedShops: 0, reconciledAt: null as number | null };
  for await (const range of rangesOfShops(db)) {
    const found = await db.get<{ refused: number; oldest: number | null }>(
      sql`SELECT count(CASE WHEN refused THEN 1 END) AS refused,
          min(CASE WHEN refused THEN NULL WHEN connected_at > covered THEN connected_at ELSE covered END) AS oldest
        FROM (
          SELECT connected_at, trouble IS NOT NULL AS refused, ${coveredUntil(now)} AS covered
          FROM connections JOIN shops ON shops.id = connections.shop_id AND removal_started_at IS NULL ${JOIN_SYNCS}
          ${range}
        ) AS connected`,
    );
    totals.refusedShops += found?.refused ?? 0;
    const oldest = found?.oldest ?? null;
    if (oldest !== null) totals.reconciledAt = Math.min(totals.reconciledAt ?? oldest, oldest);
  }
  return totals;
}

/** Divides the connections into ranges. PostgreSQL gets one range: its joins would read whole tables for each range. */
async function* rangesOfShops(db: QuietDatabase): AsyncGenerator<SQL> {
  if (db.engine === "postgres") return yield sql``;
  const last = (await db.get<{ id: number | null }>(sql`SELECT max(shop_id) AS id FROM connections`))?.id ?? 0;
  for (let after = 0; after < last; after += SLICE) {
    yield sql`WHERE connections.shop_id > ${after} AND connections.shop_id <= ${after + SLICE}`;
    await nextTurn();
  }
}

async function countRows(slices: AsyncIterable<readonly unknown[]>): Promise<number> {
  let count = 0;
  for await (const rows of slices) count += rows.length;
  return count;
}

/**
 * Reads rows in the order of an index, in slices. Each slice has its own turn of the event loop. In a comparison of row
 * values, SQLite uses the index only for the first columns. So the rows after a position are found in steps. The first
 * step finds rows that differ from the position only in the last column. Later steps compare fewer columns.
 */
async function* walk<R extends object>(db: QuietDatabase, { from, condition, columns, selected }: IndexWalk) {
  const names = columns.map((name) => template.raw(name));
  const list = template.join(selected === undefined ? names : [...names, selected], sql`, `);
  let position: StatementValue[] = [0];
  let slice: (R & IndexRow)[];
  do {
    slice = [];
    for (let shared = position.length - 1; shared >= 0 && slice.length < SLICE; shared -= 1) {
      const after = position.slice(0, shared + 1).map((value, index) => {
        const name = template.raw(columns[index] ?? "");
        return index === shared ? sql`${name} > ${value}` : sql`${name} = ${value}`;
      });
      const where = template.join([condition, ...after], sql` AND `);
      const order = template.join(names.slice(shared), sql`, `);
      const limit = SLICE - slice.length;
      const found = sql`SELECT ${list} FROM ${from} WHERE ${where} ORDER BY ${order} LIMIT ${limit}`;
      slice.push(...(await db.all<R & IndexRow>(found)));
    }
    yield slice;
    const last = slice.at(-1);
    position = columns.map((name) => last?.[name] ?? 0);
    await nextTurn();
  } while (slice.length === SLICE);
}

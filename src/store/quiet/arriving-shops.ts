import type { AuditEntry } from "../../domain/audit.ts";
import { SdsError } from "../../domain/error.ts";
import type { CheckpointOrigin } from "../../domain/pages/checkpoint.ts";
import type { Shop } from "../../domain/shop.ts";
import { movedTableOf, valueIn } from "../copy/moved-tables.ts";
import type { Vault } from "../files/vault.ts";
import type { Departure, MovedShop, ShopMoves } from "../port/shop-moves.ts";
import { EPOCH_BYTES } from "../port/store.ts";
import { entryInsertion } from "./audit.ts";
import { either, lockFor, type QuietDatabase, sql, type TransactionWork, tx } from "./quiet-database.ts";
import { forgetDeparture, hide, insertShop, intakePurpose } from "./shops.ts";

/**
 * Maximum number of row numbers per table that all shops of the source may use while one shop moves. They are enough
 * for a day with 1,000 rows a second.
 */
const NUMBERS_DURING_MOVE = 100_000_000;
/**
 * Highest number that a shop may reserve. JavaScript counts exactly up to 2^53. The numbers between these two limits
 * are for rows added later.
 */
const MAX_NUMBER = 2 ** 52;
/** Maximum number of row numbers per table that other connections may take while `reserveNumbers` runs. */
export const NUMBERS_MEANWHILE = 1_000_000;

export const givenUp = () =>
  new SdsError("conflict", "the move was given up: run the command again to begin another one");

type Arrivals = Pick<ShopMoves, "arrival" | "arrive" | "arm" | "disarm" | "activate" | "refuse">;

/** Makes the operations of a move that run on the target database. */
export function arrivals(db: QuietDatabase, vault: Vault): Arrivals {
  return {
    async arrival(move) {
      const isArriving = sql`SELECT 1 AS one FROM shop_moves WHERE move = ${move} AND state = 'arriving'`;
      if ((await db.get(isArriving)) !== undefined) return "arriving";
      return (await db.get(arrivalOf(move))) === undefined ? undefined : "arrived";
    },

    arrive: (departure, now) => db.transaction(() => arrive(db, vault, departure, now)),

    arm: (move, stop) =>
      db.transaction(function* () {
        yield* arriving(db, move);
        yield* tx.run(sql`UPDATE shop_moves SET stop = ${stop} WHERE move = ${move}`);
      }),

    disarm: (move, stop) =>
      db.transaction(function* () {
        yield* tx.run(
          sql`UPDATE shop_moves SET stop = NULL WHERE move = ${move} AND state = 'arriving' AND stop = ${stop}`,
        );
        return (yield* tx.get(arrivalOf(move))) === undefined;
      }),

    activate: (move, stop, origin, entry) => db.transaction(() => activate(db, move, stop, origin, entry)),

    refuse: (move) =>
      db.transaction(function* () {
        // This DELETE waits for a running activation, so it comes before the check.
        yield* tx.run(sql`DELETE FROM shop_moves WHERE move = ${move} AND state = 'arriving'`);
        return (yield* tx.get(arrivalOf(move))) === undefined;
      }),
  };
}

/**
 * Finds the arrival of a shop that was activated. A command may be killed after the activation, and run again. Then the
 * shop may have moved on, or may have been removed. The row in `shop_moves` outlives the shop, so the second run does
 * not bring the shop back. Arrivals of an earlier version are only in the table of origins.
 */
const arrivalOf = (move: string) =>
  sql`SELECT 1 AS one FROM shop_moves WHERE move = ${move} AND state = 'moved' AND target IS NULL
    UNION ALL SELECT 1 FROM checkpoint_origins WHERE move = ${move}`;

function* activate(
  db: QuietDatabase,
  move: string,
  stop: string,
  { epoch, formerEpochs, shopId }: CheckpointOrigin,
  entry: AuditEntry,
): TransactionWork<boolean> {
  const shop = yield* tx.get<Pick<Shop, "id" | "domain" | "firstDomain">>(
    sql`SELECT id, shops.domain, coalesce(shops.first_domain, shops.domain) AS "firstDomain"
      FROM shop_moves JOIN shops ON id = shop_id
      WHERE move = ${move} AND state = 'arriving' AND stop = ${stop}
      ${either(db, { sqlite: sql``, postgres: sql`FOR UPDATE OF shop_moves` })}`,
  );
  if (shop === undefined) return false;
  // The shop may have been renamed since it arrived.
  yield* requireFreeDomains(shop);
  yield* hide(shop.id, null);
  yield* tx.run(
    sql`INSERT INTO checkpoint_origins (shop_id, move, epoch, former_id)
      VALUES (${shop.id}, ${move}, ${Buffer.concat([epoch, ...formerEpochs])}, ${shopId})`,
  );
  yield* beginBranch(db, shop.id);
  yield* forgetDeparture(shop);
  yield* tx.run(
    sql`UPDATE shop_moves SET state = 'moved', shop_id = NULL, domain = '', first_domain = '', stop = NULL,
        offsets = NULL
      WHERE move = ${move}`,
  );
  yield* tx.run(entryInsertion(shop.id, entry));
  return true;
}

/** Splits the bytes of an origin into its epoch and its former epochs. */
export function splitEpochs(bytes: Uint8Array): Uint8Array[] {
  const starts = Array.from({ length: bytes.length / EPOCH_BYTES }, (_, index) => index * EPOCH_BYTES);
  return starts.map((start) => bytes.slice(start, start + EPOCH_BYTES));
}

/**
 * Begins a new branch of the shop's changes. The source may have lost changes in a failover. So this database must keep
 * refusing checkpoints beyond the changes that arrived. A standby has the old branch until it has received all rows.
 * Until then no page is read from the standby.
 */
function* beginBranch(db: QuietDatabase, shopId: number): TransactionWork<void> {
  const counters = either(db, { sqlite: sql`shops`, postgres: sql`shop_changes` });
  const id = either(db, { sqlite: sql`id`, postgres: sql`shop_id` });
  const lower = either(db, { sqlite: sql`min`, postgres: sql`least` });
  yield* tx.run(
    sql`INSERT INTO former_branches (shop_id, branch, change_count)
      SELECT ${id}, branch, change_count FROM ${counters} WHERE ${id} = ${shopId}
      ON CONFLICT (shop_id, branch)
        DO UPDATE SET change_count = ${lower}(former_branches.change_count, excluded.change_count)`,
  );
  const branch = either(db, {
    sqlite: sql`branch = lower(hex(randomblob(16)))`,
    postgres: sql`branch = replace(gen_random_uuid()::text, '-', ''),
      timeline = left(pg_walfile_name(pg_current_wal_lsn()), 8)`,
  });
  yield* tx.run(sql`UPDATE ${counters} SET ${branch} WHERE ${id} = ${shopId}`);
}

/** Locks an arriving shop. @throws SdsError `conflict` if the move was given up, or has ended */
export function* arriving(db: QuietDatabase, move: string): TransactionWork<MovedShop & { stop: string | null }> {
  const found = yield* tx.get<{ id: number; offsets: string; stop: string | null }>(
    sql`SELECT shop_id AS id, offsets, stop FROM shop_moves WHERE move = ${move} AND state = 'arriving'
      ${lockFor(db, "UPDATE")}`,
  );
  if (found === undefined) throw givenUp();
  return { ...found, offsets: JSON.parse(found.offsets) as Record<string, number> };
}

function* arrive(
  db: QuietDatabase,
  vault: Vault,
  { move, row, spans }: Departure,
  now: number,
): TransactionWork<MovedShop> {
  // Without this lock, two shops that arrive at once could reserve the same numbers.
  if (db.engine === "postgres") yield* tx.run(sql`LOCK TABLE shop_moves IN SHARE ROW EXCLUSIVE MODE`);
  const begun = yield* tx.get(sql`SELECT 1 AS one FROM shop_moves WHERE move = ${move} AND state = 'arriving'`);
  if (begun !== undefined) return yield* arriving(db, move);
  const text = (column: string) => String(valueIn(movedTableOf("shops"), row, column) ?? "");
  const domain = text("domain");
  const firstDomain = text("first_domain") || domain;
  // No shop may arrive while another shop leaves this database. The arrival reserves many row numbers. After that, new
  // rows of the leaving shop would get numbers above the range that its target database reserved.
  const leaving = yield* tx.get<{ domain: string }>(sql`SELECT domain FROM shop_moves WHERE state = 'leaving' LIMIT 1`);
  if (leaving !== undefined)
    throw new SdsError(
      "conflict",
      `the shop ${leaving.domain} is leaving the other database: wait until it has moved, or give up its move there ` +
        "with --cancel",
    );
  yield* requireFreeDomains({ id: 0, domain, firstDomain });
  const sealed = vault.sealNow(text("intake_secret"), intakePurpose(domain));
  const currency = text("currency");
  const shop = yield* insertShop(db, { domain, plan: "free", currency }, sealed, now);
  if (shop === undefined) throw taken(domain, false);
  yield* hide(shop.id, now);
  const offsets: Record<string, number> = {};
  for (const [table, { low, high }] of Object.entries(spans)) {
    const first = yield* reserveNumbers(db, table, high - low + NUMBERS_DURING_MOVE);
    offsets[table] = first - low;
  }
  yield* tx.run(
    sql`INSERT INTO shop_moves (move, shop_id, state, domain, first_domain, offsets)
      VALUES (${move}, ${shop.id}, 'arriving', ${domain}, ${firstDomain}, ${JSON.stringify(offsets)})`,
  );
  return { id: shop.id, offsets };
}

/** @throws SdsError `conflict` if another shop of this database has one of the domains */
function* requireFreeDomains({
  id,
  domain,
  firstDomain,
}: Pick<Shop, "id" | "domain" | "firstDomain">): TransactionWork<void> {
  const other = yield* tx.get<{ domain: string; state: string | null }>(
    sql`SELECT shops.domain, state FROM shops LEFT JOIN shop_moves ON shop_id = id WHERE id <> ${id}
      AND (shops.domain IN (${domain}, ${firstDomain}) OR shops.first_domain IN (${domain}, ${firstDomain})) LIMIT 1`,
  );
  if (other !== undefined) throw taken(other.domain, other.state === "arriving");
}

function taken(domain: string, isArriving: boolean): SdsError {
  const message = isArriving
    ? `the other database has an unfinished move of ${domain}: remove it there with ` +
      `\`sds shop move ${domain} --cancel-lost\``
    : `the other database has the shop ${domain} already: name another database`;
  return new SdsError("conflict", message);
}

/** Reserves row numbers for one shop. @returns the first number @throws SdsError `conflict` if none are free */
function* reserveNumbers(db: QuietDatabase, table: string, count: number): TransactionWork<number> {
  const requireFree = (first: number) => {
    if (first + count <= MAX_NUMBER) return;
    throw new SdsError("conflict", `the other database has no free numbers for \`${table}\`: name another database`);
  };
  if (db.engine === "sqlite") {
    const last = yield* tx.get<{ seq: number }>(sql`SELECT seq FROM sqlite_sequence WHERE name = ${table}`);
    const first = (last?.seq ?? 0) + 1;
    requireFree(first);
    yield* tx.run(sql`DELETE FROM sqlite_sequence WHERE name = ${table}`);
    yield* tx.run(sql`INSERT INTO sqlite_sequence (name, seq) VALUES (${table}, ${first + count})`);
    return first;
  }
  const sequence = `${table}_number_seq`;
  const next = yield* tx.get<{ number: number }>(sql`SELECT nextval(${sequence}::regclass) AS number`);
  const first = (next?.number ?? 0) + NUMBERS_MEANWHILE;
  // PostgreSQL does not roll back changes of a sequence, so this check comes before `setval`.
  requireFree(first);
  yield* tx.run(sql`SELECT setval(${sequence}::regclass, ${first + count})`);
  return first;
}

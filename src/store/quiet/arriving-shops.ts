import { SdsError } from "../../domain/error.ts";
import { movedTableOf, valueIn } from "../copy/moved-tables.ts";
import type { Vault } from "../files/vault.ts";
import type { Departure, MovedShop, ShopMoves } from "../port/shop-moves.ts";
import { entryInsertion } from "./audit.ts";
import { lockFor, type QuietDatabase, sql, type TransactionWork, tx } from "./quiet-database.ts";
import { addShop, hide, intakePurpose } from "./shops.ts";

/** Maximum number of row numbers per table that all shops of the source may use while one shop moves. */
const NUMBERS_DURING_MOVE = 1_000_000_000;
/** Maximum number of row numbers per table that other connections may take while `reserveNumbers` runs. */
const NUMBERS_MEANWHILE = 1_000_000;

export const givenUp = () =>
  new SdsError("conflict", "the move was given up: run the command again to begin another one");

type Arrivals = Pick<ShopMoves, "arrival" | "arrive" | "arm" | "disarm" | "activate" | "refuse">;

/** Makes the operations of a move that run on the target database. */
export function arrivals(db: QuietDatabase, vault: Vault): Arrivals {
  const hasArrived = (move: string) => tx.get(sql`SELECT 1 AS one FROM checkpoint_origins WHERE move = ${move}`);

  return {
    async arrival(move) {
      const found = await db.get<{ state: "arriving" | "arrived" }>(
        sql`SELECT 'arriving' AS state FROM shop_moves WHERE move = ${move} AND state = 'arriving'
          UNION ALL SELECT 'arrived' FROM checkpoint_origins WHERE move = ${move}`,
      );
      return found?.state;
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
        return (yield* hasArrived(move)) === undefined;
      }),

    activate: (move, stop, { epoch, shopId }, entry) =>
      db.transaction(function* () {
        const armed = yield* tx.get<{ id: number }>(
          sql`SELECT shop_id AS id FROM shop_moves WHERE move = ${move} AND state = 'arriving' AND stop = ${stop}
            ${lockFor(db, "UPDATE")}`,
        );
        if (armed === undefined) return false;
        yield* hide(armed.id, null);
        yield* tx.run(
          sql`INSERT INTO checkpoint_origins (shop_id, move, epoch, former_id)
            VALUES (${armed.id}, ${move}, ${epoch}, ${shopId})`,
        );
        yield* tx.run(sql`DELETE FROM shop_moves WHERE move = ${move}`);
        yield* tx.run(entryInsertion(armed.id, entry));
        return true;
      }),

    refuse: (move) =>
      db.transaction(function* () {
        if ((yield* hasArrived(move)) !== undefined) return false;
        yield* tx.run(sql`DELETE FROM shop_moves WHERE move = ${move} AND state = 'arriving'`);
        return true;
      }),
  };
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
  const other = yield* tx.get<{ domain: string; state: string | null }>(
    sql`SELECT shops.domain, state FROM shops LEFT JOIN shop_moves ON shop_id = id
      WHERE shops.domain IN (${domain}, ${firstDomain}) OR shops.first_domain IN (${domain}, ${firstDomain}) LIMIT 1`,
  );
  if (other !== undefined) throw taken(other.domain, other.state === "arriving");
  const sealed = vault.sealNow(text("intake_secret"), intakePurpose(firstDomain));
  const currency = text("currency");
  const shop = yield* addShop(db, { domain, plan: "free", currency }, sealed, now);
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

function taken(domain: string, isArriving: boolean): SdsError {
  const message = isArriving
    ? `the other database has an unfinished move of ${domain}: remove it there with ` +
      `\`sds shop move ${domain} --cancel-lost\``
    : `the other database has the shop ${domain} already: name another database`;
  return new SdsError("conflict", message);
}

/** Reserves row numbers of a table for one shop. @returns the first number */
function* reserveNumbers(db: QuietDatabase, table: string, count: number): TransactionWork<number> {
  if (db.engine === "sqlite") {
    const last = yield* tx.get<{ seq: number }>(sql`SELECT seq FROM sqlite_sequence WHERE name = ${table}`);
    const first = (last?.seq ?? 0) + 1;
    yield* tx.run(sql`DELETE FROM sqlite_sequence WHERE name = ${table}`);
    yield* tx.run(sql`INSERT INTO sqlite_sequence (name, seq) VALUES (${table}, ${first + count})`);
    return first;
  }
  const sequence = `${table}_number_seq`;
  const next = yield* tx.get<{ number: number }>(sql`SELECT nextval(${sequence}::regclass) AS number`);
  const first = (next?.number ?? 0) + NUMBERS_MEANWHILE;
  yield* tx.run(sql`SELECT setval(${sequence}::regclass, ${first + count})`);
  return first;
}

import { sql as template } from "drizzle-orm";
import type { ShopRef } from "../../domain/shop.ts";
import { NUMBERED_TABLES } from "../copy/moved-tables.ts";
import type { Vault } from "../files/vault.ts";
import { movesElsewhere, type NumberSpans, overtaken, type ShopMove, type ShopMoves } from "../port/shop-moves.ts";
import { arrivals, arriving, givenUp, NUMBERS_MEANWHILE, splitEpochs } from "./arriving-shops.ts";
import { movedRows } from "./moved-rows.ts";
import { either, lockFor, type QuietDatabase, sql, type TransactionWork, tx } from "./quiet-database.ts";
import { emptyAtOnce } from "./shop-removal.ts";
import { hide } from "./shops.ts";

type Move = ShopRef & { move: string };

/** Makes the operations of moves. A hidden shop is marked for removal, but `shopRemoval` does not remove it. */
export function shopMoves(db: QuietDatabase, vault: Vault): ShopMoves {
  const { read, readBatch, write } = movedRows(db, vault);
  return {
    ...departures(db, read),
    ...arrivals(db, vault),
    read,
    readBatch,

    write: (move, stop, table, removed, added) =>
      db.transaction(function* () {
        const shop = yield* arriving(db, move);
        if (shop.stop !== stop) throw overtaken();
        // Shows the shop within this transaction, because triggers refuse rows of a hidden shop.
        const hidden = yield* tx.get<{ at: number }>(
          sql`SELECT removal_started_at AS at FROM shops WHERE id = ${shop.id}`,
        );
        yield* hide(shop.id, null);
        yield* write(shop, table, removed, added);
        yield* hide(shop.id, hidden?.at ?? 0);
      }),

    async find(domain) {
      return db.get<ShopMove>(
        sql`SELECT move, state, target FROM shop_moves LEFT JOIN shops ON id = shop_id
          WHERE coalesce(shops.domain, shop_moves.domain) = ${domain} ORDER BY state = 'moved' LIMIT 1`,
      );
    },

    async isAway(domain) {
      const found = await db.get(
        sql`SELECT 1 AS one FROM shop_moves LEFT JOIN shops ON shops.id = shop_id
          WHERE (shops.id IS NULL AND target IS NOT NULL OR removal_started_at IS NOT NULL) AND ${domain} IN (
            coalesce(shops.domain, shop_moves.domain), coalesce(shops.first_domain, shop_moves.first_domain)) LIMIT 1`,
      );
      return found !== undefined;
    },

    async origins(shopId) {
      const found = await db.all<{ epoch: Uint8Array; formerId: number }>(
        sql`SELECT epoch, former_id AS "formerId" FROM checkpoint_origins WHERE shop_id = ${shopId}`,
      );
      return found.map(({ epoch, formerId }) => {
        const [current = epoch, ...formerEpochs] = splitEpochs(epoch);
        return { epoch: current, formerEpochs, shopId: formerId };
      });
    },
  };
}

type Departures = Pick<ShopMoves, "begin" | "stop" | "sending" | "goOn" | "forget" | "leave">;

function departures(db: QuietDatabase, read: ShopMoves["read"]): Departures {
  /** Locks the row of a leaving shop. The lock waits for running commits of the shop. */
  function* leaving(move: string): TransactionWork<Move & { firstDomain: string; stop: string | null }> {
    const found = yield* tx.get<Move & { firstDomain: string; stop: string | null }>(
      sql`SELECT id, shops.domain, coalesce(shops.first_domain, shops.domain) AS "firstDomain", move, stop
        FROM shops JOIN shop_moves ON shop_id = id WHERE move = ${move} AND state = 'leaving' ${lockFor(db, "UPDATE")}`,
    );
    if (found === undefined) throw givenUp();
    return found;
  }

  return {
    async begin(domain, newMove, target) {
      const begun = await db.transaction(() => beginMove(db, domain, newMove, target));
      if (begun === undefined) return undefined;
      const shop = { id: begun.id, offsets: {} };
      const [row = []] = await read(shop, "shops", {});
      return { move: begun.move, shop, spans: await numberSpans(db, begun.id), row };
    },

    stop: (move, stop, now) =>
      db.transaction(function* () {
        const { id } = yield* leaving(move);
        const renewing = yield* tx.get(
          sql`SELECT 1 AS one FROM connections WHERE shop_id = ${id} AND renewing IS NOT NULL
            AND renewing_until >= ${now}`,
        );
        if (renewing !== undefined) return false;
        yield* hide(id, now);
        yield* tx.run(sql`UPDATE shop_moves SET stop = ${stop} WHERE move = ${move}`);
        return true;
      }),

    async sending(move, now) {
      const found = await db.get<{ count: number }>(
        sql`SELECT count(*) AS count FROM deliveries
          WHERE shop_id = (SELECT shop_id FROM shop_moves WHERE move = ${move})
            AND lease IS NOT NULL AND claimable_at > ${now}`,
      );
      return found?.count ?? 0;
    },

    goOn: (move, stop) =>
      db.transaction(function* () {
        const shop = yield* leaving(move);
        if (shop.stop !== stop) return false;
        yield* tx.run(sql`UPDATE shop_moves SET stop = NULL WHERE move = ${move}`);
        yield* hide(shop.id, null);
        return true;
      }),

    async forget(move) {
      await db.run(sql`DELETE FROM shop_moves WHERE move = ${move} AND state = 'leaving' AND stop IS NULL`);
    },

    leave: (move) =>
      db.transaction(function* () {
        const { id, domain, firstDomain } = yield* leaving(move);
        yield* tx.run(
          sql`UPDATE shop_moves SET state = 'moved', shop_id = NULL, domain = ${domain}, first_domain = ${firstDomain}
            WHERE move = ${move}`,
        );
        yield* emptyAtOnce(id);
      }),
  };
}

function* beginMove(
  db: QuietDatabase,
  domain: string,
  newMove: string,
  target: string,
): TransactionWork<Move | undefined> {
  const found = yield* tx.get<Move & { firstDomain: string; target: string | null }>(
    sql`SELECT id, shops.domain, coalesce(shops.first_domain, shops.domain) AS "firstDomain", move, target
      FROM shops LEFT JOIN shop_moves ON shop_id = id
      WHERE shops.domain = ${domain} AND (removal_started_at IS NULL OR state = 'leaving')
      ${either(db, { sqlite: sql``, postgres: sql`FOR UPDATE OF shops` })}`,
  );
  if (found === undefined) return undefined;
  if (found.move !== null && found.target !== target) throw movesElsewhere(domain);
  if (found.move !== null) return found;
  yield* tx.run(
    sql`INSERT INTO shop_moves (move, shop_id, state, domain, first_domain, target)
      VALUES (${newMove}, ${found.id}, 'leaving', ${found.domain}, ${found.firstDomain}, ${target})`,
  );
  return { ...found, move: newMove };
}

async function numberSpans(db: QuietDatabase, shopId: number): Promise<NumberSpans> {
  const spans: Record<string, { low: number; high: number }> = {};
  for (const table of NUMBERED_TABLES) {
    const found = await db.get<{ low: number | null }>(
      sql`SELECT min(number) AS low FROM ${template.raw(table)} WHERE shop_id = ${shopId}`,
    );
    const last = await lastNumber(db, table);
    // A commit that is not visible yet can have a number below all visible numbers.
    spans[table] = { low: (found?.low ?? last) - NUMBERS_MEANWHILE, high: last };
  }
  return spans;
}

/** Returns the highest number that a row of a table ever had. */
async function lastNumber(db: QuietDatabase, table: string): Promise<number> {
  const last = await db.get<{ last: number }>(
    either(db, {
      sqlite: sql`SELECT seq AS last FROM sqlite_sequence WHERE name = ${table}`,
      postgres: sql`SELECT last_value AS last FROM ${template.raw(`${table}_number_seq`)}`,
    }),
  );
  return last?.last ?? 0;
}

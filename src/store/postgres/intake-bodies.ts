import type { IntakeBodyStore } from "../port/intake-bodies.ts";
import { StoreError } from "../port/store-error.ts";
import { type Database, pipeline, type Queries } from "./database.ts";
import { ALIVE_NODES } from "./nodes.ts";
import { lockServed } from "./shop-ids.ts";

/** Parts that are removed in one transaction, so that nobody waits for it. */
const PARTS_PER_STEP = 16;

/** @param node the id of this process: nobody else drops what it is storing */
export function intakeBodyStore(db: Database, node: string): IntakeBodyStore {
  async function remove(shopId: number, number: number, isIncomplete: boolean): Promise<void> {
    while (await db.transaction((tx) => removeSome(tx, shopId, number, isIncomplete)));
  }

  return {
    async begin(shopId) {
      const begun = await db.get<{ number: number }>(
        `INSERT INTO intake_bodies (shop_id, complete, node) SELECT id, false, $2::text FROM (
           SELECT id FROM shops WHERE id = $1::bigint AND removal_started_at IS NULL FOR KEY SHARE
         ) AS served RETURNING number::float8 AS number`,
        [shopId, node],
      );
      return begun?.number;
    },

    async add(shopId, number, parts) {
      await db.transaction(async (tx) => {
        const [, body] = await pipeline([
          // Before the parts get their numbers: a redaction takes what has higher ones for new.
          lockServed(tx, [shopId]),
          // It waits for a removal of the body, and lets several processes add parts.
          tx.get(
            "SELECT 1 AS one FROM intake_bodies WHERE shop_id = $1::bigint AND number = $2::bigint FOR KEY SHARE",
            [shopId, number],
          ),
          tx.run(
            `INSERT INTO intake_parts (shop_id, body, records)
             SELECT $1::bigint, $2::bigint, records FROM unnest($3::text[]) WITH ORDINALITY AS new (records, place)
             ORDER BY place`,
            [shopId, number, parts],
          ),
        ]);
        if (body === undefined) throw new StoreError("conflict", new Error("the body was removed"));
      });
    },

    async complete(shopId, number, parts) {
      return db.transaction(async (tx) => {
        const [, completed] = await pipeline([
          // It waits for a removal of the body that is just beginning. The next statement sees which parts are left.
          tx.get(
            "SELECT 1 AS one FROM intake_bodies WHERE shop_id = $1::bigint AND number = $2::bigint FOR NO KEY UPDATE",
            [shopId, number],
          ),
          tx.run(
            `UPDATE intake_bodies SET complete = true WHERE shop_id = $1::bigint AND number = $2::bigint
               AND $3::bigint = (SELECT count(*) FROM intake_parts WHERE shop_id = $1::bigint AND body = $2::bigint)`,
            [shopId, number, parts],
          ),
        ]);
        return completed > 0;
      });
    },

    async canBegin(shopId) {
      const found = await db.get("SELECT 1 AS one FROM shops WHERE id = $1::bigint AND removal_started_at IS NULL", [
        shopId,
      ]);
      return found !== undefined;
    },

    async isWaiting(shopId) {
      const found = await db.get("SELECT 1 AS one FROM intake_bodies WHERE shop_id = $1::bigint AND complete LIMIT 1", [
        shopId,
      ]);
      return found !== undefined;
    },

    async oldestOfEachShop() {
      const bodies = await db.all<{ number: number; isOfOther: boolean; id: number; domain: string }>(
        `SELECT number::float8 AS number, shop_id::float8 AS id, domain,
           node <> $1::text AND node IN (${ALIVE_NODES}) AS "isOfOther"
         FROM (
           SELECT min(number) AS number, shop_id FROM intake_bodies WHERE complete GROUP BY shop_id
         ) AS oldest JOIN intake_bodies USING (shop_id, number) JOIN shops ON shops.id = shop_id
         WHERE removal_started_at IS NULL ORDER BY oldest.number`,
        [node],
      );
      return bodies.map(({ number, isOfOther, ...shop }) => ({ number, shop, isOfOther }));
    },

    remove: (shopId, number) => remove(shopId, number, false),

    async removeIncomplete() {
      const bodies = await db.all<{ shopId: number; number: number }>(
        `SELECT shop_id::float8 AS "shopId", number::float8 AS number FROM intake_bodies
         WHERE NOT complete AND node NOT IN (${ALIVE_NODES})`,
      );
      for (const { shopId, number } of bodies) await remove(shopId, number, true);
    },
  };
}

/**
 * Gives a body up and removes some of its parts, or, without parts, the body. From the first step on nothing of it is
 * applied: whoever applies a part has locked the shop's changes. If this is interrupted, removeIncomplete goes on.
 * @param isIncomplete removes it only if it is not complete
 * @returns whether something is left
 */
async function removeSome(tx: Queries, shopId: number, number: number, isIncomplete: boolean): Promise<boolean> {
  await tx.get("SELECT 1 AS one FROM shop_changes WHERE shop_id = $1::bigint FOR NO KEY UPDATE", [shopId]);
  const body = await tx.get<{ complete: boolean }>(
    "SELECT complete FROM intake_bodies WHERE shop_id = $1::bigint AND number = $2::bigint FOR UPDATE",
    [shopId, number],
  );
  // A node that stood still may have completed it since.
  if (body === undefined || (body.complete && isIncomplete)) return false;
  if (body.complete)
    await tx.run("UPDATE intake_bodies SET complete = false WHERE shop_id = $1::bigint AND number = $2::bigint", [
      shopId,
      number,
    ]);
  const removed = await tx.run(
    `DELETE FROM intake_parts WHERE shop_id = $1::bigint AND number = ANY(ARRAY(
       SELECT number FROM intake_parts WHERE shop_id = $1::bigint AND body = $2::bigint LIMIT ${PARTS_PER_STEP}
     ))`,
    [shopId, number],
  );
  if (removed > 0) return true;
  await tx.run("DELETE FROM intake_bodies WHERE shop_id = $1::bigint AND number = $2::bigint", [shopId, number]);
  return false;
}

import type { Database } from "bun:sqlite";
import { nextTurn } from "../../lib/turns.ts";
import type { IntakeBodyStore } from "../port/intake-bodies.ts";
import { shopCheck } from "./shop-ids.ts";

/** Parts that are removed in one transaction, so that nobody waits for it. */
const PARTS_PER_STEP = 16;

export function intakeBodyStore(db: Database): IntakeBodyStore {
  const begin = db.prepare<{ number: number }, [number]>(
    `INSERT INTO intake_bodies (shop_id, complete) SELECT id, 0 FROM shops WHERE id = ? AND removal_started_at IS NULL
     RETURNING number`,
  );
  const add = db.prepare("INSERT INTO intake_parts (shop_id, body, records) VALUES (?, ?, ?)");
  const complete = db.prepare<unknown, [number, number, number]>(
    `UPDATE intake_bodies SET complete = 1 WHERE shop_id = ? AND number = ?
     AND ? = (SELECT count(*) FROM intake_parts WHERE shop_id = intake_bodies.shop_id AND body = intake_bodies.number)`,
  );
  const isServed = shopCheck(db);
  const waiting = db.prepare<unknown, [number]>(
    "SELECT 1 FROM intake_bodies WHERE shop_id = +? AND complete = 1 LIMIT 1",
  );
  const oldest = db.prepare<{ number: number; shopId: number; domain: string }, []>(
    `SELECT min(number) AS number, shop_id AS shopId, domain FROM intake_bodies JOIN shops ON shops.id = shop_id
     WHERE complete = 1 AND removal_started_at IS NULL GROUP BY shop_id ORDER BY 1`,
  );
  const incomplete = db.prepare<{ number: number; shopId: number }, []>(
    "SELECT number, shop_id AS shopId FROM intake_bodies WHERE complete = 0",
  );
  const removeParts = db.prepare<unknown, [number, number]>(
    `DELETE FROM intake_parts WHERE number IN (
       SELECT number FROM intake_parts WHERE shop_id = ? AND body = ? LIMIT ${PARTS_PER_STEP}
     )`,
  );
  const giveUp = db.prepare("UPDATE intake_bodies SET complete = 0 WHERE shop_id = ? AND number = ? AND complete = 1");
  const removeBody = db.prepare("DELETE FROM intake_bodies WHERE shop_id = ? AND number = ?");

  async function remove(shopId: number, number: number): Promise<void> {
    // From now on nothing of it is applied. If this is interrupted, removeIncomplete goes on.
    giveUp.run(shopId, number);
    while (removeParts.run(shopId, number).changes > 0) await nextTurn();
    removeBody.run(shopId, number);
  }

  return {
    async begin(shopId) {
      return begin.get(shopId)?.number;
    },

    async add(shopId, number, parts) {
      db.transaction(() => {
        for (const part of parts) add.run(shopId, number, part);
      }).immediate();
    },

    async complete(shopId, number, parts) {
      return complete.run(shopId, number, parts).changes > 0;
    },

    async canBegin(shopId) {
      return isServed(shopId);
    },

    async isWaiting(shopId) {
      return waiting.get(shopId) !== null;
    },

    async oldestOfEachShop() {
      return oldest
        .all()
        .map(({ number, shopId, domain }) => ({ number, shop: { id: shopId, domain }, isOfOther: false }));
    },

    remove,

    async removeIncomplete() {
      for (const { shopId, number } of incomplete.all()) await remove(shopId, number);
    },
  };
}

import type { Database } from "bun:sqlite";
import type { IncomingRecord } from "../../domain/records/record-schemas.ts";
import type { MirroredShop } from "../../domain/shop.ts";
import { refusedLeftOver } from "../engine/left-over-bodies.ts";
import { createCommitWriter } from "./mirror.ts";

/** Clock and random bytes, for deliveries that an upgrade queues. */
export interface UpgradeOptions {
  /** Epoch milliseconds. */
  now: () => number;
  random: (bytes: number) => Uint8Array;
}

/**
 * Applies intake bodies that an earlier version accepted and did not finish. The oldest body comes first. Then drops
 * the tables of the bodies, even if they hold incomplete bodies. The senders of incomplete bodies got no answer. All
 * this is part of the upgrade's transaction, so after a kill the next start upgrades again.
 * @throws SdsError `failed` for a record that is refused
 */
export function applyLeftOverBodies(db: Database, { now, random }: UpgradeOptions): void {
  const bodies = db
    // No shop was renamed before this upgrade.
    .query<{ number: number } & MirroredShop, []>(
      `SELECT number, shops.id AS id, domain, domain AS firstDomain
       FROM intake_bodies JOIN shops ON shops.id = shop_id
       WHERE complete = 1 AND removal_started_at IS NULL ORDER BY number`,
    )
    .all();
  const partsOf = db.query<{ records: string }, [number]>(
    "SELECT records FROM intake_parts WHERE body = ? ORDER BY number",
  );
  const writeCommit = bodies.length > 0 ? createCommitWriter(db, random) : undefined;
  for (const { number, ...shop } of bodies) {
    for (const part of partsOf.all(number)) {
      const records = JSON.parse(part.records) as IncomingRecord[];
      const result = writeCommit?.([{ shop, records }], now(), []).results[0];
      if (result !== undefined && "refused" in result) throw refusedLeftOver(shop, result.refused);
    }
  }
  db.run("DROP TABLE intake_parts");
  db.run("DROP TABLE intake_bodies");
}

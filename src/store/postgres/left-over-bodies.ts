import type { IncomingRecord } from "../../domain/records/record-schemas.ts";
import type { MirroredShop } from "../../domain/shop.ts";
import { refusedLeftOver } from "../engine/left-over-bodies.ts";
import { type Database, pipeline, type Queries } from "./database.ts";
import { applySubmissions } from "./mirror.ts";
import { lockShops } from "./mirror-locks.ts";

/** Maximum number of parts that one commit applies. Each part has up to 25 records. */
const PARTS_PER_COMMIT = 8;

interface LeftOverBody {
  number: number;
  shop: MirroredShop;
}

/**
 * Applies intake bodies that an earlier version accepted and did not finish. The oldest body comes first. Removes
 * bodies that are incomplete. The commit that applies a part also removes the part. So several processes can apply
 * bodies at once, even a node of the earlier version. After a kill the next process continues.
 * @throws SdsError `failed` for a record that is refused
 */
export async function applyLeftOverBodies(
  db: Database,
  { now, random }: { now: () => number; random: (bytes: number) => Uint8Array },
): Promise<void> {
  for (;;) {
    const body = await oldestBody(db);
    if (body === undefined) return;
    await db.transaction((tx) => applySome(tx, body, { now: now(), random }));
  }
}

async function oldestBody(db: Database): Promise<LeftOverBody | undefined> {
  const found = await db.get<{ number: number } & MirroredShop>(
    `SELECT number::float8 AS number, shops.id::float8 AS id, domain,
       coalesce(first_domain, domain) AS "firstDomain"
     FROM intake_bodies JOIN shops ON shops.id = shop_id ORDER BY number LIMIT 1`,
  );
  if (found === undefined) return undefined;
  const { number, ...shop } = found;
  return { number, shop };
}

/** Applies the next parts of a body. Removes the body when it has no more parts, or when it must not be applied. */
async function applySome(
  tx: Queries,
  { number, shop }: LeftOverBody,
  commit: { now: number; random: (bytes: number) => Uint8Array },
): Promise<void> {
  const key = [shop.id, number];
  // Reads the body again under the locks, because another process may have applied or removed it.
  const [served, body, parts] = await pipeline([
    lockShops(tx, [shop.id]),
    tx.get<{ complete: boolean }>(
      "SELECT complete FROM intake_bodies WHERE shop_id = $1::bigint AND number = $2::bigint FOR UPDATE",
      key,
    ),
    tx.all<{ number: number; records: string }>(
      `SELECT number::float8 AS number, records FROM intake_parts
       WHERE shop_id = $1::bigint AND body = $2::bigint ORDER BY number LIMIT ${PARTS_PER_COMMIT}`,
      key,
    ),
  ]);
  const isApplied = body?.complete === true && served.has(shop.id);
  const records = isApplied ? parts.flatMap((part) => JSON.parse(part.records) as IncomingRecord[]) : [];
  if (records.length > 0) {
    const [result] = await applySubmissions(tx, [{ shop, records }], commit);
    if (result !== undefined && "refused" in result) throw refusedLeftOver(shop, result.refused);
  }
  if (isApplied)
    await tx.run("DELETE FROM intake_parts WHERE shop_id = $1::bigint AND number = ANY($2::bigint[])", [
      shop.id,
      parts.map((part) => part.number),
    ]);
  else await tx.run("DELETE FROM intake_parts WHERE shop_id = $1::bigint AND body = $2::bigint", key);
  if (!isApplied || parts.length < PARTS_PER_COMMIT)
    await tx.run("DELETE FROM intake_bodies WHERE shop_id = $1::bigint AND number = $2::bigint", key);
}

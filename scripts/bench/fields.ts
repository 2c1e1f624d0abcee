/**
 * Compares pages whose rows have 50 custom fields with pages without custom fields, on SQLite and on PostgreSQL.
 * `bun scripts/bench/fields.ts` runs only this bench.
 */
import { Database } from "bun:sqlite";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { FieldDefinition } from "../../src/domain/fields/definition.ts";
import { ask } from "./servers.ts";
import * as shops from "./shops.ts";
import { type Cost, costOf, medianCost, type Side, sqliteSide, startBenchServer, startSide } from "./sides.ts";
import { rounded, Table } from "./table.ts";

const ROWS = 50_000;
const FIELDS = 50;
const ROUNDS = 5;
const SECONDS = 3;

/** Copies a shop, and gives each subscription a value of about 20 bytes in each field. */
function shopWithFields(shop: shops.Shop): shops.Shop {
  const folder = shops.copyFolder(shop.folder, "dist/bench/fields");
  const db = new Database(join(folder, "sds.db"), { strict: true });
  db.run("PRAGMA synchronous = OFF");
  const fields = Array.from({ length: FIELDS }, (_, index): FieldDefinition => {
    const rules = { options: [], subscriberEditable: false, personal: true, archivedAt: null, hasValues: true };
    return { key: `field_${String(index).padStart(2, "0")}`, label: `Field ${index}`, type: "text", ...rules };
  });
  db.run("INSERT INTO custom_fields SELECT id, ?, '[]' FROM shops", [JSON.stringify(fields)]);
  const values = (id: string) => Object.fromEntries(fields.map(({ key }) => [key, `value ${id.slice(4, 18)}`]));
  const insert = db.prepare(
    "INSERT INTO subscription_fields SELECT shop_id, started_at, id, ? FROM subscriptions WHERE id = ?",
  );
  db.transaction(() => {
    for (const { id } of db.query<{ id: string }, []>("SELECT id FROM subscriptions").all())
      insert.run(JSON.stringify(values(id)), id);
  })();
  db.run("PRAGMA wal_checkpoint(TRUNCATE)");
  db.close();
  return { ...shop, folder };
}

/** Measures both kinds of pages in turn. @returns the cost of one page of each kind */
async function measure(shop: shops.Shop, side: Side): Promise<Record<"plain" | "shown", Cost>> {
  const plain = shops.randomPages(shop, 50);
  const shown = `${plain}.fields`;
  writeFileSync(shown, readFileSync(plain, "utf8").replaceAll("\n", "&include=customFields\n"));
  await using server = await startSide(shops.SDS, side);
  const cost = (paths: string) =>
    costOf([server], side, async () => {
      const perSecond = await ask({ server, key: shop.key, paths }, SECONDS);
      return { count: perSecond * SECONDS, seconds: SECONDS };
    });
  const costs = { plain: [] as Cost[], shown: [] as Cost[] };
  for (let round = 0; round <= ROUNDS; round += 1) {
    const [one, other] = [await cost(plain), await cost(shown)];
    // The first round warms up.
    if (round > 0) costs.plain.push(one);
    if (round > 0) costs.shown.push(other);
  }
  return { plain: medianCost(costs.plain), shown: medianCost(costs.shown) };
}

/** Adds the results to a table. */
async function addFields(table: Table): Promise<void> {
  const shop = shopWithFields(await shops.filledShop(ROWS));
  const add = (engine: string, { plain, shown }: Record<"plain" | "shown", Cost>) => {
    const total = ({ sds, database }: Cost) => sds + database;
    table.addRatioBelow(
      `Page of 50 with ${FIELDS} custom fields each against a plain one, ${engine}, processor time`,
      `${rounded(total(shown))} µs, plain ${rounded(total(plain))} µs`,
      total(shown) / total(plain),
      2,
    );
  };
  add("SQLite", await measure(shop, sqliteSide(shop.folder)));
  const postgres = await startBenchServer();
  try {
    await postgres.fill("fields", shops.SDS, shop.folder);
    add("PostgreSQL", await measure(shop, postgres.side("fields", shop.folder)));
  } finally {
    await postgres.stop();
  }
}

if (import.meta.main) {
  await shops.buildProgram();
  const table = new Table();
  await addFields(table);
  process.stdout.write(`${table}\n`);
}

/**
 * Measures the move of a shop to another database of the same engine. Prints how long three parts take: the copy while
 * the shop is served, the stop of the shop, and the removal of its rows from the source. Each argument is a number of
 * contracts of the shop. The defaults are 10,000 and 40,000. Each contract brings a subscription, custom fields, an
 * order, and two sent webhooks.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { finishRemoval } from "../../src/actions/shop-removal.ts";
import { TOPIC_NAMES } from "../../src/domain/events/event.ts";
import { addField } from "../../src/domain/fields/definition.ts";
import type { Shop } from "../../src/domain/shop.ts";
import { moveShop } from "../../src/store/copy/move-shop.ts";
import { openStore } from "../../src/store/open-store.ts";
import type { Store } from "../../src/store/port/store.ts";
import { claim, succeeded } from "../../test/conformance/delivery-fixtures.ts";
import { randomBytes } from "../../test/support/app.ts";
import { fieldValue, order, subscription } from "../../test/support/records.ts";
import { startBenchServer } from "./sides.ts";
import { machineLine } from "./table.ts";

const DOMAIN = "alpha.myshopify.com";
const CONTRACTS_PER_COMMIT = 80;
const ACTOR = { role: "operator", who: "bench", from: null } as const;
const counts = process.argv.slice(2).map(Number);
const postgres = await startBenchServer();
const print = (line: string) => process.stdout.write(`${line}\n`);

function open(folder: string, url: string | null): Promise<Store> {
  const server = url === null ? null : { url, file: null, passwordFile: null, sleep: Bun.sleep };
  const masterKeyFile = join(folder, "master.key");
  return openStore({ folder, masterKeyFile, busyTimeoutMs: 2_000, now: Date.now, random: randomBytes, server });
}

/** Adds the shop, and sends its webhooks. */
async function fill(store: Store, contracts: number): Promise<void> {
  const shop = await store.shops.add({ domain: DOMAIN, plan: "pro", currency: "USD" }, Date.now());
  await store.webhooks.set(shop.id, { url: "https://hooks.example.com", topics: TOPIC_NAMES }, Date.now());
  const field = { key: "gift_note", label: "Gift note", type: "text" } as const;
  await store.fields.update(shop.id, (fields) => addField(fields, field));
  for (let from = 1; from <= contracts; from += CONTRACTS_PER_COMMIT) {
    const numbers = Array.from({ length: CONTRACTS_PER_COMMIT }, (_, index) => from + index);
    const records = numbers.flatMap((n) => [subscription(n), order(n, 1), fieldValue(n, "gift_note", `Note ${n}`)]);
    await store.mirror.applyRecords([{ shop, records }], Date.now(), []);
    await send(store, shop);
  }
}

async function send(store: Store, shop: Shop): Promise<void> {
  const now = Date.now() + 1;
  const claims = await claim(store, shop, { now });
  await store.deliveries.recordAndClaim(
    claims.map((each) => succeeded(each, now)),
    [],
    now,
    now,
    [],
  );
}

/** Moves the shop, removes its rows from the source, and prints how long each part took. */
async function measure(engine: string, source: Store, target: Store, contracts: number): Promise<void> {
  const began = performance.now();
  let [rows, stopped] = [0, 0];
  await moveShop({
    ...{ source, target, domain: DOMAIN, actor: ACTOR, now: Date.now, random: randomBytes, sleep: Bun.sleep },
    onRows(read) {
      rows = read;
    },
    onStop() {
      stopped = performance.now();
    },
  });
  const ended = performance.now();
  const times = [stopped - began, ended - stopped];
  for (const shop of await source.shops.removing()) await finishRemoval(source.shops, shop, Bun.sleep);
  times.push(performance.now() - ended);
  const cells = times.map((ms) => `${(ms / 1_000).toFixed(2)} s`);
  print(`| ${[engine, contracts.toLocaleString("en"), rows.toLocaleString("en"), ...cells].join(" | ")} |`);
}

print(`${machineLine()}\n`);
print("| engine | contracts | rows | copy while served | stop | removal |\n|---|---|---|---|---|---|");
for (const engine of ["SQLite", "PostgreSQL"])
  for (const contracts of counts.length === 0 ? [10_000, 40_000] : counts) {
    const folders = ["from", "to"].map((name) => mkdtempSync(join(tmpdir(), `sds-moves-${name}-`)));
    const stores: Store[] = [];
    for (const [index, folder] of folders.entries()) {
      const name = `moves_${contracts}_${index}`;
      if (engine === "PostgreSQL") await postgres.sql("postgres").unsafe(`CREATE DATABASE ${name}`);
      stores.push(await open(folder, engine === "PostgreSQL" ? postgres.addressOf(name) : null));
    }
    const [source, target] = stores as [Store, Store];
    await fill(source, contracts);
    await measure(engine, source, target, contracts);
    for (const store of stores) await store.close();
    for (const folder of folders) rmSync(folder, { recursive: true });
  }
await postgres.stop();

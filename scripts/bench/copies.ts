/**
 * Measures the cost of keeping a copy: answers with status 304, single rows, changes and compression. Also measures how
 * much the lists of changes slow down writes. `bun scripts/bench/copies.ts` runs only this bench, with 1,000,000
 * contracts.
 */
import { Database } from "bun:sqlite";
import { constants, cpSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { SubscriptionRecord } from "../../src/domain/records/record-schemas.ts";
import type { Store } from "../../src/store/port/store.ts";
import { openSqliteStore } from "../../src/store/sqlite/sqlite-store.ts";
import { UPGRADE } from "../../test/support/open-store.ts";
import { subscriptionRecords } from "./records.ts";
import { type Load, median, pagesPerSecond, type Server, serveCommand, startPinnedServer } from "./servers.ts";
import * as shops from "./shops.ts";
import { rate, rounded, Table } from "./table.ts";

const ROWS = 1_000_000;
const PAGE_ROWS = 250;
const LIST = "/api/v1/subscriptions";
const UPDATES_PER_ROUND = 400;
const ROUNDS = 7;
/** Share of the rows that change in an hour. */
const CHANGED_SHARE = 0.01;
const MEGABYTE = 1e6;

/** Adds the results to a table. */
export async function addCopies(table: Table, shop: shops.Shop): Promise<void> {
  {
    await using server = await startPinnedServer(serveCommand(shops.SDS, shop.folder));
    await measureAnswers(table, shop, server);
  }
  await measureWrites(table, shop);
  await measureHour(table, shop);
}

async function measureAnswers(table: Table, shop: shops.Shop, server: Server): Promise<void> {
  const page = `${LIST}?limit=50`;
  const get = (path: string) => fetch(server.url + path, { headers: { Authorization: `Bearer ${shop.key}` } });
  const first = await get(page);
  const checkpoint = encodeURIComponent(first.headers.get("x-checkpoint") ?? "");
  const paths = shops.firstPage(shop, 50);
  const rows = shops.randomRows(shop);
  const nothing = shops.onePath(shop, "changes", `${LIST}?since=${checkpoint}`);
  const load = (file: string, headers: Record<string, string> = {}, of = server): Load => ({
    server: of,
    key: shop.key,
    paths: file,
    headers,
  });
  const constantOf = async (file: string) => {
    const path = (await Bun.file(file).text()).split("\n", 1)[0] ?? "";
    return startPinnedServer(["bun", join(import.meta.dir, "constant.ts"), server.url + path, shop.key]);
  };
  await using constantRow = await constantOf(rows);
  await using constantNothing = await constantOf(nothing);
  const found = await pagesPerSecond({
    full: load(paths),
    unchanged: load(paths, { "If-None-Match": first.headers.get("etag") ?? "" }),
    zstd: load(paths, { "Accept-Encoding": "zstd" }),
    gzip: load(paths, { "Accept-Encoding": "gzip" }),
    row: load(rows),
    constantRow: load(rows, {}, constantRow),
    nothing: load(nothing),
    constantNothing: load(nothing, {}, constantNothing),
  });
  const against = (name: string, measured: number, other: number, of: string, target: number) =>
    table.addRatio(name, `${rate(measured)}, ${of} ${rate(other)}`, measured / other, target);
  against("304 against a page of 50", found.unchanged, found.full, "page", 5);
  against("One row by its id against a constant of its size", found.row, found.constantRow, "constant", 0.4);
  against(
    "Changes with nothing new against a constant of their size",
    found.nothing,
    found.constantNothing,
    "constant",
    0.4,
  );
  against("Page of 50 with zstd against the plain page", found.zstd, found.full, "plain", 0.6);
  table.addRemark("Page of 50 with gzip", `${rate(found.gzip)}, plain ${rate(found.full)}`);
}

/** Copies a shop's database, changes the copy and opens a store on it. */
async function openCopy(shop: shops.Shop, name: string, change: (db: Database) => void) {
  const folder = join(shop.folder, name);
  rmSync(folder, { recursive: true, force: true });
  for (const file of ["sds.db", "master.key"])
    cpSync(join(shop.folder, file), join(folder, file), { mode: constants.COPYFILE_FICLONE });
  const db = new Database(join(folder, "sds.db"));
  change(db);
  db.close(true);
  const store = await openSqliteStore({
    folder,
    masterKeyFile: join(folder, "master.key"),
    busyTimeoutMs: 30_000,
    ...UPGRADE,
  });
  return {
    store,
    async close() {
      await store.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Commits random contracts, one per commit. @returns microseconds for each */
async function timeUpdates(store: Store, records: readonly SubscriptionRecord[], round: number): Promise<number> {
  const [shop] = await store.shops.list();
  if (shop === undefined) throw new Error("the copy has no shop");
  const began = performance.now();
  for (let n = 0; n < UPDATES_PER_ROUND; n += 1) {
    const record = records[Math.floor(Math.random() * records.length)] as SubscriptionRecord;
    const changed = { ...record, intervalCount: round * UPDATES_PER_ROUND + n + 1, revision: null };
    await store.mirror.applyRecords([{ shop, records: [changed] }], Date.now(), []);
  }
  return ((performance.now() - began) * 1_000) / UPDATES_PER_ROUND;
}

async function measureWrites(table: Table, shop: shops.Shop): Promise<void> {
  const records = [...subscriptionRecords(ROWS, "random")] as SubscriptionRecord[];
  const noted = await openCopy(shop, "noted", () => undefined);
  const bare = await openCopy(shop, "bare", (db) => {
    const triggers = db
      .query<{ name: string }, []>(
        "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND tbl_name IN ('customers', 'subscriptions', 'orders')",
      )
      .all();
    for (const { name } of triggers) db.run(`DROP TRIGGER ${name}`);
  });
  const times = { noted: [] as number[], bare: [] as number[] };
  for (let round = 0; round < ROUNDS; round += 1) {
    times.bare.push(await timeUpdates(bare.store, records, round));
    times.noted.push(await timeUpdates(noted.store, records, round));
  }
  await Promise.all([noted.close(), bare.close()]);
  const [withChanges, without] = [median(times.noted), median(times.bare)];
  table.addRatioBelow(
    "Random single updates with lists of changes, against without",
    `${rounded(withChanges)} µs, without ${rounded(without)} µs`,
    withChanges / without,
    1.35,
  );
}

interface Pull {
  requests: number;
  bytes: number;
  checkpoint: string;
}

/**
 * Reads all pages. Returns the checkpoint that a client keeps. For a list of all rows it comes from the first page, for
 * changes from the last page.
 */
async function pull(url: string, key: string, query: string, encoding: string): Promise<Pull> {
  let [requests, bytes, checkpoint, cursor] = [0, 0, "", null as string | null];
  do {
    const next = cursor === null ? "" : `&cursor=${encodeURIComponent(cursor)}`;
    const answer = await fetch(`${url}${LIST}?limit=${PAGE_ROWS}${query}${next}`, {
      headers: { Authorization: `Bearer ${key}`, "Accept-Encoding": encoding },
      decompress: false,
    } as RequestInit);
    const sent = await answer.bytes();
    const body = answer.headers.has("content-encoding") ? Bun.zstdDecompressSync(sent) : sent;
    if (query !== "" || requests === 0) checkpoint = answer.headers.get("x-checkpoint") ?? "";
    cursor = (JSON.parse(Buffer.from(body).toString()) as { page: { nextCursor: string | null } }).page.nextCursor;
    requests += 1;
    bytes += sent.length;
  } while (cursor !== null);
  return { requests, bytes, checkpoint };
}

async function measureHour(table: Table, shop: shops.Shop): Promise<void> {
  await using server = await startPinnedServer(serveCommand(shops.SDS, shop.folder));
  const plain = await pull(server.url, shop.key, "", "identity");
  const full = await pull(server.url, shop.key, "", "zstd");
  const changed: string[] = [];
  for (const record of subscriptionRecords(ROWS, "random"))
    if (Math.random() < CHANGED_SHARE) changed.push(JSON.stringify({ ...record, intervalCount: 7 }));
  const file = join(shop.folder, "changed.ndjson");
  await Bun.write(file, changed.join("\n"));
  await shops.importFile(shop, file);
  const query = `&since=${encodeURIComponent(full.checkpoint)}`;
  const changesPlain = await pull(server.url, shop.key, query, "identity");
  const changes = await pull(server.url, shop.key, query, "zstd");
  const told = ({ requests, bytes }: Pull) => `${requests} requests, ${rounded(bytes / MEGABYTE)} MB`;
  table.addRatioBelow(
    `Copy of an hour at ${changed.length.toLocaleString("en")} changes with zstd, against a full pull, bytes`,
    `${told(changes)} (plain ${rounded(changesPlain.bytes / MEGABYTE)} MB); full ${told(plain)}, with zstd ` +
      `${rounded(full.bytes / MEGABYTE)} MB`,
    changes.bytes / plain.bytes,
    0.01,
  );
}

if (import.meta.main) {
  await shops.buildProgram();
  const table = new Table();
  await addCopies(table, await shops.importedShop(ROWS));
  process.stdout.write(`${table}\n`);
}

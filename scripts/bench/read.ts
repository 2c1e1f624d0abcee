import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { $ } from "bun";
import { addBeside, besideReaders } from "./beside.ts";
import { addCopies } from "./copies.ts";
import {
  installBaseline,
  type Load,
  MemoryWatch,
  median,
  pagesPerSecond,
  type Server,
  serveCommand,
  startPinnedServer,
  startServer,
} from "./servers.ts";
import * as shops from "./shops.ts";
import { machineLine, needTwoCores, rate, Table } from "./table.ts";

const { values } = parseArgs({ options: { large: { type: "boolean", default: false } } });
const BENCH = import.meta.dir;
const ROWS = 1_000_000;
const FEW_ROWS = 100_000;
const MANY_ROWS = 10_000_000;
const IMPORTED_ROWS = 200_000;
const MEGABYTE = 1e6;

const table = new Table();

function serve(shop: shops.Shop): string[] {
  return serveCommand(shops.SDS, shop.folder);
}

function onePath({ paths }: Load): string {
  return readFileSync(paths, "utf8").split("\n", 1)[0] ?? "";
}

async function onePage(load: Load): Promise<string> {
  const answer = await fetch(`${load.server.url}${onePath(load)}`, {
    headers: { Authorization: `Bearer ${load.key}` },
  });
  return answer.text();
}

/** Starts a server that answers every request with the same page. */
function startConstant(load: Load): Promise<Server> {
  return startPinnedServer(["bun", join(BENCH, "constant.ts"), `${load.server.url}${onePath(load)}`, load.key]);
}

function startBaseline(shop: shops.Shop): Promise<Server> {
  return startPinnedServer(["node", join(BENCH, "baseline/server.js"), shops.baselineOf(shop)]);
}

/** Reads the files into memory first, so that the speed of the disk is not measured. */
async function warm(...files: string[]): Promise<void> {
  await $`cat ${files} > /dev/null`.quiet();
}

async function measurePages(shop: shops.Shop): Promise<void> {
  await using server = await startPinnedServer(serve(shop));
  await using baseline = await startBaseline(shop);
  const load = (paths: string, of = server): Load => ({ server: of, key: shop.key, paths });
  await warm(shops.databaseOf(shop), shops.baselineOf(shop));
  using memory = new MemoryWatch(server.pid);

  const fifty = shops.randomPages(shop, 50);
  if ((await onePage(load(fifty))) !== (await onePage(load(fifty, baseline))))
    throw new Error("Fastify answers with another page than sds");
  await using constantFifty = await startConstant(load(fifty));
  const { sds, constant, fastify } = await pagesPerSecond({
    sds: load(fifty),
    constant: load(fifty, constantFifty),
    fastify: load(fifty, baseline),
  });
  table.addRatio(
    "Page of 50 against a constant from `Bun.serve`",
    `${rate(sds)}, constant ${rate(constant)}`,
    sds / constant,
    0.22,
  );
  table.addRatio(
    "Page of 50 against Fastify and better-sqlite3",
    `${rate(sds)}, Fastify ${rate(fastify)}`,
    sds / fastify,
    4,
  );

  const most = shops.randomPages(shop, 250);
  await using constantMost = await startConstant(load(most));
  const large = await pagesPerSecond({ sds: load(most), constant: load(most, constantMost) });
  table.addRatio(
    "Page of 250 against a constant",
    `${rate(large.sds)}, constant ${rate(large.constant)}`,
    large.sds / large.constant,
    0.25,
  );

  const { first, last } = await pagesPerSecond({
    first: load(shops.firstPage(shop, 50)),
    last: load(shops.lastPage(shop, 50)),
  });
  table.addRatio("Deepest page of 50 against the first", `${rate(last)}, first ${rate(first)}`, last / first, 0.9);

  const own = ` (${(memory.ownPeak / MEGABYTE).toFixed(0)} MB without mapped files)`;
  table.addBound("Resident memory under this load, at most", memory.peak / MEGABYTE, 150, "MB", own);
}

async function measureSizes(): Promise<void> {
  const name = "10,000,000 rows against 100,000, page of 50";
  if (!values.large) {
    table.addRemark(name, "not run (`--large`)", "at least 0.8");
    return;
  }
  const few = await shops.filledShop(FEW_ROWS);
  const many = await shops.filledShop(MANY_ROWS);
  await warm(shops.databaseOf(few), shops.databaseOf(many));
  await using fewServer = await startPinnedServer(serve(few));
  await using manyServer = await startPinnedServer(serve(many));
  const speed = await pagesPerSecond({
    few: { server: fewServer, key: few.key, paths: shops.randomPages(few, 50) },
    many: { server: manyServer, key: many.key, paths: shops.randomPages(many, 50) },
  });
  table.addRatio(name, `${rate(speed.many)}, 100,000 rows ${rate(speed.few)}`, speed.many / speed.few, 0.8);
}

async function measureImport(rounds = 3): Promise<void> {
  const file = await shops.recordFile(IMPORTED_ROWS);
  const imports: number[] = [];
  const inserts: number[] = [];
  let rows = 0;
  for (let round = 0; round < rounds; round += 1) {
    const imported = await shops.emptyShop("import");
    imports.push((await shops.importFile(imported, file)).seconds);
    const { file: rowFile, count, changes } = shops.writtenRows(imported);
    rows = count;
    const inserted = await shops.emptyShop("inserts");
    // An import commits 1,000 records at a time. The bare inserts make the same number of commits.
    const changesPerCommit = Math.ceil(changes / (IMPORTED_ROWS / 1_000));
    const start = performance.now();
    await $`bun ${BENCH}/inserts.ts ${rowFile} ${shops.databaseOf(inserted)} ${changesPerCommit}`.quiet();
    inserts.push((performance.now() - start) / 1_000);
    for (const { folder } of [imported, inserted]) rmSync(folder, { recursive: true });
  }
  rmSync(file);
  const [ours, bare] = [median(imports), median(inserts)];
  const measured = `${rate(rows / ours)}, bare ${rate(rows / bare)}`;
  table.addRatio(
    `Import, rows written (${IMPORTED_ROWS.toLocaleString("en")} contracts with their customers) against bare inserts`,
    measured,
    bare / ours,
    0.5,
  );
}

async function timed(run: () => Promise<void>): Promise<number> {
  const start = performance.now();
  await run();
  return performance.now() - start;
}

async function medianTime(runs: number, run: () => Promise<number>): Promise<number> {
  const times: number[] = [];
  for (let index = 0; index < runs; index += 1) times.push(await run());
  return median(times);
}

async function measureStart(shop: shops.Shop): Promise<void> {
  const version = await medianTime(20, () =>
    timed(async () => void (await Bun.spawn([shops.SDS, "version"], { stdout: "ignore" }).exited)),
  );
  table.addBound("`sds version`, from start to end", version, 40, "ms");
  const ready = await medianTime(10, async () => {
    const start = performance.now();
    await using server = await startServer(serve(shop));
    const answer = await fetch(`${server.url}/readyz`);
    if (!answer.ok) throw new Error(`/readyz gave ${answer.status}`);
    return performance.now() - start;
  });
  table.addBound("`sds serve`, from start to the first answer of /readyz", ready, 100, "ms");
}

needTwoCores();
await shops.buildProgram();
await installBaseline();
const shop = await shops.importedShop(ROWS);
shops.tell("Measuring ...");
await measureStart(shop);
await measurePages(shop);
addBeside(table, await besideReaders(shops.SDS));
await measureImport();
await measureSizes();
await addCopies(table, shop);

const imported = `The import of the ${ROWS.toLocaleString("en")} contracts took ${shop.seconds.toFixed(0)} s: ${rate(shop.lines / shop.seconds)}.`;
process.stdout.write(
  `${ROWS.toLocaleString("en")} subscriptions of one shop, random cursors, 16 connections; ${machineLine()}\n\n${table}\n\n${imported}\n`,
);

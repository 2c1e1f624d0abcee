import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { backupStore, keptStores, restoreStore } from "../../src/store/open-store.ts";
import type { Store } from "../../src/store/port/store.ts";
import { takeDataFolder } from "../../src/store/sqlite/data-lock.ts";
import { failures } from "../conformance/fixtures.ts";
import { randomBytes, START, temporaryFolder } from "../support/app.ts";
import { afterTest } from "../support/cleanup.ts";
import { openStoreIn } from "../support/open-store.ts";

function open(folder: string): Promise<Store> {
  return openStoreIn(folder);
}

async function shops(folder: string): Promise<string[]> {
  const store = await open(folder);
  const found = await store.shops.list();
  await store.close();
  return found.map(({ domain }) => domain);
}

const request = (folder: string, file: string) => ({
  folder,
  file,
  masterKeyFile: join(folder, "master.key"),
  random: randomBytes,
  now: START,
});

/**
 * The folder of a killed process with the shops `alpha` and `beta`, and a copy with only `alpha`. `beta` is only in the
 * folder's log.
 */
async function killed(): Promise<{ folder: string; copy: string }> {
  const [made, folder] = [join(temporaryFolder(), "data"), join(temporaryFolder(), "data")];
  const copy = join(temporaryFolder(), "copy.db");
  const store = await open(made);
  const add = (name: string) => store.shops.add({ domain: `${name}.example.com`, plan: "pro", currency: "USD" }, START);
  await add("alpha");
  await backupStore(request(made, copy));
  await store.checkpoint();
  await add("beta");
  mkdirSync(folder);
  for (const name of ["sds.db", "sds.db-wal", "sds.db-shm", "master.key"])
    copyFileSync(join(made, name), join(folder, name));
  await store.close();
  return { folder, copy };
}

const OLD = ["alpha.example.com", "beta.example.com"];
const NEW = ["alpha.example.com"];

/** The name of the old database, after a restore at START. */
const KEPT = "sds.db.before-restore-2026-03-01T120000Z";

/** The state of a killed restore: the file names of the copy and of the old database with its log. */
describe.each([
  ["while it copied", "sds.db.0123456789abcdef.partial", "sds.db", "sds.db-wal", OLD],
  ["when the copy was complete", "sds.db.restored", "sds.db", "sds.db-wal", NEW],
  ["when the old database was renamed", "sds.db.restored", KEPT, "sds.db-wal", NEW],
  ["when its log was renamed too", "sds.db.restored", KEPT, `${KEPT}-wal`, NEW],
  ["at its end", "sds.db", KEPT, `${KEPT}-wal`, NEW],
])("a restore that was killed %s", (_when, copyName, oldName, logName, expected) => {
  async function interrupted(): Promise<{ folder: string; copy: string }> {
    const { folder, copy } = await killed();
    renameSync(join(folder, "sds.db"), join(folder, "old"));
    renameSync(join(folder, "sds.db-wal"), join(folder, logName));
    copyFileSync(copy, join(folder, copyName));
    utimesSync(join(folder, copyName), START / 1_000, START / 1_000);
    renameSync(join(folder, "old"), join(folder, oldName));
    return { folder, copy };
  }

  test("leaves the old or the new state, and the old state can be restored", async () => {
    const { folder } = await interrupted();
    expect(await shops(folder)).toEqual(expected);
    // A draft is a copy of people's data. The next program that opens the folder removes it.
    expect(readdirSync(folder).filter((name) => name.endsWith(".partial"))).toEqual([]);
    expect(await shops(folder)).toEqual(expected);
    if (expected === OLD) return;
    // The restore keeps the old database with its log, which has `beta`.
    const old = join(temporaryFolder(), "data");
    mkdirSync(old);
    for (const end of ["", "-wal"]) copyFileSync(join(folder, `${KEPT}${end}`), join(old, `sds.db${end}`));
    copyFileSync(join(folder, "master.key"), join(old, "master.key"));
    expect(await shops(old)).toEqual(OLD);
  });

  test("does not block another restore, and leaves no files behind", async () => {
    const { folder, copy } = await interrupted();
    const { kept } = await restoreStore(request(folder, copy));
    expect(await shops(folder)).toEqual(NEW);
    const names = readdirSync(folder).filter((name) => !name.includes("-"));
    expect(names.toSorted()).toEqual(["master.key", "sds.db", "sds.lock"]);
    const files = [...new Set([...(expected === OLD ? [] : [join(folder, KEPT)]), ...kept])];
    expect(files.map(shopsIn)).toEqual(expected === OLD ? [OLD] : [OLD, NEW]);
  });
});

/** Lists the shops in a database file that a restore kept. Reads its write-ahead log too. */
function shopsIn(file: string): string[] {
  using db = new Database(file);
  return db.query("SELECT domain FROM shops ORDER BY 1").values().flat().map(String);
}

test("restores overwrite no old database, also within the same second", async () => {
  const { folder, copy } = await killed();
  const kept: string[] = [];
  for (let count = 0; count < 3; count += 1) kept.push(...(await restoreStore(request(folder, copy))).kept);
  expect(new Set(kept).size).toBe(3);
  expect(kept.map(shopsIn)).toEqual([OLD, NEW, NEW]);
  const before = kept.map((file) => ({ file, bytes: statSync(file).size }));
  expect((await keptStores(folder)).toSorted((a, b) => a.file.localeCompare(b.file))).toEqual(
    before.toSorted((a, b) => a.file.localeCompare(b.file)),
  );
});

test("a restore of a linked database that was killed between its renames is finished", async () => {
  const { folder, copy } = await killed();
  const elsewhere = temporaryFolder();
  symlinkSync(elsewhere, join(folder, "disk"));
  symlinkSync("disk/link.db", join(folder, "sds.db.link"));
  symlinkSync("real.db", join(elsewhere, "link.db"));
  renameSync(join(folder, "sds.db"), join(elsewhere, KEPT.replace("sds", "real")));
  renameSync(join(folder, "sds.db-wal"), join(elsewhere, "real.db-wal"));
  renameSync(join(folder, "sds.db.link"), join(folder, "sds.db"));
  copyFileSync(copy, join(elsewhere, "real.db.restored"));
  utimesSync(join(elsewhere, "real.db.restored"), START / 1_000, START / 1_000);
  await backupStore(request(folder, join(temporaryFolder(), "again.db")));
  expect(await shops(folder)).toEqual(NEW);
  expect(existsSync(join(elsewhere, `${KEPT.replace("sds", "real")}-wal`))).toBe(true);
});

test("a restore uses the folder exclusively, waits only shortly for others, and other programs say why they are refused", async () => {
  const { folder, copy } = await killed();
  const store = await open(folder);
  const [refusal] = await failures([restoreStore(request(folder, copy))]);
  expect(refusal).toMatchObject({ code: "failed", message: expect.stringContaining(`${folder} is in use: stop`) });
  await store.close();
  const lock = takeDataFolder(folder, 0);
  afterTest(() => lock?.release());
  const [second] = await failures([open(folder)]);
  expect(second).toMatchObject({
    code: "failed",
    message: `a restore or a copy has ${folder} for itself now: try again when it has ended`,
  });
  lock?.release();
  expect(await shops(folder)).toEqual(OLD);
});

test("a restore replaces a damaged database, but not a database that only cannot be opened now", async () => {
  const { folder, copy } = await killed();
  const log = join(folder, "sds.db-wal");
  // With a folder in place of the log, SQLite reports CANTOPEN, as for a failing disk or missing permissions.
  renameSync(log, `${log}.kept`);
  mkdirSync(log);
  const [refusal] = await failures([restoreStore(request(folder, copy))]);
  expect(refusal).toMatchObject({
    code: "failed",
    message: expect.stringMatching(/^cannot keep the old database .*sds\.db: its file cannot be opened/),
  });
  expect(readdirSync(folder).filter((name) => /partial|restore/.test(name))).toEqual([]);
  rmSync(log, { recursive: true });
  renameSync(`${log}.kept`, log);
  expect(await shops(folder)).toEqual(OLD);
});

test("several programs that open a folder with an unfinished restore finish it once", async () => {
  const { folder, copy } = await killed();
  copyFileSync(copy, join(folder, "sds.db.restored"));
  const stores = await Promise.all(Array.from({ length: 4 }, () => open(folder)));
  for (const store of stores) {
    expect((await store.shops.list()).map(({ domain }) => domain)).toEqual(NEW);
    await store.close();
  }
});

test("a restore that fails keeps the old database in use, and leaves no draft", async () => {
  const { folder, copy } = await killed();
  writeFileSync(
    `${copy}.short`,
    await Bun.file(copy)
      .slice(0, 5 * 16_384)
      .bytes(),
  );
  const [refusal] = await failures([restoreStore(request(folder, `${copy}.short`))]);
  expect(refusal).toMatchObject({ code: "invalid", message: expect.stringContaining("copy.db.short is damaged: ") });
  expect(readdirSync(folder).filter((name) => /partial|restor/.test(name))).toEqual([]);
  expect(await shops(folder)).toEqual(OLD);
  rmSync(folder, { recursive: true });
});

test("a restore takes the tables that Litestream and ANALYZE add", async () => {
  const { folder, copy } = await killed();
  const db = new Database(copy);
  db.run("CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER)");
  db.run("ANALYZE");
  db.close();
  await restoreStore(request(folder, copy));
  expect(await shops(folder)).toEqual(NEW);
});

test("a restore begins a new epoch, and knows all former ones, so that their checkpoints are refused as restored", async () => {
  const folder = join(temporaryFolder(), "data");
  const copy = join(temporaryFolder(), "copy.db");
  const epochOf = async () => {
    const store = await open(folder);
    await store.close();
    return store;
  };
  const { epoch: before } = await epochOf();
  await backupStore(request(folder, copy));
  expect((await epochOf()).epoch).toEqual(before);
  await restoreStore(request(folder, copy));
  const { epoch: after, formerEpochs } = await epochOf();
  expect(after).not.toEqual(before);
  expect(formerEpochs).toEqual([before]);
  expect((await epochOf()).epoch).toEqual(after);
  // The second restore of the same copy replaces a database whose epoch the copy does not have.
  await restoreStore(request(folder, copy));
  expect((await epochOf()).formerEpochs).toEqual([after, before]);
});

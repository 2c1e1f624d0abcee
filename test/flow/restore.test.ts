import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import {
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { START, temporaryFolder } from "../support/app.ts";
import { afterTest } from "../support/cleanup.ts";
import { failure, PROGRAM, Program } from "../support/program.ts";
import { readDatabase, storedVersions, unpack } from "../support/stored-database.ts";
import { ALPHA, addShop, type Backup, BETA, changedSinceBackup, keptIn, openData, shops } from "./backups.ts";

const GAMMA = "gamma.myshopify.com";

describe("restore", () => {
  test("puts the copy in place, keeps the old database, and can restore that database too", async () => {
    const { program, copy } = await changedSinceBackup();
    const { stderr, ...restored } = await program.run(["restore", copy, "--yes"]);
    expect(restored).toEqual({ status: 0, stdout: "" });
    const kept = join(program.data, keptIn(program.data)[0] ?? "");
    expect(stderr).toBe(
      `Restored ${copy} into ${program.data}.\n` +
        `The old database is kept as ${kept}. Delete it when you do not need it any more.\n`,
    );
    expect(await shops(program)).toEqual([ALPHA]);
    expect(statSync(join(program.data, "sds.db")).mode & 0o777).toBe(0o600);
    const { size: bytes } = statSync(kept);
    expect(await program.json(["restore", kept, "--yes"])).toEqual({ file: kept, bytes });
    expect(await shops(program)).toEqual([ALPHA, BETA]);
    expect(keptIn(program.data)).toHaveLength(2);
    const others = readdirSync(program.data).filter((name) => !keptIn(program.data).includes(name));
    expect(others.toSorted()).toEqual(["master.key", "sds.db", "sds.lock"]);
    expect((await program.run(["status"])).stdout).toContain(`\n2 old databases hold `);
    const status = JSON.parse((await program.run(["status", "--json"])).stdout) as { kept: unknown[] };
    expect(status.kept).toContainEqual({ file: kept, bytes });
  });

  test("does not mix the copy with the log of a killed process, and keeps what was in that log", async () => {
    const { program, copy } = await changedSinceBackup();
    const store = await openData(program);
    await store.shops.add({ domain: GAMMA, plan: "pro", currency: "USD" }, START);
    const killed = new Program();
    mkdirSync(killed.data);
    for (const name of ["sds.db", "sds.db-wal", "sds.db-shm", "master.key"])
      copyFileSync(join(program.data, name), join(killed.data, name));
    await store.close();
    expect(statSync(join(killed.data, "sds.db-wal")).size).toBeGreaterThan(0);
    await killed.json(["restore", copy, "--yes"]);
    expect(existsSync(join(killed.data, "sds.db-wal"))).toBe(false);
    expect(await shops(killed)).toEqual([ALPHA]);
    const old = new Database(join(killed.data, keptIn(killed.data)[0] ?? ""), { readonly: true });
    afterTest(() => old.close());
    expect(old.query("SELECT domain FROM shops ORDER BY 1").values().flat()).toEqual([ALPHA, BETA, GAMMA]);
  });

  test("is refused without --yes, while serve runs, and while another program has the database open", async () => {
    const { program, copy } = await changedSinceBackup();
    expect(await program.run(["restore", copy])).toEqual(
      failure(2, `this replaces the database in ${program.data} by ${copy}: add --yes to do it`),
    );
    const inUse = failure(
      1,
      `${program.data} is in use: stop \`sds serve\`, wait for other commands to end, and run this again; nothing was ` +
        "changed",
    );
    const server = await program.serve();
    expect(await program.run(["restore", copy, "--yes"])).toEqual(inUse);
    await server.stop("SIGKILL");

    const other = new Database(join(program.data, "sds.db"));
    other.query("SELECT * FROM shops").all();
    expect(await program.run(["restore", copy, "--yes"])).toEqual(inUse);
    other.close();
    expect(await shops(program)).toEqual([ALPHA, BETA]);
    await program.json(["restore", copy, "--yes"]);
    expect(await shops(program)).toEqual([ALPHA]);
  });

  test("makes a missing folder, and says that the master key is missing", async () => {
    const { program, copy } = await changedSinceBackup();
    const fresh = new Program(join(temporaryFolder(), "a", "data"));
    const key = join(fresh.data, "master.key");
    expect(await fresh.run(["restore", copy, "--yes"])).toEqual({
      status: 0,
      stdout: "",
      stderr:
        `Restored ${copy} into ${fresh.data}.\n` +
        `sds: warning: the master key ${key} is missing: put it back before you start \`sds serve\`\n`,
    });
    expect((await fresh.run(["shop", "list"])).stderr).toContain(`the master key ${key} is missing`);
    copyFileSync(join(program.data, "master.key"), key);
    expect(await shops(fresh)).toEqual([ALPHA]);
    expect(statSync(fresh.data).mode & 0o777).toBe(0o700);
  });

  test.each(storedVersions())("upgrades the copy of schema %d when it is opened", async (version) => {
    const old = new Program();
    await unpack(version, old.data);
    const copy = join(temporaryFolder(), "copy.db");
    await old.json(["backup", copy]);
    const before = await shops(old);
    await old.json(["restore", copy, "--yes"]);
    expect(readDatabase(old.data).schemaVersion).toBe(version);
    expect(await shops(old)).toEqual(before);
  });

  test("replaces a damaged database or another file, and keeps the old file unchanged", async () => {
    const { program, copy } = await changedSinceBackup();
    const database = join(program.data, "sds.db");
    for (const damage of ["no database ".repeat(2_000), "x"]) {
      writeFileSync(database, damage);
      writeFileSync(`${database}-wal`, "its log");
      await program.json(["restore", copy, "--yes"]);
      expect(await shops(program)).toEqual([ALPHA]);
      expect(keptIn(program.data).map((name) => readFileSync(join(program.data, name), "utf8"))).toContain(damage);
    }
  });
});

/** Runs a statement on a database file. @returns the file's path */
function runSql(file: string, sql: string): string {
  using db = new Database(file);
  db.run(sql);
  return file;
}

describe("restore refuses, and changes nothing,", () => {
  /** Changes the copy. @returns the copy, as the file to restore */
  const changed =
    (change: (copy: string) => void) =>
    ({ copy }: Backup) => {
      change(copy);
      return copy;
    };
  const changedBy = (sql: string) => changed((copy) => runSql(copy, sql));
  const notDatabase = changed((copy) => writeFileSync(copy, "no database".repeat(2_000)));
  const otherKey = "UPDATE meta SET value = 'another' WHERE name = 'master_key'";

  const refusals: [string, (backup: Backup) => string, number, string][] = [
    ["a missing file", ({ folder }) => join(folder, "no"), 3, "there is no file FILE"],
    ["a folder", ({ folder }) => folder, 2, "FILE is not a file"],
    ["a file that is not a database", notDatabase, 2, "FILE is not a database"],
    ["an empty file", changed((copy) => truncateSync(copy, 0)), 2, "FILE is not a database"],
    ["a copy that was cut off", changed((copy) => truncateSync(copy, 5 * 16_384)), 2, "FILE is damaged: "],
    [
      "another program's database",
      ({ folder }) => runSql(join(folder, "theirs"), "CREATE TABLE theirs (a)"),
      1,
      "FILE is a database of another program",
    ],
    ["a newer program's database", changedBy("PRAGMA user_version = 99"), 1, "FILE was written by a newer sds"],
    [
      "a copy with a trigger that sds did not make",
      changedBy("CREATE TRIGGER extra AFTER DELETE ON meta BEGIN DELETE FROM shops; END"),
      2,
      "FILE is not a copy that sds made: it has the trigger extra, which schema ",
    ],
    [
      "a copy without an index",
      changedBy("DROP INDEX orders_by_gid"),
      2,
      "FILE is not a copy that sds made: it lacks ",
    ],
    [
      "a copy that needs another master key",
      changedBy(otherKey),
      1,
      "the secrets in this backup were encrypted with another master key than ",
    ],
    [
      "the database itself",
      ({ program }) => join(program.data, "sds.db"),
      2,
      "FILE is the database itself, not a backup of it",
    ],
    [
      "the database itself under another name",
      ({ program, folder }) => {
        linkSync(join(program.data, "sds.db"), join(folder, "hard"));
        return join(folder, "hard");
      },
      2,
      "FILE is the database itself, not a backup of it",
    ],
    [
      "a copy whose log is beside it",
      changed((copy) => writeFileSync(`${copy}-wal`, "more")),
      2,
      "FILE is not a whole copy, because a part of it is in FILE-wal",
    ],
  ];

  test.each(refusals)("%s", async (_what, make, status, message) => {
    const backup = await changedSinceBackup();
    const { program } = backup;
    const file = make(backup);
    const result = await program.run(["restore", file, "--yes"]);
    expect({ ...result, stderr: result.stderr.split("\n").length }).toEqual({ status, stdout: "", stderr: 2 });
    expect(result.stderr).toStartWith(`sds: ${message.replaceAll("FILE", file)}`);
    expect(readdirSync(program.data).toSorted()).toEqual(["master.key", "sds.db", "sds.lock"]);
    expect(await shops(program)).toEqual([ALPHA, BETA]);
  });
});

test.each([
  ["yes\n", 0, [ALPHA]],
  ["n\n", 2, [ALPHA, BETA]],
  // U+0004 ends the input.
  ["\u0004", 2, [ALPHA, BETA]],
])("restore asks on a terminal, and %j ends it with %d", async (answer, status, expected) => {
  const { program, copy } = await changedSinceBackup();
  const { shown, ...ended } = await program.answer(["restore", copy], answer);
  expect(ended).toEqual({ status });
  expect(shown).toStartWith(`this replaces the database in ${program.data} by ${copy}. Go on? [y/N] `);
  expect(await shops(program)).toEqual(expected);
});

test("`shop remove` asks on a terminal; meanwhile others may use the folder and replace its database", async () => {
  const { program, copy } = await changedSinceBackup();
  let shown = "";
  const asked = Promise.withResolvers<Bun.Terminal>();
  const child = Bun.spawn([...PROGRAM, "shop", "remove", BETA], {
    env: { PATH: process.env["PATH"] ?? "", SDS_DATA: program.data },
    terminal: {
      data(terminal, bytes) {
        shown += Buffer.from(bytes).toString();
        if (shown.includes("[y/N]")) asked.resolve(terminal);
      },
    },
  });
  const terminal = await asked.promise;
  expect((await program.run(["restore", copy, "--yes"])).status).toBe(0);
  await addShop(program, BETA);
  terminal.write("y\n");
  expect(await child.exited).toBe(0);
  expect(shown).toEndWith(`Removed ${BETA}.\r\n`);
  expect(await shops(program)).toEqual([ALPHA]);
});

test("a database behind a symbolic link is backed up and restored in its own place", async () => {
  const { program, copy } = await changedSinceBackup();
  const elsewhere = join(temporaryFolder(), "real.db");
  const database = join(program.data, "sds.db");
  copyFileSync(database, elsewhere);
  await Bun.file(database).delete();
  symlinkSync(elsewhere, database);
  await program.json(["restore", copy, "--yes"]);
  expect(await shops(program)).toEqual([ALPHA]);
  expect(readdirSync(dirname(elsewhere))).toContainEqual(
    expect.stringMatching(/^real\.db\.before-restore-\d{4}-\d\d-\d\dT\d{6}Z$/),
  );
  await program.json(["backup", join(temporaryFolder(), "again.db")]);
});

test("a restore compares the master key in another folder", async () => {
  const keys = temporaryFolder();
  const program = new Program(undefined, { SDS_MASTER_KEY_FILE: join(keys, "key") });
  const copy = join(temporaryFolder(), "copy.db");
  await program.json(["shop", "add", ALPHA]);
  expect((await program.run(["backup", copy])).stderr).toContain(join(keys, "key"));
  writeFileSync(join(keys, "key"), `${"0".repeat(64)}\n`);
  expect((await program.run(["restore", copy, "--yes"])).status).toBe(1);
});

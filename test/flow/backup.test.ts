import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import {
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { basename, join } from "node:path";
import { temporaryFolder } from "../support/app.ts";
import { afterTest } from "../support/cleanup.ts";
import { failure, Program } from "../support/program.ts";
import { readDatabase, storedVersions, unpack } from "../support/stored-database.ts";
import { ALPHA, BETA, changedSinceBackup } from "./backups.ts";

describe("backup", () => {
  test("copies the whole database while serve runs, readable only for its owner, and says where the master key is", async () => {
    const { program, folder } = await changedSinceBackup();
    await program.serve();
    const [file, other] = [join(folder, "a.db"), join(folder, "b.db")];
    expect(await program.run(["backup", file])).toEqual({
      status: 0,
      stdout: expect.stringMatching(new RegExp(`^${file}: \\d+ bytes in [\\d.]+ s\n$`)),
      stderr: `The master key is not in it. Keep a copy of ${join(program.data, "master.key")} in another place.\n`,
    });
    expect(await program.json(["backup", other])).toEqual({
      file: other,
      bytes: statSync(other).size,
      seconds: expect.any(Number),
    });
    const { database } = await program.json<{ database: { lastBackupAt: string } }>(["status"]);
    expect(Math.abs(Date.parse(database.lastBackupAt) - statSync(other).mtimeMs)).toBeLessThan(60_000);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readdirSync(folder).toSorted()).toEqual(["a.db", "b.db", "copy.db"]);
    const db = new Database(file, { readonly: true });
    afterTest(() => db.close());
    expect(db.query("PRAGMA integrity_check").get()).toEqual({ integrity_check: "ok" });
    expect(db.query("SELECT domain FROM shops ORDER BY 1").values()).toEqual([[ALPHA], [BETA]]);
    expect(readFileSync(file).includes(readFileSync(join(program.data, "master.key"), "utf8").trim())).toBe(false);
  });

  test("overwrites no file, and needs an existing folder", async () => {
    const { program, folder, copy } = await changedSinceBackup();
    const before = readFileSync(copy);
    const link = join(folder, "link");
    symlinkSync("/nowhere/at/all", link);
    for (const file of [copy, link, folder]) {
      expect(await program.run(["backup", file])).toEqual(
        failure(1, `${file} exists already: a backup overwrites nothing, choose another name`),
      );
    }
    expect(readFileSync(copy).equals(before)).toBe(true);
    const backup = (file: string) => program.run(["backup", file]);
    expect(await backup(join(folder, "no", "a.db"))).toEqual(failure(3, `there is no folder ${folder}/no`));
    for (const name of [
      "sds.db-wal",
      "sds.db.restored",
      "sds.db.before-restore-1",
      "sds.db.before-upgrade-1",
      "sds.lock-journal",
      "sds.env",
      "master.key.new",
    ]) {
      const file = join(program.data, name);
      expect(await backup(file)).toEqual(failure(2, `${file} is a name that sds itself uses: choose another one`));
    }
    expect((await backup("-")).status).toBe(2);
    expect(await backup("/proc/a.db")).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/^sds: cannot make the backup \/proc\/a\.db: [^\n]+\n$/),
    });
  });

  test("works beside the draft of an interrupted backup, and removes the draft later", async () => {
    const { program, folder, copy } = await changedSinceBackup();
    const file = join(folder, "a.db");
    // SQLite writes the header of a copy last, so the draft of an interrupted backup can begin with zeros. The drafts
    // belong to other file names than `a.db`, because a user may name each night's backup differently.
    const drafts = { header: readFileSync(copy), zeros: Buffer.alloc(50_000), empty: "", other: "another program's" };
    const draft = (name: string) => join(folder, `${name}.db.0123456789abcdef.partial`);
    for (const [name, content] of Object.entries(drafts)) {
      writeFileSync(draft(name), content);
      utimesSync(draft(name), 0, 0);
    }
    writeFileSync(`${draft("header")}-journal`, "");
    writeFileSync(draft("fresh"), drafts.header);
    await program.json(["backup", file]);
    expect(readdirSync(folder).toSorted()).toEqual(
      ["a.db", "copy.db", ...["fresh", "other"].map((name) => basename(draft(name)))].toSorted(),
    );
  });

  test("works without the master key and on an older schema, and changes neither", async () => {
    const program = new Program();
    const [version = 0] = storedVersions();
    await unpack(version, program.data);
    await Bun.file(join(program.data, "master.key")).delete();
    const file = join(temporaryFolder(), "a.db");
    expect(await program.run(["backup", file])).toMatchObject({
      status: 0,
      stderr: `sds: warning: the master key is not in it, and ${join(program.data, "master.key")} is missing\n`,
    });
    expect(readDatabase(program.data).schemaVersion).toBe(version);
    expect(existsSync(join(program.data, "master.key"))).toBe(false);
  });

  test("of a damaged database fails and leaves no file", async () => {
    const { program, folder } = await changedSinceBackup();
    truncateSync(join(program.data, "sds.db"), 5 * 16_384);
    const { status, stderr } = await program.run(["backup", join(folder, "a.db")]);
    expect({ status, lines: stderr.split("\n").length }).toEqual({ status: 1, lines: 2 });
    expect(readdirSync(folder)).toEqual(["copy.db"]);
  });
});

test("a backup is verified without folder and key, and nothing is written", async () => {
  const { program, copy, folder } = await changedSinceBackup();
  const elsewhere = new Program();
  const verify = (file: string) => elsewhere.run(["backup", "--verify", file]);
  const bytes = statSync(copy).size;
  expect(await elsewhere.json(["backup", "--verify", copy])).toEqual({
    file: copy,
    bytes,
    schema: expect.any(Number),
    shops: 1,
    subscriptions: 0,
  });
  expect((await verify(copy)).stdout).toStartWith(`${copy}: whole, `);
  expect([readdirSync(folder), existsSync(elsewhere.data)]).toEqual([["copy.db"], false]);

  const cut = join(folder, "cut.db");
  copyFileSync(copy, cut);
  truncateSync(cut, bytes / 2);
  expect(await verify(cut)).toMatchObject({ status: 2, stderr: expect.stringContaining("cut.db is damaged") });
  writeFileSync(join(folder, "other"), "no database");
  expect((await verify(join(folder, "other"))).stderr).toContain("is not a database");
  const foreign = join(folder, "foreign.db");
  const db = new Database(foreign);
  db.run("CREATE TABLE t (a)");
  db.close();
  expect((await verify(foreign)).status).toBeGreaterThan(0);
  expect((await verify(join(folder, "nothing"))).status).toBe(3);
  expect(existsSync(program.data)).toBe(true);
});

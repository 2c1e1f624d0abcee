import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  rmdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { basename, join } from "node:path";
import { version as PROGRAM_VERSION } from "../../package.json";
import { openDatabase } from "../../src/store/sqlite/database.ts";
import { temporaryFolder } from "../support/app.ts";
import { afterTest } from "../support/cleanup.ts";
import { eventually } from "../support/eventually.ts";
import { UPGRADE } from "../support/open-store.ts";
import { failure, PROGRAM, Program } from "../support/program.ts";
import { readDatabase, storedVersions, unpack } from "../support/stored-database.ts";

const DOMAIN = "alpha.myshopify.com";

const NO_DATA = (folder: string) =>
  `sds: there is no data in ${folder}: name another folder with --data, or add a shop with ` +
  "`sds shop add alpha.myshopify.com`\n";

/** Every command that uses stored data, except those that make a data folder. */
const COMMANDS = [
  ["shop", "list"],
  ["shop", "show", DOMAIN],
  ["shop", "set", DOMAIN, "--plan", "free"],
  ["shop", "remove", DOMAIN, "--yes"],
  ["shop", "disconnect", DOMAIN],
  ["sync"],
  ["key", "create", "--label", "A"],
  ["key", "list"],
  ["admin", "link"],
  ["intake", "secret"],
  ["webhook", "set", "--all-topics"],
  ["webhook", "secret"],
  ["delivery", "list"],
  ["inbox", "list"],
  ["customer", "export", "7"],
  ["listen", "--port", "0"],
  ["backup", "copy.db"],
];

describe("a command that makes no data folder ends with 3 on a folder without data, and changes nothing", () => {
  test("if the folder is missing", async () => {
    const runs = COMMANDS.map(async (args) => {
      const above = temporaryFolder();
      const program = new Program(join(above, "data"));
      expect({ args, ...(await program.run(args)) }).toEqual({
        args,
        status: 3,
        stdout: "",
        stderr: NO_DATA(program.data),
      });
      expect(readdirSync(above)).toEqual([]);
    });
    await Promise.all(runs);
  });

  test("if a part of its path is a file", async () => {
    const program = new Program("/etc/passwd/data");
    expect(await program.run(["shop", "list"])).toEqual({ status: 3, stdout: "", stderr: NO_DATA(program.data) });
    expect(await program.run(["backup", "copy.db"])).toEqual({ status: 3, stdout: "", stderr: NO_DATA(program.data) });
  });

  test("if the folder exists, and if an interrupted first start left an empty database", async () => {
    const program = new Program();
    mkdirSync(program.data);
    const list = () => program.run(["shop", "list"]);
    expect(await list()).toEqual({ status: 3, stdout: "", stderr: NO_DATA(program.data) });
    expect(readdirSync(program.data)).toEqual([]);
    writeFileSync(join(program.data, "sds.db"), "");
    expect(await list()).toEqual({ status: 3, stdout: "", stderr: NO_DATA(program.data) });
    const db = new Database(join(program.data, "sds.db"));
    db.run("PRAGMA journal_mode = WAL");
    db.close();
    expect(await list()).toEqual({ status: 3, stdout: "", stderr: NO_DATA(program.data) });
    await program.json(["shop", "add", DOMAIN]);
    expect(await program.json<unknown[]>(["shop", "list"])).toHaveLength(1);
  });
});

test.each([
  [["shop", "add", DOMAIN], 0],
  [["import", "-"], 3],
])("%j makes the data folder and missing folders above it", async (args, status) => {
  const program = new Program(join(temporaryFolder(), "a", "b", "data"));
  expect((await program.run(args)).status).toBe(status);
  expect(existsSync(join(program.data, "sds.db"))).toBe(true);
});

test("a file that is not a database, and a broken link, are named and left unchanged", async () => {
  const program = new Program();
  mkdirSync(program.data);
  const database = join(program.data, "sds.db");
  for (const text of ["x", "no database".repeat(1_000)]) {
    writeFileSync(database, text);
    for (const args of [
      ["shop", "list"],
      ["shop", "add", DOMAIN],
    ])
      expect(await program.run(args)).toEqual(
        failure(1, `cannot open the database ${database}: file is not a database`),
      );
    expect(await Bun.file(database).text()).toBe(text);
  }
  await Bun.file(database).delete();
  symlinkSync("/nowhere/at/all", database);
  const { status, stderr } = await program.run(["shop", "list"]);
  expect(status).toBe(1);
  expect(stderr).toStartWith(`sds: cannot open the database ${database}: `);
});

const NOBODY = 65_534;

/** Runs a command as a user other than root. @returns its status and its messages */
async function runAsNobody({ data }: Program, args: string[]): Promise<{ status: number; stderr: string }> {
  const user = ["setpriv", `--reuid=${NOBODY}`, `--regid=${NOBODY}`, "--clear-groups"];
  const child = Bun.spawn([...user, ...PROGRAM, ...args], {
    env: { PATH: process.env["PATH"] ?? "", SDS_DATA: data },
    cwd: "/",
    stdout: "ignore",
    stderr: "pipe",
  });
  return { stderr: await child.stderr.text(), status: await child.exited };
}

/**
 * Makes a program whose data folder belongs to another user. Also returns a function that lists root's files in the
 * folder.
 */
function programOfNobody(): { program: Program; ofRoot: () => string[] } {
  const above = temporaryFolder();
  for (const folder of [join(above, ".."), above]) chmodSync(folder, 0o755);
  const program = new Program(join(above, "data"));
  mkdirSync(program.data, { mode: 0o700 });
  chownSync(program.data, NOBODY, NOBODY);
  const ofRoot = () => readdirSync(program.data).filter((name) => statSync(join(program.data, name)).uid === 0);
  return { program, ofRoot };
}

describe.skipIf(process.geteuid?.() !== 0)("commands that root runs do not lock out the owner of the folder", () => {
  const done = { status: 0, stderr: "" };

  test("if root makes the data", async () => {
    const { program, ofRoot } = programOfNobody();
    await program.json(["shop", "add", DOMAIN]);
    expect(ofRoot()).toEqual([]);
    expect(await runAsNobody(program, ["key", "create", "--label", "A"])).toEqual({
      ...done,
      stderr: expect.any(String),
    });
  });

  test("if root makes a backup, and restores it", async () => {
    const { program, ofRoot } = programOfNobody();
    expect((await runAsNobody(program, ["shop", "add", DOMAIN])).status).toBe(0);
    // Older versions had no lock, so this file did not exist.
    await Bun.file(join(program.data, "sds.lock")).delete();
    const copy = join(temporaryFolder(), "copy.db");
    await program.json(["backup", copy]);
    expect(ofRoot()).toEqual([]);
    expect(await runAsNobody(program, ["shop", "list"])).toEqual(done);
    await program.json(["restore", copy, "--yes"]);
    expect(ofRoot()).toEqual([]);
    expect(await runAsNobody(program, ["shop", "set", DOMAIN, "--currency", "EUR"])).toEqual(done);
  });
});

/** Lists the open files of a process. Skips files that the process closes meanwhile. */
function openFiles(pid: number): string[] {
  const folder = `/proc/${pid}/fd`;
  return readdirSync(folder).flatMap((name) => {
    try {
      return [readlinkSync(join(folder, name))];
    } catch {
      return [];
    }
  });
}

describe("an older database", () => {
  const [version = 0] = storedVersions();
  const old = async () => {
    const program = new Program();
    await unpack(version, program.data);
    return program;
  };

  test("is upgraded by a command if no other program uses it", async () => {
    const program = await old();
    expect((await program.json<unknown[]>(["shop", "list"])).length).toBeGreaterThan(0);
    expect(readDatabase(program.data).schemaVersion).toBeGreaterThan(version);
  });

  test("is copied before its upgrade, readable only for its owner; the next upgrade removes the copy", async () => {
    const program = await old();
    const former = join(program.data, "sds.db.before-upgrade-0.0.1");
    writeFileSync(former, "of an earlier upgrade");
    const shops = await program.json<{ domain: string }[]>(["shop", "list"]);
    const copy = join(program.data, `sds.db.before-upgrade-${PROGRAM_VERSION}`);
    expect(readdirSync(program.data).filter((name) => name.includes("before-upgrade"))).toEqual([basename(copy)]);
    expect(statSync(copy).mode & 0o777).toBe(0o600);
    const db = new Database(copy, { readonly: true });
    afterTest(() => db.close());
    expect(db.query("PRAGMA user_version").get()).toEqual({ user_version: version });
    const status = JSON.parse((await program.run(["status", "--json"])).stdout) as { kept: unknown[] };
    expect(status.kept).toEqual([{ file: copy, bytes: statSync(copy).size }]);
    // A restore of the copy undoes the upgrade.
    await program.json(["restore", copy, "--yes"]);
    expect(readDatabase(program.data).schemaVersion).toBe(version);
    expect(await program.json<unknown[]>(["shop", "list"])).toEqual(shops);
  });

  test("is not upgraded if no copy can be kept, unless with --no-copy", async () => {
    const program = await old();
    // The copy fails, even for root, if a folder has the copy's name.
    mkdirSync(join(program.data, `sds.db.before-upgrade-${PROGRAM_VERSION}`));
    for (const args of [["shop", "list"], ["serve"]]) {
      const { status, stderr } = await program.run(args);
      expect({ status, lines: stderr.split("\n").length }).toEqual({ status: 1, lines: 2 });
      expect(stderr).toMatch(
        /is from an older sds, and no copy of it can be kept before the upgrade: .*run this again with --no-copy; nothing was changed\n$/,
      );
    }
    expect(readDatabase(program.data).schemaVersion).toBe(version);
    rmdirSync(join(program.data, `sds.db.before-upgrade-${PROGRAM_VERSION}`));
    expect((await program.run(["shop", "list", "--no-copy"])).status).toBe(0);
    expect(readDatabase(program.data).schemaVersion).toBeGreaterThan(version);
    expect(readdirSync(program.data).filter((name) => /before-upgrade|partial/.test(name))).toEqual([]);
  });

  // The upgrade drops the triggers that list new rows. An older program that still runs would then add rows without
  // listing them.
  test.each(["shop list", "serve --port 0"])("is not upgraded by %p while others have it open", async (command) => {
    const program = await old();
    const other = new Database(join(program.data, "sds.db"));
    afterTest(() => other.close());
    other.run("PRAGMA journal_mode = WAL");
    other.query("SELECT * FROM shops").all();
    const { status, stderr } = await program.run(command.split(" "));
    expect({ status, lines: stderr.split("\n").length }).toEqual({ status: 1, lines: 2 });
    expect(stderr).toContain("is from an older sds, and another process uses it");
    expect(other.query("PRAGMA user_version").get()).toEqual({ user_version: version });
  });

  test("is used by a command that waits to upgrade it, as soon as another program has upgraded it", async () => {
    const program = await old();
    const path = join(program.data, "sds.db");
    const reader = new Database(path);
    afterTest(() => reader.close());
    reader.run("PRAGMA journal_mode = WAL");
    reader.query("SELECT * FROM shops").all();
    const { pid, exited } = await program.start(["shop", "list"]);
    await eventually(() => openFiles(pid).some((file) => file.endsWith("/sds.lock")));
    const upgraded = openDatabase(path, 2_000, UPGRADE);
    afterTest(() => upgraded.close());
    expect(await exited).toBe(0);
  });

  test("is upgraded once by programs that start at the same time", async () => {
    for (let round = 0; round < 5; round += 1) {
      const program = await old();
      const runs = Array.from({ length: 3 }, () => program.run(["shop", "list"]));
      const results = await Promise.all(runs);
      expect(results.map(({ status, stderr }) => ({ status, stderr }))).toEqual(
        results.map(() => ({ status: 0, stderr: "" })),
      );
    }
  });
});

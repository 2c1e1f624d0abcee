import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import {
  chmodSync,
  chownSync,
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  openSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../support/app.ts";
import { afterTest } from "../support/cleanup.ts";
import { Program } from "../support/program.ts";
import { canMount, mountDisk } from "../support/small-disk.ts";
import { failuresOf, onlyFault } from "./doctor-results.ts";

const NOBODY = 65_534;

describe("sds doctor finds, in a folder of SQLite,", () => {
  const asRoot = process.geteuid?.() === 0;

  test("that there is no data, and makes none", async () => {
    const program = new Program();
    expect(Object.keys(await failuresOf(program))).toEqual(["data folder", "disk", "database"]);
    expect(existsSync(program.data)).toBe(false);
  });

  test("files with a wrong mode or owner", async () => {
    const program = await Program.withShop();
    chmodSync(join(program.data, "sds.db"), 0o644);
    expect(await onlyFault("data folder", program)).toContain("sds.db: the mode");
    chmodSync(join(program.data, "sds.db"), 0o600);
    chmodSync(program.data, 0o777);
    expect(await onlyFault("data folder", program)).toContain(`${program.data}: the mode`);
    chmodSync(program.data, 0o702);
    expect(await onlyFault("data folder", program)).toContain(`${program.data}: the mode`);
    chmodSync(program.data, 0o755);
    expect(await failuresOf(program)).toEqual({});
    if (!asRoot) return;
    chownSync(join(program.data, "sds.db"), 12_345, 12_345);
    expect(await onlyFault("data folder", program)).toContain("sds.db: the owner is 12345");
  });

  test.skipIf(!asRoot)("what the owner of the folder may not read, also if root runs it", async () => {
    const above = temporaryFolder();
    for (const folder of [join(above, ".."), above]) chmodSync(folder, 0o755);
    const program = new Program(join(above, "data"));
    mkdirSync(program.data, { mode: 0o700 });
    chownSync(program.data, NOBODY, NOBODY);
    await program.json(["shop", "add", "alpha.myshopify.com"]);
    expect(await failuresOf(program)).toEqual({});
    const secret = join(above, "secret");
    writeFileSync(secret, "secret", { mode: 0o600 });
    const env = { SDS_PLATFORM_SECRET_FILE: secret };
    expect(await onlyFault("settings", program, env)).toContain(
      `${secret}, which root owns: run this as root, or change the owner`,
    );
    chownSync(secret, NOBODY, NOBODY);
    expect(await failuresOf(program, env)).toEqual({});
    writeFileSync(join(program.data, "sds.env"), "SDS_LOG=info\n", { mode: 0o600 });
    expect(await onlyFault("settings", program)).toContain("sds.env, which root owns");
    rmSync(join(program.data, "sds.env"));
    // Root may open this folder, but the owner of the file may not.
    const key = join(temporaryFolder(), "master.key");
    copyFileSync(join(program.data, "master.key"), key);
    chownSync(key, NOBODY, NOBODY);
    expect(await onlyFault("master key", program, { SDS_MASTER_KEY_FILE: key })).toContain("in a folder that");
  });

  test("that there was no backup for two days, until the next one", async () => {
    const program = await Program.withShop();
    const db = new Database(join(program.data, "sds.db"));
    db.run("UPDATE shops SET created_at = created_at - 200000000");
    db.close();
    expect(await onlyFault("backup", program)).toContain(
      "no backup for two days: sds knows no backup of this database",
    );
    await program.json(["backup", join(temporaryFolder(), "copy.db")]);
    expect(await failuresOf(program)).toEqual({});
  });

  test.skipIf(!canMount)("a disk that is almost full", async () => {
    const disk = mountDisk(8);
    if (disk === undefined) return;
    const program = new Program(join(disk, "data"));
    await program.json(["shop", "add", "alpha.myshopify.com"]);
    expect(await onlyFault("disk", program)).toContain(`free on the disk of ${program.data} | delete old databases`);
  });

  test("a database that is damaged, at its beginning and elsewhere", async () => {
    const program = await Program.withShop();
    const file = join(program.data, "sds.db");
    overwrite(file, 16_384 * 3);
    expect(await onlyFault("damage", program)).toMatch(/the database is damaged.*\S \| .*sds restore FILE/);
    overwrite(file, 0);
    expect(await onlyFault("database", program)).toContain("file is not a database | stop `sds serve`, and restore");
  });

  test("a log without its index, and an unfinished restore", async () => {
    const program = await Program.withShop();
    const server = await program.serve();
    const other = new Program(join(temporaryFolder(), "data"));
    await program.json(["shop", "add", "beta.myshopify.com"]);
    await server.stop("SIGKILL");
    rmSync(join(program.data, "sds.db-shm"));
    expect(await onlyFault("database", program)).toContain("a log without its index");
    await other.json(["shop", "add", "alpha.myshopify.com"]);
    writeFileSync(join(other.data, "sds.db.restored"), "");
    expect(await onlyFault("database", other)).toContain("has an unfinished restore");
  });

  test("an older schema, which it does not upgrade", async () => {
    const program = await Program.withShop();
    await program.setSchemaVersion(16);
    expect(await failuresOf(program)).toEqual({});
    const db = new Database(join(program.data, "sds.db"), { readonly: true });
    afterTest(() => db.close());
    expect(db.query("PRAGMA user_version").get()).toEqual({ user_version: 16 });
  });
});

/** Destroys a page of a file. */
function overwrite(file: string, at: number): void {
  const fd = openSync(file, "r+");
  writeSync(fd, Buffer.alloc(16_384, 0x5a), 0, 16_384, at);
  closeSync(fd);
}

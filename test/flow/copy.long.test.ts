import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { SQL } from "bun";
import { temporaryFolder } from "../support/app.ts";
import { afterTest } from "../support/cleanup.ts";
import { eventually } from "../support/eventually.ts";
import { emptyDatabase, hasPostgres } from "../support/postgres-server.ts";
import { Program } from "../support/program.ts";
import { customer } from "../support/records.ts";
import { readRows } from "../support/rows.ts";
import { type Answers, storedVersions, unpack } from "../support/stored-database.ts";
import { expectWaitingDeliveries } from "../support/stored-deliveries.ts";

const ENV = { SDS_PLATFORM_URL: "http://127.0.0.1:9/{shop}", SDS_EGRESS_ALLOW: "127.0.0.0/8" };

interface Sides {
  answers: Answers;
  /** The program on the data folder. */
  local: Program;
  /** The address of an empty database. */
  url: string;
  /** The program on the database at `url`, with the master key of the data folder. */
  remote: Program;
}

async function sides(): Promise<Sides> {
  const data = join(temporaryFolder(), "data");
  const answers = await unpack(storedVersions().at(-1) ?? 0, data);
  const url = await emptyDatabase();
  return { answers, url, local: new Program(data, ENV), remote: new Program(data, { ...ENV, SDS_DATABASE_URL: url }) };
}

/** Returns the address as messages show it. */
function nameOf(url: string): string {
  const { host, pathname } = new URL(url);
  return `postgres://${host}${pathname}`;
}

/** Expects that commands refuse a database whose copy was interrupted. */
async function expectUnfinished(program: Program, name: string, more: string[]): Promise<void> {
  const stderr = expect.stringContaining(`${name} has an unfinished copy: run sds copy again`);
  for (const args of [["shop", "list"], ["shop", "add", "gamma.myshopify.com"], more])
    expect({ args, ...(await program.run(args)) }).toMatchObject({ args, status: 1, stderr });
}

/** Expects that a copy is refused, because a program uses the source or the target. */
async function expectInUse(program: Program, to: string, name: string): Promise<void> {
  const result = await program.run(["copy", "--to", to]);
  expect(result).toMatchObject({ status: 1, stderr: expect.stringContaining(`${name} is in use`) });
}

describe.skipIf(!hasPostgres())("sds copy", () => {
  test("copies to PostgreSQL and back, and prints the number of rows and seconds", async () => {
    const { local, remote, url } = await sides();
    const beganAt = performance.now();
    const first = await local.json<{ rows: number; seconds: number }>(["copy", "--to", url]);
    expect(first.rows).toBeGreaterThan(300);
    expect(first.seconds).toBeGreaterThan(0);
    expect(first.seconds).toBeLessThan((performance.now() - beganAt) / 1_000);
    expect(await remote.json(["shop", "list"])).toEqual(await local.json(["shop", "list"]));
    const folder = join(temporaryFolder(), "back");
    const back = await remote.run(["copy", "--to", `sqlite:${folder}`]);
    expect(back).toMatchObject({ status: 0, stdout: expect.stringContaining("copied and compared ") });
    expect(back.stderr).toContain(`Copy ${join(local.data, "master.key")} to ${join(folder, "master.key")}`);
    const copied = new Program(folder, { ...ENV, SDS_MASTER_KEY_FILE: join(local.data, "master.key") });
    expect(await copied.json(["webhook", "secret", "--shop", "alpha.myshopify.com"])).toEqual(
      await local.json(["webhook", "secret", "--shop", "alpha.myshopify.com"]),
    );
    expect(readdirSync(folder).filter((name) => name.includes("unfinished"))).toEqual([]);
  });

  test("the copy sends waiting deliveries with the same ids, bodies and signatures", async () => {
    const { answers, local, remote, url } = await sides();
    await local.json(["copy", "--to", url]);
    await expectWaitingDeliveries(remote, answers);
  });

  test("refuses a target with a shop, two databases of one engine, and a text that is not an address", async () => {
    const { local, remote, url } = await sides();
    const withPassword = url.replace("postgres@", "postgres:hush-hush@");
    await remote.json(["shop", "add", "gamma.myshopify.com"]);
    const back = `sqlite:${local.data}`;
    const notEmpty = `${nameOf(url)} is not empty, its table shops has rows: name an empty database`;
    const refusals: [Program, string[], number, string][] = [
      [local, ["--to", withPassword], 1, notEmpty],
      [remote, ["--to", back], 1, `${local.data} is not empty`],
      [remote, ["--to", withPassword], 2, "both databases are PostgreSQL"],
      [local, ["--to", back], 2, "both databases are SQLite"],
      [local, ["--to", "mysql://sds:hush-hush@db/sds"], 2, "--to must be postgres://"],
      [local, [], 2, "say where to copy"],
      [new Program(), ["--to", url], 3, "there is no data in"],
    ];
    for (const [program, args, status, message] of refusals) {
      const result = await program.run(["copy", ...args]);
      expect({ args, status: result.status, stdout: result.stdout }).toEqual({ args, status, stdout: "" });
      expect(result.stderr).toContain(message);
      expect(result.stderr).not.toContain("hush");
    }
    expect(await remote.json<unknown[]>(["shop", "list"])).toHaveLength(1);
  });

  test("takes the address from a file, and replaces rows of a program that ran on the empty database", async () => {
    const { local, remote, url } = await sides();
    const other = new Program(undefined, { ...ENV, SDS_DATABASE_URL: url });
    await (await other.serve()).stop();
    const file = join(temporaryFolder(), "address");
    await Bun.write(file, `${url}\n`);
    await local.json(["copy", "--to-file", file]);
    expect(await remote.json(["shop", "list"])).toEqual(await local.json(["shop", "list"]));
  });

  test("refuses a source and a target that a serve uses", async () => {
    const { local, remote, url } = await sides();
    const onFolder = await local.serve();
    await expectInUse(local, url, local.data);
    await onFolder.stop();
    const onServer = await remote.serve();
    await expectInUse(local, url, nameOf(url));
    const back = join(temporaryFolder(), "back");
    await expectInUse(remote, `sqlite:${back}`, nameOf(url));
    await onServer.stop();
    await local.json(["copy", "--to", url]);
    await remote.json(["copy", "--to", `sqlite:${back}`]);
  });

  test("lets no other program write to a PostgreSQL source during the copy", async () => {
    const { local, remote, url } = await sides();
    await local.json(["copy", "--to", url]);
    const sql = new SQL(url, { max: 1 });
    afterTest(() => sql.close());
    // This transaction stays open until `done` resolves.
    const done = Promise.withResolvers<void>();
    const writing = sql.begin(async (tx) => {
      await tx.unsafe("UPDATE shops SET currency = 'CHF'");
      await done.promise;
    });
    const back = join(temporaryFolder(), "back");
    await expectInUse(remote, `sqlite:${back}`, nameOf(url));
    done.resolve();
    await writing;
    await remote.json(["copy", "--to", `sqlite:${back}`]);
    expect([...new Set(readRows(back, "shops").map(({ currency }) => currency))]).toEqual(["CHF"]);
  });

  test("leaves an unusable target if it is killed, and can be started again", async () => {
    const { local, remote, url } = await sides();
    const lines = Array.from({ length: 60_000 }, (_, n) => JSON.stringify(customer(20_000 + n)));
    await local.json(["import", "-", "--shop", "alpha.myshopify.com"], { stdin: lines.join("\n") });

    const sql = new SQL(url, { max: 1 });
    afterTest(() => sql.close());
    const isMarked = async () =>
      (await sql.unsafe("SELECT 1 FROM meta WHERE name = 'unfinished_copy'").catch(() => [])).length > 0;
    const toServer = await local.start(["copy", "--to", url]);
    await eventually(isMarked);
    process.kill(toServer.pid, "SIGKILL");
    await toServer.exited;
    await expectUnfinished(remote, nameOf(url), ["serve", "--port", "0"]);
    const { rows } = await local.json<{ rows: number }>(["copy", "--to", url]);
    expect(rows).toBeGreaterThan(60_000);

    const folder = join(temporaryFolder(), "back");
    const back = new Program(folder, { ...ENV, SDS_MASTER_KEY_FILE: join(local.data, "master.key") });
    const toFolder = await remote.start(["copy", "--to", `sqlite:${folder}`]);
    await eventually(() => existsSync(join(folder, "sds.db.unfinished-copy")));
    process.kill(toFolder.pid, "SIGKILL");
    await toFolder.exited;
    await expectUnfinished(back, folder, ["backup", join(temporaryFolder(), "b")]);
    expect(await remote.json<{ rows: number }>(["copy", "--to", `sqlite:${folder}`])).toMatchObject({ rows });
    expect(readRows(folder, "customers")).toEqual(readRows(local.data, "customers"));
    expect(readdirSync(folder).sort()).toEqual(["sds.db", "sds.lock"]);
  });
});

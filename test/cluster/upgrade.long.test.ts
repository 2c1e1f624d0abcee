import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { SQL } from "bun";
import { MIGRATIONS } from "../../src/store/postgres/migrations.ts";
import { temporaryFolder } from "../support/app.ts";
import { afterTest } from "../support/cleanup.ts";
import { eventually } from "../support/eventually.ts";
import { emptyDatabase, hasPostgres } from "../support/postgres-server.ts";
import { databaseWithTables } from "../support/postgres-store.ts";
import { Program, type Server } from "../support/program.ts";
import { Receiver } from "../support/receiver.ts";
import { customer, gid, subscription } from "../support/records.ts";
import { DOMAIN, signed } from "../support/shop-sending.ts";

const SOURCE = join(import.meta.dir, "../../src/store/postgres/migrations.ts");

/**
 * Makes a migration that adds a new table, and a column to each table of this version. Each table has its own step.
 * Under load, one step for all tables would rarely get the locks of all tables at once.
 */
async function addition(number: number): Promise<string> {
  const tables = await tableNames();
  const steps = tables.map((table) => `ALTER TABLE ${table} ADD COLUMN added_${number} text NOT NULL DEFAULT 'x';`);
  return [`CREATE TABLE added_${number} (shop_id bigint PRIMARY KEY);`, ...steps].join("\n-- step: transaction\n");
}

/** Lists the tables of this version. */
async function tableNames(): Promise<string[]> {
  await using sql = new SQL(await databaseWithTables(), { max: 1 });
  const found = await sql.unsafe(
    "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' ORDER BY 1",
  );
  return found.map(({ relname }: { relname: string }) => relname);
}

/**
 * Makes settings for a program whose schema is this many versions newer. These settings work only if the program runs
 * from its source.
 */
async function newerBy(versions: number): Promise<Record<string, string>> {
  const preload = join(temporaryFolder(), "newer.ts");
  const added = await Promise.all(Array.from({ length: versions }, (_, index) => addition(index + 1)));
  await Bun.write(
    preload,
    `import { MIGRATIONS } from ${JSON.stringify(SOURCE)};\nMIGRATIONS.push(...${JSON.stringify(added)});\n`,
  );
  return { BUN_OPTIONS: `--preload=${preload}` };
}

async function cluster() {
  const url = await emptyDatabase();
  const program = new Program(undefined, { SDS_DATABASE_URL: url, SDS_EGRESS_ALLOW: "127.0.0.0/8" });
  const receiver = new Receiver();
  await program.json(["shop", "add", DOMAIN]);
  await program.json(["webhook", "set", "--url", receiver.url, "--all-topics"]);
  const { secret } = await program.json<{ secret: string }>(["intake", "secret"]);
  const { key } = await program.json<{ key: string }>(["key", "create", "--label", "A"]);
  const sql = new SQL(url, { max: 1 });
  afterTest(() => sql.close());
  const schema = async () => Number((await sql.unsafe("SELECT value FROM meta WHERE name = 'schema'"))[0].value);
  return { program, receiver, secret, key, schema };
}

interface Load {
  /** How many subscriptions were acknowledged so far. */
  taken(): number;
  /** @returns every unexpected answer */
  stop(): Promise<string[]>;
}

/**
 * Posts new subscriptions and then pauses them, on each node in turn. Also reads from each node. Never waits between
 * requests.
 */
function load(nodes: Server[], secret: string, key: string): Load {
  const wrong: string[] = [];
  let [goesOn, taken] = [true, 0];
  async function ask(node: Server, path: string, init: RequestInit, status: number): Promise<void> {
    const answer = await fetch(node.url + path, init);
    if (answer.status !== status) wrong.push(`${path} ${answer.status} ${await answer.text()}`);
    else await answer.text();
  }
  async function run(): Promise<void> {
    while (goesOn) {
      const n = taken + 1;
      const states = [{}, { status: "PAUSED" as const }];
      for (const [index, state] of states.entries()) {
        const body = JSON.stringify([customer(n), subscription(n, { customer: gid.customer(n), ...state })]);
        await ask(nodes[(n + index) % nodes.length] as Server, "/intake", signed(body, secret), 202);
      }
      for (const node of nodes)
        await ask(node, "/api/v1/subscriptions", { headers: { Authorization: `Bearer ${key}` } }, 200);
      taken = n;
    }
  }
  const running = run();
  return {
    taken: () => taken,
    async stop() {
      goesOn = false;
      await running;
      return wrong;
    },
  };
}

describe.skipIf(!hasPostgres())("nodes of two versions on one database", () => {
  test("work under load while the newer node migrates the schema by one version", async () => {
    const { program, receiver, secret, key, schema } = await cluster();
    const older = [await program.serve(), await program.serve()];
    const before = load(older, secret, key);
    await eventually(() => before.taken() > 20);
    const newer = await program.serve(["serve", "--port", "0"], await newerBy(1));
    expect(await schema()).toBe(MIGRATIONS.length + 1);
    const later = before.taken() + 20;
    await eventually(() => before.taken() > later);
    expect(await before.stop()).toEqual([]);
    for (const node of [...older, newer]) expect((await fetch(`${node.url}/readyz`)).status).toBe(200);

    // One older node is replaced. The other older node works beside the newer node.
    const [kept, replaced] = older as [Server, Server];
    expect(await replaced.stop()).toBe(0);
    const together = load([kept, newer], secret, key);
    await eventually(() => together.taken() > 20);
    expect(await together.stop()).toEqual([]);
    expect(kept.output).not.toContain('"level":"error"');
    expect(newer.output).not.toContain('"level":"error"');
    // An older program can still start, and every event of the load arrives.
    expect(await program.json<unknown[]>(["shop", "list"])).toHaveLength(1);
    const pending = () => program.json<unknown[]>(["delivery", "list", "--status", "pending"]);
    await eventually(async () => (await pending()).length === 0);
    expect(receiver.received.length).toBeGreaterThan(20);
  });

  test("refuse the older node and its commands after two migrations", async () => {
    const { program, schema } = await cluster();
    const oldest = await program.serve();
    const newest = await program.serve(["serve", "--port", "0"], await newerBy(2));
    expect(await schema()).toBe(MIGRATIONS.length + 2);
    const refused = await eventually(async () => {
      const answer = await fetch(`${oldest.url}/readyz`);
      return answer.status === 503 && answer;
    });
    const versions = `(schema ${MIGRATIONS.length + 2}, this one knows ${MIGRATIONS.length})`;
    expect(await refused.json()).toEqual({
      error: {
        code: "unavailable",
        message: `The database was upgraded by a newer sds ${versions}: stop this program and start that version.`,
      },
    });
    expect((await fetch(`${newest.url}/readyz`)).status).toBe(200);
    for (const args of [
      ["serve", "--port", "0"],
      ["shop", "list"],
    ]) {
      const { status, stdout, stderr } = await program.run(args);
      expect({ status, stdout }).toEqual({ status: 1, stdout: "" });
      expect(stderr).toEndWith(
        `was written by a newer sds ${versions}: install that version or a later one; nothing was changed\n`,
      );
    }
  });
});

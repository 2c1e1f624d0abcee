import { Database } from "bun:sqlite";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { ShopSimulation } from "../../src/cli/demo/shop-simulation.ts";
import { createClient } from "../../src/client/client.ts";
import { type CopyState, copy } from "../../src/client/copy.ts";
import { RESOURCES, type Resource } from "../../src/domain/resources.ts";
import { freePort } from "../../test/support/postgres-process.ts";
import { postRecords } from "./cluster-traffic.ts";
import { compiledProgram } from "./program.ts";

const MINUTES = Number(process.argv[2] ?? 60);
const SHOP = "living.myshopify.com";
const PAST_CUSTOMERS = 2_000;
const RECORDS_PER_BODY = 250;
const EVENT_INTERVAL_MS = 100;
const PULL_INTERVAL_MS = 3_000;
const SHORTEST_LIFE_MS = 10_000;
const LONGEST_LIFE_MS = 90_000;
const MINUTE_MS = 60_000;
/** Webhooks go to this port. Without a port, there are no webhooks. */
const RECEIVER_PORT = process.env["RECEIVER_PORT"];

const folder = mkdtempSync(join(tmpdir(), "sds-living-"));
const keyFile = join(folder, "key.txt");
const program = compiledProgram(join(folder, "data"), {
  SDS_EGRESS_ALLOW: "127.0.0.0/8",
  SDS_KEY_FILE: keyFile,
});
const port = freePort();
const url = `http://127.0.0.1:${port}`;
await program.run(["shop", "add", SHOP]);
writeFileSync(keyFile, await program.run(["key", "create", "--label", "Copies"]));
const key = (await Bun.file(keyFile).text()).trim();
const { secret: intakeSecret } = JSON.parse(await program.run(["intake", "secret", "--json"])) as { secret: string };
const simulation = new ShopSimulation(Date.now());
let serving = program.serve([], port);
/** Programs that are updating a copy. */
const running = new Set<Bun.Subprocess>();
let [isOver, posted, kills] = [false, 0, 0];

/** Ends everything that was started, and removes the folder. */
async function end(): Promise<void> {
  for (const child of running) child.kill("SIGKILL");
  const server = await serving;
  await server.stop("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
}

for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.once(signal, () => {
    void end().finally(() => process.exit(1));
  });

/** Posts records until they are acknowledged, as a billing system does. */
async function post(records: unknown[]): Promise<void> {
  for (;;) {
    const status = await postRecords(url, { domain: SHOP, key, intakeSecret }, records);
    if (status === 202) return;
    if (status !== undefined && status < 500) throw new Error(`the intake answered with ${status}`);
    await Bun.sleep(100);
  }
}

/** Posts events of the shop at a fixed interval. */
async function live(): Promise<void> {
  while (!isOver) {
    await post(simulation.next(Date.now()).records);
    posted += 1;
    await Bun.sleep(EVENT_INTERVAL_MS);
  }
}

/** Kills `serve` and starts it again. */
async function kill(): Promise<void> {
  while (!isOver) {
    await Bun.sleep(SHORTEST_LIFE_MS + Math.random() * (LONGEST_LIFE_MS - SHORTEST_LIFE_MS));
    if (isOver) return;
    await (await serving).stop("SIGKILL");
    kills += 1;
    await Bun.sleep(Math.random() * 3_000);
    serving = program.serve([], port);
  }
}

/** A copy of the mirror. */
interface Kept {
  name: string;
  /** Fetches the changes. Rejects while the server does not answer. */
  update(): Promise<void>;
  rows(resource: Resource): Promise<Map<string, string>>;
}

/** Keeps a copy with the client package, with rows and state in memory. */
function clientCopy(): Kept {
  const client = createClient({ url, key });
  const copies = Object.fromEntries(
    RESOURCES.map((resource) => [resource, { rows: new Map<string, string>(), state: undefined }]),
  ) as Record<Resource, { rows: Map<string, string>; state: CopyState | undefined }>;
  return {
    name: "the client package",
    async update() {
      for (const resource of RESOURCES) {
        const kept = copies[resource];
        await copy(client[resource] as typeof client.orders, {
          load: async () => kept.state,
          save: async (changed, state) => {
            for (const row of changed) kept.rows.set(row.id, JSON.stringify(row));
            kept.state = state;
          },
          clear: async () => {
            kept.rows.clear();
            kept.state = undefined;
          },
        });
      }
    },
    rows: async (resource) => copies[resource].rows,
  };
}

async function run(command: string[]): Promise<string> {
  const child = Bun.spawn(command, {
    env: { PATH: process.env["PATH"] ?? "", SDS_KEY_FILE: keyFile },
    stdout: "pipe",
    stderr: "pipe",
  });
  running.add(child);
  const [stdout, stderr, status] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  running.delete(child);
  if (status !== 0) throw new Error(`${command[0]} ended with ${status}: ${stderr}`);
  return stdout;
}

/** Keeps a copy with puller.py, the program of the page "Keeping a copy current". It is downloaded from `serve`. */
async function pythonCopy(): Promise<Kept> {
  const file = join(folder, "copy.db");
  const puller = join(folder, "puller.py");
  const answer = await fetch(`${url}/docs/puller.py`);
  if (!answer.ok) throw new Error(`puller.py: ${answer.status}`);
  writeFileSync(puller, await answer.text());
  return {
    name: "puller.py",
    update: async () => void (await run(["python3", puller, "--url", url, "--database", file])),
    async rows(resource) {
      const db = new Database(file, { readonly: true });
      const rows = db
        .query<{ id: string; json: string }, [string]>("SELECT id, json FROM row WHERE resource = ?")
        .all(resource);
      db.close();
      return new Map(rows.map(({ id, json }) => [id, JSON.stringify(JSON.parse(json))]));
    },
  };
}

/** Keeps a copy with `sds pull`, whose output goes to a file, as in a cron job. */
function pullCopy(): Kept {
  const fileOf = (resource: Resource) => join(folder, `${resource}.ndjson`);
  return {
    name: "sds pull",
    async update() {
      for (const resource of RESOURCES) {
        const state = join(folder, `${resource}.state`);
        await run([
          "sh",
          "-c",
          `exec ${resolve("dist/sds")} pull --url ${url} --resource ${resource} --state ${state} >> ${fileOf(resource)}`,
        ]);
      }
    },
    async rows(resource) {
      const lines = (await Bun.file(fileOf(resource)).text()).split("\n").filter((line) => line !== "");
      return new Map(lines.map((line) => [(JSON.parse(line) as { id: string }).id, line]));
    },
  };
}

/** Updates a copy again and again. @returns how many updates failed */
async function keep(kept: Kept): Promise<number> {
  let failed = 0;
  while (!isOver) {
    await kept.update().catch(() => {
      failed += 1;
    });
    await Bun.sleep(PULL_INTERVAL_MS);
  }
  return failed;
}

async function mirror(resource: Resource): Promise<Map<string, string>> {
  const rows = new Map<string, string>();
  for await (const row of createClient({ url, key })[resource].rows()) rows.set(row.id, JSON.stringify(row));
  return rows;
}

try {
  const past = simulation.past(PAST_CUSTOMERS);
  while (past.length > 0) await post(past.splice(0, RECORDS_PER_BODY));
  if (RECEIVER_PORT !== undefined)
    await program.run(["webhook", "set", "--url", `http://127.0.0.1:${RECEIVER_PORT}/`, "--all-topics"]);
  process.stderr.write(`serving at ${url}, its key is in ${keyFile}, its data in ${folder}/data\n`);
  const copies = [clientCopy(), await pythonCopy(), pullCopy()];
  const work = [live(), kill(), ...copies.map(keep)];
  await Promise.race([Bun.sleep(MINUTES * MINUTE_MS), ...work]);
  isOver = true;
  const failed = (await Promise.all(work)).slice(2);
  const problems: string[] = [];
  const counts: string[] = [];
  for (const resource of RESOURCES) {
    const expected = await mirror(resource);
    counts.push(`${expected.size} ${resource}`);
    for (const kept of copies) {
      await kept.update();
      const rows = await kept.rows(resource);
      const wrong = [...expected].filter(([id, json]) => rows.get(id) !== json).length;
      if (wrong > 0 || rows.size !== expected.size)
        problems.push(`${kept.name} has ${rows.size} ${resource}, ${wrong} of ${expected.size} are wrong`);
    }
  }
  process.stdout.write(
    `${MINUTES} minutes: ${posted} events, serve killed ${kills} times; ${counts.join(", ")}\n` +
      `updates that failed while serve was down: ${copies.map(({ name }, n) => `${name} ${failed[n]}`).join(", ")}\n` +
      `${problems.length === 0 ? "every copy equals the mirror" : problems.join("\n")}\n`,
  );
  if (problems.length > 0) process.exitCode = 1;
} finally {
  await end();
}

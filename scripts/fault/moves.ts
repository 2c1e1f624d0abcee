import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { SQL } from "bun";
import { ApiError } from "../../src/client/api-error.ts";
import { createClient } from "../../src/client/client.ts";
import { type CopyState, copy } from "../../src/client/copy.ts";
import { freePort, type PostgresProcess, startPostgres } from "../../test/support/postgres-process.ts";
import { openShops, startRewards } from "./cluster-rewards.ts";
import { type ClusterShop, pick, postRecords, startRepeating, startWatchingReceiver } from "./cluster-traffic.ts";
import { type CompiledProgram, compiledProgram, nodeEnv, type Server } from "./program.ts";

const [rounds = "20", engines = "sqlite-postgres"] = process.argv.slice(2);
const ROUNDS = Number(rounds);
const NAME = "alpha";
const CUSTOMERS = 3_000;
const LONGEST_LIFE_MS = 1_500;
const READ_PAUSE_MS = 50;
const MOST_TRIES = 100;

const folder = mkdtempSync(join(tmpdir(), "sds-moves-"));
let postgres: PostgresProcess | undefined;

/** A service with a database of its own. */
interface Cell {
  program: CompiledProgram;
  env: Record<string, string>;
  /** The options of a command that moves a shop to this service. */
  to: string[];
  port: number;
  server: Server;
}

async function startCell(engine: string, name: string): Promise<Cell> {
  const data = join(folder, name);
  const masterKeyFile = join(data, "master.key");
  const env: Record<string, string> = { ...nodeEnv(data), SDS_DATA: data };
  let to = ["--to", `sqlite:${data}`];
  if (engine === "postgres") {
    postgres ??= await startPostgres({});
    const url = Object.assign(new URL(postgres.url), { pathname: name }).href;
    await using admin = new SQL(postgres.url, { max: 1 });
    await admin.unsafe(`CREATE DATABASE ${name}`);
    env["SDS_DATABASE_URL"] = url;
    to = ["--to", url, "--to-key-file", masterKeyFile];
  }
  const program = compiledProgram(data, env);
  await program.run(["shop", "add", `${name}.myshopify.com`]);
  const port = freePort();
  return { program, env, to, port, server: await program.serve([], port) };
}

async function killServer(cell: Cell): Promise<void> {
  await cell.server.stop("SIGKILL");
  cell.server = await cell.program.serve([], cell.port);
}

const counts = { moves: 0, killedCommands: 0, killedServers: 0, failed: 0 };

/** Runs `sds shop move` once. May kill this command or a service meanwhile. @returns whether the shop has moved */
async function tryMove(from: Cell, to: Cell): Promise<boolean> {
  const command = Bun.spawn([resolve("dist/sds"), "shop", "move", `${NAME}.myshopify.com`, ...to.to], {
    env: { PATH: process.env["PATH"] ?? "", ...from.env },
    stdout: "ignore",
    stderr: "pipe",
  });
  const fate = Math.random();
  if (fate < 0.8) await Promise.race([Bun.sleep(Math.random() * LONGEST_LIFE_MS), command.exited]);
  if (fate < 0.5 && command.exitCode === null) {
    command.kill("SIGKILL");
    counts.killedCommands += 1;
  } else if (fate < 0.8) {
    await killServer(pick([from, to]));
    counts.killedServers += 1;
  }
  const [status, stderr] = await Promise.all([command.exited, command.stderr.text()]);
  if (status !== 0 && status !== 137) {
    counts.failed += 1;
    process.stderr.write(`the command ended with ${status}: ${stderr}`);
  }
  return status === 0;
}

/**
 * Keeps a copy of the customers with the client package. Reads from one service until that service refuses the key,
 * then from the other service.
 */
function startCopy(shop: ClusterShop, addresses: () => readonly string[]) {
  let place = 0;
  const rows = new Map<string, string>();
  let state: CopyState | undefined;
  let restarts = 0;
  const update = (url: string) =>
    copy(createClient({ url, key: shop.key, deadlineMs: 2_000 }).customers, {
      load: async () => state,
      async save(changed, next) {
        for (const row of changed) rows.set(row.id, JSON.stringify(row));
        state = next;
      },
      async clear() {
        rows.clear();
        state = undefined;
        restarts += 1;
      },
    });
  const readNext = () =>
    update(addresses()[place % 2] ?? "").catch((thrown) => {
      if (thrown instanceof ApiError && thrown.status === 401) place += 1;
    });
  const reading = startRepeating(readNext, READ_PAUSE_MS);
  return {
    /** @returns what is wrong with the copy */
    async end(url: string): Promise<string[]> {
      await reading.end();
      await update(url);
      const mirrored = new Map<string, string>();
      for await (const row of createClient({ url, key: shop.key }).customers.rows())
        mirrored.set(row.id, JSON.stringify(row));
      const wrong = [...mirrored].filter(([id, row]) => rows.get(id) !== row);
      const problems = wrong.length > 0 ? [`the copy lacks ${wrong.length} rows, such as ${wrong[0]?.[1]}`] : [];
      if (rows.size !== mirrored.size) problems.push(`the copy has ${rows.size} of ${mirrored.size} rows`);
      if (restarts > 0) problems.push(`a checkpoint was refused ${restarts} times`);
      return problems;
    },
  };
}

const [first = "", second = ""] = engines.split("-");
const cells = [await startCell(first, "one"), await startCell(second, "two")] as const;
const anyAddress = () => pick(cells).server.url;
const receiver = startWatchingReceiver();
const shops = await openShops((args, stdin) => cells[0].program.run(args, stdin), receiver.url, [NAME]);
const [shop] = shops as [ClusterShop];

/** The names that each changed customer may have, by the customer's number. */
const names = new Map<number, Set<string>>();
/** Posts a change of a customer until a service acknowledges it. */
async function changeCustomer(number: number): Promise<void> {
  const firstName = `Name ${performance.now()}`;
  const record = { type: "customer", shopifyId: `gid://shopify/Customer/${number}`, firstName };
  const possible = names.get(number) ?? new Set();
  names.set(number, possible.add(firstName));
  for (let status: number | undefined; status !== 202; ) {
    status = await postRecords(anyAddress(), shop, record);
    if (status === 202) names.set(number, new Set([firstName]));
    else await Bun.sleep(20);
  }
}
for (let from = 1; from <= CUSTOMERS; from += 250) {
  const records = Array.from({ length: 250 }, (_, n) => ({
    type: "customer",
    shopifyId: `gid://shopify/Customer/${from + n}`,
    firstName: "Ada",
  }));
  if ((await postRecords(cells[0].server.url, shop, records)) !== 202) throw new Error("the customers were refused");
}

const rewards = startRewards(anyAddress, shops, receiver);
const changes = startRepeating(() => changeCustomer(1 + Math.floor(Math.random() * CUSTOMERS)), 10);
const copied = startCopy(shop, () => cells.map(({ server }) => server.url));
for (let round = 0; round < ROUNDS; round += 1) {
  const [from, to] = round % 2 === 0 ? [cells[0], cells[1]] : [cells[1], cells[0]];
  let tries = 0;
  while (!(await tryMove(from, to))) if (++tries === MOST_TRIES) throw new Error("the shop does not move");
  counts.moves += 1;
}
await changes.end();
const problems = await rewards.end();
const last = cells[ROUNDS % 2 === 0 ? 0 : 1] as Cell;
problems.push(...(await copied.end(last.server.url)));
for (const cell of cells) {
  const listed = (await cell.program.run(["shop", "list"])).includes(`${NAME}.myshopify.com`);
  if (listed !== (cell === last)) problems.push(`a service ${listed ? "still has" : "lacks"} the shop`);
}
process.stdout.write(
  `${counts.moves} moves (${engines}), ${counts.killedCommands} commands and ${counts.killedServers} services killed, ` +
    `${counts.failed} commands failed; ${rewards.acknowledged.size} records acknowledged, ${names.size} customers changed, ` +
    `${receiver.received()} webhooks received\n`,
);
for (const problem of problems) process.stderr.write(`${problem}\n`);
for (const cell of cells) await cell.server.stop("SIGKILL");
await receiver.stop();
await postgres?.stop();
rmSync(folder, { recursive: true, force: true });
process.exit(problems.length === 0 ? 0 : 1);

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SQL } from "bun";
import { MIGRATIONS } from "../../src/store/postgres/migrations.ts";
import { startPostgres } from "../../test/support/postgres-process.ts";
import { openShops } from "./cluster-rewards.ts";
import {
  type ClusterShop,
  postReward,
  startRepeating,
  startWatchingReceiver,
  statusOfPage,
} from "./cluster-traffic.ts";
import { compiledProgram, nodeEnv } from "./program.ts";

const ROWS = Number(process.argv[2] ?? 600_000);
const KILL_INTERVAL_MS = Number(process.argv[3] ?? 5) * 1_000;
const LIMIT_MS = 1_000;
const PAUSE_MS = 20;

const NEXT = `ALTER TABLE orders ADD COLUMN month bigint;
CREATE FUNCTION fill_month() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.month := NEW.billed_at / 2592000000;
  RETURN NEW;
END $$;
CREATE TRIGGER orders_month BEFORE INSERT OR UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION fill_month();
CREATE INDEX orders_by_month ON orders (shop_id, month, id);
-- step: backfill orders
UPDATE orders SET month = NULL FROM batch WHERE orders.shop_id = batch.shop_id AND orders.id = batch.id;
-- step: transaction
ALTER TABLE orders ADD CONSTRAINT orders_have_month CHECK (month IS NOT NULL) NOT VALID;
-- step: transaction
ALTER TABLE orders VALIDATE CONSTRAINT orders_have_month;`;
const UPGRADER = `
import { parseServerAddress } from "./src/store/postgres/address.ts";
import { openConnections } from "./src/store/postgres/database.ts";
import { migrate } from "./src/store/postgres/upgrade.ts";
const [url, migrations] = process.argv.slice(1);
const address = parseServerAddress(url, null);
const options = { address, connections: 2, deadlineMs: 600_000, waitMs: 5_000, isPooled: false, sleep: Bun.sleep };
const onStep = (text) => console.error(text);
await migrate(openConnections(options), "it", { migrations: JSON.parse(migrations), sleep: Bun.sleep, onStep });
process.exit();
`;

const folder = mkdtempSync(join(tmpdir(), "sds-upgrade-"));
const server = await startPostgres({ shared_buffers: "256MB", max_wal_size: "2GB" });
const sql = new SQL(server.url, { max: 2 });
const receiver = startWatchingReceiver();
const program = compiledProgram(folder, { ...nodeEnv(folder), SDS_DATABASE_URL: server.url });
const [shop] = (await openShops(program.run, receiver.url, ["alpha"])) as [ClusterShop];
await sql.unsafe(`INSERT INTO orders (shop_id, id, billed_at, json, attempt_count, declined, charged, change_number)
  SELECT id, 'ord_' || number, number * 1000000::bigint, '{"id":"' || number || '","text":"' || repeat('x', 300) || '"}', 0, false,
    true, 0 FROM shops, generate_series(1, ${ROWS}) AS number`);
await sql.unsafe("VACUUM ANALYZE orders");
const nodes = await Promise.all([program.serve(), program.serve()]);

interface Client {
  name: string;
  answers: Record<string, number>;
  slowestMs: number;
  longestGapMs: number;
}

/** Repeats a request. Notes the answers, the slowest answer, and the longest time without a good answer. */
function startClient(name: string, request: () => Promise<string>, good: string): Client & { end(): Promise<void> } {
  const client: Client = { name, answers: {}, slowestMs: 0, longestGapMs: 0 };
  let lastGoodAt = performance.now();
  const { end } = startRepeating(async () => {
    const began = performance.now();
    const answer = await request();
    const ended = performance.now();
    client.answers[answer] = (client.answers[answer] ?? 0) + 1;
    client.slowestMs = Math.max(client.slowestMs, ended - began);
    client.longestGapMs = Math.max(client.longestGapMs, ended - lastGoodAt);
    if (answer === good) lastGoodAt = ended;
  }, PAUSE_MS);
  return Object.assign(client, { end });
}

let mark = 0;
const clients = nodes.flatMap(({ url }, index) => [
  startClient(`pages of node ${index + 1}`, async () => String(await statusOfPage(url, shop.key)), "200"),
  startClient(`posts to node ${index + 1}`, async () => String(await postReward(url, shop, String(mark++))), "true"),
  startClient(`readiness of node ${index + 1}`, async () => String((await fetch(`${url}/readyz`)).status), "200"),
]);

/** Upgrades. Kills the upgrade again and again, until one process finishes it. @returns the number of kills */
async function upgrade(): Promise<number> {
  for (let kills = 0; ; kills += 1) {
    const child = Bun.spawn([process.execPath, "-e", UPGRADER, server.url, JSON.stringify([...MIGRATIONS, NEXT])], {
      stdout: "ignore",
      stderr: "inherit",
    });
    // Later processes get more time, so that the upgrade ends even if one step takes longer than the interval.
    const timer = setTimeout(() => child.kill("SIGKILL"), KILL_INTERVAL_MS * (1 + kills / 2));
    await child.exited;
    clearTimeout(timer);
    if (child.exitCode === 0) return kills;
    if (child.signalCode !== "SIGKILL") throw new Error("the upgrade failed");
  }
}

try {
  const began = performance.now();
  const kills = await upgrade();
  const seconds = (performance.now() - began) / 1_000;
  await Promise.all(clients.map((client) => client.end()));
  const [{ unfilled }] = await sql.unsafe("SELECT count(*)::int AS unfilled FROM orders WHERE month IS NULL");
  process.stdout.write(
    `upgraded ${ROWS} orders in ${seconds.toFixed(0)} s, with ${kills} kills; ${unfilled} unfilled\n`,
  );
  for (const { name, answers, slowestMs, longestGapMs } of clients)
    process.stdout.write(
      `${name}: ${JSON.stringify(answers)}, slowest ${slowestMs.toFixed(0)} ms, longest gap ${longestGapMs.toFixed(0)} ms\n`,
    );
  const isBad = clients.some(({ answers, longestGapMs }) => Object.keys(answers).length > 1 || longestGapMs > LIMIT_MS);
  if (isBad || unfilled > 0) process.exitCode = 1;
} finally {
  for (const node of nodes) await node.stop("SIGKILL");
  receiver.stop();
  await sql.close();
  await server.stop("SIGINT");
  rmSync(folder, { recursive: true, force: true });
}

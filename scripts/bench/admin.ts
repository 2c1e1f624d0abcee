/** How long the settings page takes on the server: see scripts/bench/admin. */
import { Database } from "bun:sqlite";
import { rmSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { hashToken, LINK_LIFE_MS, newToken } from "../../src/actions/session.ts";
import { openApp } from "../../src/compose/app.ts";
import { readConfig } from "../../src/config.ts";
import { TOPIC_NAMES } from "../../src/domain/events/event.ts";
import { createLog } from "../../src/lib/log.ts";
import { Table } from "./table.ts";

const FOLDER = "dist/bench/admin";
const DELIVERIES = 100_000;
const ROWS = 1_000_000;
const VIEWS = 50;
/** Milliseconds of server time. */
const LIMIT = 100;
const DEAD = "The endpoint responded with HTTP 500.";

const random = (bytes: number) => crypto.getRandomValues(new Uint8Array(bytes));

rmSync(FOLDER, { recursive: true, force: true });
const config = readConfig({ data: FOLDER, port: "0" }, { SDS_LOG: "error" });
const log = createLog("error", process.stderr, Date.now);
const app = await openApp(config, {
  now: Date.now,
  clock: () => performance.now(),
  random,
  fetch,
  resolve: async () => [],
  sleep: async () => undefined,
  log,
});
const shop = await app.store.shops.add({ domain: "alpha.myshopify.com", plan: "pro", currency: "USD" }, Date.now());
await app.store.webhooks.set(shop.id, { url: "https://hooks.example.com/", topics: TOPIC_NAMES }, Date.now());

/** All deliveries of one kind are newer than all of the other, which makes the log of the older kind slowest. */
function addDeliveries(db: Database, dead: number): void {
  const insert = db.prepare(
    `INSERT INTO deliveries (id, shop_id, kind, topic, test, body, secret_version, status, attempts, last_status_code, error, created_at, ended_at)
     VALUES (?, ?, ?, ?, 0, ?, 1, ?, 5, 500, ?, ?, ?)`,
  );
  const attempt = db.prepare(
    "INSERT INTO attempts (delivery, number, started_at, duration, status_code, error) VALUES (?, 5, ?, 12, 500, ?)",
  );
  const body = JSON.stringify({ id: "whd_x", topic: "order.failed", data: { filler: "x".repeat(400) } });
  db.transaction(() => {
    for (const kind of ["webhook", "trigger"]) {
      for (let index = 0; index < DELIVERIES; index += 1) {
        const at = Date.now() - DELIVERIES + index;
        const isDead = index < dead;
        const topic = kind === "webhook" ? "order.failed" : "billing-attempt-failed";
        const { lastInsertRowid } = insert.run(
          `whd_${kind}${index}`,
          shop.id,
          kind,
          topic,
          body,
          isDead ? "dead" : "delivered",
          isDead ? DEAD : null,
          at,
          at,
        );
        attempt.run(lastInsertRowid, at, DEAD);
      }
    }
  })();
}

function addRows(db: Database): void {
  const insert = db.prepare(
    "INSERT INTO subscriptions (shop_id, started_at, id, json, cycles_given, renewals, change_number) VALUES (?, ?, ?, ?, 0, 0, ?)",
  );
  const json = JSON.stringify({ filler: "x".repeat(500) });
  db.transaction(() => {
    for (let index = 0; index < ROWS; index += 1) insert.run(shop.id, index, `sub_${index}`, json, index);
  })();
}

async function signIn(): Promise<string> {
  const token = newToken(random);
  await app.store.sessions.addLink(shop.id, hashToken(token), Date.now() + LINK_LIFE_MS);
  const opened = await app.handle(new Request(`http://sds/admin/sign-in?token=${token}`));
  return opened.headers.get("set-cookie")?.split(";")[0] ?? "";
}

/** The second slowest of the views, from the request to the whole answer, in milliseconds. */
async function timeOf(path: string, cookie: string, headers: Record<string, string> = {}): Promise<number> {
  const times: number[] = [];
  for (let view = 0; view < VIEWS; view += 1) {
    const from = performance.now();
    const answer = await app.handle(new Request(`http://sds${path}`, { headers: { Cookie: cookie, ...headers } }));
    await answer.text();
    times.push(performance.now() - from);
    if (answer.status !== 200) throw new Error(`${path} gave ${answer.status}`);
  }
  return times.sort((a, b) => a - b).at(-2) ?? 0;
}

async function measure(table: Table, dead: number): Promise<void> {
  const db = new Database(join(FOLDER, "sds.db"));
  db.run("DELETE FROM deliveries");
  addDeliveries(db, dead);
  db.close();
  const cookie = await signIn();
  const of = `, ${dead.toLocaleString("en")} dead`;
  table.addBound(`Delivery log${of}`, await timeOf("/admin/deliveries", cookie), LIMIT, "ms");
  table.addBound(
    `Its part that updates${of}`,
    await timeOf("/admin/deliveries", cookie, { "X-Part": "live" }),
    LIMIT,
    "ms",
  );
  table.addBound(`Workflow triggers${of}`, await timeOf("/admin/triggers", cookie), LIMIT, "ms");
  table.addBound(`Details of one${of}`, await timeOf("/admin/deliveries/whd_webhook0", cookie), LIMIT, "ms");
  table.addBound(
    `Question before retrying all${of}`,
    await timeOf("/admin/deliveries/retry-dead", cookie),
    LIMIT,
    "ms",
  );
}

const table = new Table();
for (const dead of [1_000, DELIVERIES]) await measure(table, dead);
const cookie = await signIn();
table.addBound("API keys", await timeOf("/admin/keys", cookie), LIMIT, "ms");
table.addBound("Webhooks", await timeOf("/admin/webhooks", cookie), LIMIT, "ms");
const db = new Database(join(FOLDER, "sds.db"));
addRows(db);
db.close();
table.addBound(`Plan & mirror, ${ROWS.toLocaleString("en")} rows`, await timeOf("/admin/plan", cookie), LIMIT, "ms");
await app.stop();
const machine = `${cpus()[0]?.model.trim()}, ${cpus().length} cores, Bun ${Bun.version}, ${new Date().toISOString().slice(0, 10)}`;
process.stdout.write(
  `A shop with ${DELIVERIES.toLocaleString("en")} deliveries of each kind; the second slowest of ${VIEWS} views of each page; ${machine}\n\n${table}\n`,
);

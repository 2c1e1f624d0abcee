/**
 * A read API without sds, for comparison: Fastify and better-sqlite3. It has one table with one index, and converts
 * each row to JSON. `node server.js DATABASE`
 */
import { hash, randomUUID } from "node:crypto";
import Database from "better-sqlite3";
import Fastify from "fastify";

const COLUMNS = `id, shopify_id AS shopifyId, customer_id AS customerId, status, interval, interval_count AS intervalCount,
  selling_plan_id AS sellingPlanId, lines, next_billing_date AS nextBillingDate, cycles_completed AS cyclesCompleted,
  started_at AS startedAt, cancelled_at AS cancelledAt`;

const db = new Database(process.argv[2], { fileMustExist: true });
db.pragma("journal_mode = WAL");
db.pragma("cache_size = -32768");
const findKey = db.prepare("SELECT shop_id AS shopId FROM api_keys WHERE hash = ? AND revoked_at IS NULL");
const firstPage = db.prepare(
  `SELECT ${COLUMNS} FROM subscriptions WHERE shop_id = ? ORDER BY started_at DESC, id DESC LIMIT ?`,
);
const nextPage = db.prepare(
  `SELECT ${COLUMNS} FROM subscriptions WHERE shop_id = ? AND (started_at, id) < (?, ?) ORDER BY started_at DESC, id DESC LIMIT ?`,
);

function readLimit(text) {
  const limit = /^[0-9]+$/.test(text) ? Number(text) : 0;
  return limit > 0 ? Math.min(limit, 250) : 50;
}

function listSubscriptions(shopId, limit, cursor) {
  const [startedAt, id] = cursor?.split("~") ?? [];
  const rows = cursor === undefined ? firstPage.all(shopId, limit + 1) : nextPage.all(shopId, startedAt, id, limit + 1);
  const data = rows.slice(0, limit);
  for (const row of data) row.lines = JSON.parse(row.lines);
  const last = data.at(-1);
  return { data, page: { limit, nextCursor: rows.length > limit ? `${last.startedAt}~${last.id}` : null } };
}

const app = Fastify();

app.get("/api/v1/subscriptions", (request, reply) => {
  const key = request.headers.authorization?.match(/^Bearer (cad_pk_[0-9a-f]{48})$/)?.[1];
  const owner = key === undefined ? undefined : findKey.get(hash("sha256", key, "buffer"));
  if (owner === undefined) {
    return reply.code(401).send({ error: { code: "unauthorized", message: "Send a valid API key." } });
  }
  reply.headers({
    "Cache-Control": "private, no-cache",
    Vary: "Authorization",
    "X-Content-Type-Options": "nosniff",
    "X-Request-Id": randomUUID(),
  });
  const { limit, cursor } = request.query;
  reply.send(listSubscriptions(owner.shopId, readLimit(limit), cursor));
});

process.stderr.write(`listening on ${await app.listen({ host: "127.0.0.1", port: 0 })}\n`);

import type { Database } from "bun:sqlite";
import {
  type CommitPlan,
  type LoadedShop,
  planCommit,
  type ShopChanges,
  type Submission,
} from "../../domain/decide/commit.ts";
import { keysOf, needsFields } from "../../domain/decide/commit-keys.ts";
import { subscriptionId, timeOrderedId } from "../../domain/ids.ts";
import { dayOf } from "../../lib/time.ts";
import { contractOrders } from "../engine/contract-orders.ts";
import { contractsRead } from "../engine/contract-reads.ts";
import { type StoredState, stateOf } from "../engine/mirrored-rows.ts";
import { searchesOf } from "../engine/text-searches.ts";
import type { MirrorStore, TextSearch } from "../port/mirror.ts";
import { contractReads } from "./contract-reads.ts";
import { customFields } from "./custom-fields.ts";
import { mirrorRows } from "./rows.ts";
import { mentioningTexts } from "./texts.ts";

export function mirrorStore(db: Database, random: (bytes: number) => Uint8Array): MirrorStore {
  const parts = partsOf(db);
  const { rows, texts, reads } = parts;
  const writeCommit = createCommitWriter(db, random, parts);

  return {
    searchTexts: (shop, people) => texts.search(shop, people),

    async applyRecords(submissions, now, searches) {
      const { results, changes } = db.transaction(() => writeCommit(submissions, now, searches)).immediate();
      for (const committed of changes) texts.noteCommit(committed);
      return results;
    },

    async contractOf(shop, contractGid) {
      return rows.contract(shop.id, subscriptionId(shop.firstDomain, contractGid));
    },

    async contractReads(shop, contractGids) {
      return reads.of(shop.id, contractGids);
    },

    async newestRate(shop, pair) {
      return reads.newestRate(shop.id, pair);
    },

    async contractsWithoutRate(shop, after, limit) {
      return reads.withoutRate(shop.id, after, limit);
    },

    async contractsOfOrder(shop, orderGid) {
      return reads.contractsOfOrder(shop.id, orderGid);
    },

    async ordersOf(shop, contractGid) {
      return contractOrders(shop.firstDomain, contractGid, (ids) => rows.orders(shop.id, ids));
    },
  };
}

type CommitParts = ReturnType<typeof partsOf>;

/** Makes the readers and writers of the parts of a commit. */
function partsOf(db: Database) {
  return { rows: mirrorRows(db), fields: customFields(db), texts: mentioningTexts(db), reads: contractReads(db) };
}

/** Plans and writes a commit in the caller's transaction. */
type CommitWriter = (submissions: readonly Submission[], now: number, searches: readonly TextSearch[]) => CommitPlan;

export function createCommitWriter(
  db: Database,
  random: (bytes: number) => Uint8Array,
  { rows, fields, texts, reads }: CommitParts = partsOf(db),
): CommitWriter {
  const statements = statementsOf(db);

  /** Loads the shops of a commit, without shops whose removal has begun since the caller found them. */
  function load(submissions: readonly Submission[], searches: readonly TextSearch[]): Map<number, LoadedShop> {
    const shops = new Map<number, LoadedShop>();
    for (const shopKeys of keysOf(submissions)) {
      const { shop } = shopKeys;
      const stored = statements.shopState.get(shop.id);
      if (stored === null) continue;
      rows.addRedacted(shopKeys);
      const loaded = rows.load(shopKeys);
      if (needsFields(shopKeys)) fields.load(shopKeys, loaded);
      if (shopKeys.redactedPeople.size > 0) loaded.texts = texts.read(searchesOf(shopKeys, searches));
      const lastReads = reads.of(shop.id, contractsRead(submissions, shop.id));
      shops.set(shop.id, { keys: shopKeys, state: stateOf(stored), rows: loaded, reads: lastReads });
    }
    return shops;
  }

  function write(
    { shop, rows: changedRows, changeCount, spanNumber, counts, deliveries, inboxNumbers, ...more }: ShopChanges,
    now: number,
  ): void {
    rows.write(shop.id, changedRows);
    if (more.customFields.length > 0 || more.fields !== null) fields.write(shop.id, more);
    if (changedRows.length > 0)
      statements.setCounts.run(changeCount, spanNumber, counts.customers, counts.subscriptions, counts.orders, shop.id);
    if (more.countBeforeSpan !== null) statements.noteSpan.run(shop.id, spanNumber, more.countBeforeSpan);
    for (const { id, kind, topic, isTest, body, secretVersion, isRedacted = false } of deliveries)
      statements.insertDelivery.run(id, shop.id, kind, topic, isTest, body, secretVersion, isRedacted, now, now, now);
    for (const { subject, topic, cycle, reason } of more.unsent)
      statements.insertUnsent.run(shop.id, dayOf(now), subject, topic, cycle, now, reason);
    for (const number of inboxNumbers) statements.removeFromInbox.run(shop.id, number);
    for (const read of more.reads) reads.note(shop.id, read);
    for (const { id, customer, requestedAt, dueAt } of more.dataRequests)
      statements.insertDataRequest.run(shop.id, id, customer, requestedAt, dueAt);
    for (const change of more.texts) texts.write(shop.id, change);
    for (const number of more.redactedDeliveries) texts.removeAnswers(shop.id, number);
  }

  return (submissions, now, searches) => {
    const plan = planCommit(submissions, load(submissions, searches), now, () => timeOrderedId("whd_", now, random));
    for (const changes of plan.changes) write(changes, now);
    return plan;
  };
}

/** Prepares the statements of a commit, except those for rows, custom fields, texts and readings. */
function statementsOf(db: Database) {
  return {
    shopState: db.prepare<StoredState, [number]>(
      `SELECT plan, url, topics, triggers, change_count AS changeCount, change_span AS spanNumber,
         change_count AS previousSpanCount,
         customer_count AS customers, subscription_count AS subscriptions, order_count AS orders,
         (SELECT max(version) FROM webhook_secrets WHERE shop_id = shops.id) AS secretVersion,
         EXISTS (SELECT 1 FROM connections WHERE shop_id = shops.id) AS isConnected
       FROM shops LEFT JOIN webhook_endpoints ON webhook_endpoints.shop_id = shops.id
       WHERE shops.id = +? AND removal_started_at IS NULL`,
    ),
    setCounts: db.prepare(
      `UPDATE shops SET change_count = ?, change_span = ?, customer_count = ?, subscription_count = ?, order_count = ?
       WHERE id = ?`,
    ),
    // If `sds copy` stored a lower number for the span, that number stays (copy/tables.ts).
    noteSpan: db.prepare(
      `INSERT INTO change_spans (shop_id, span, number) VALUES (?, ?, ?)
       ON CONFLICT (shop_id, span) DO UPDATE SET number = min(number, excluded.number)`,
    ),
    removeFromInbox: db.prepare("DELETE FROM inbox WHERE shop_id = ? AND number = ?"),
    insertDelivery: db.prepare(
      `INSERT INTO deliveries
         (id, shop_id, kind, topic, test, body, secret_version, redacted, status, next_attempt_at, claimable_at,
          created_at)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'pending', ?, ?, ?)`,
    ),
    insertUnsent: db.prepare(
      `INSERT OR REPLACE INTO unsent_events (shop_id, day, subject, topic, cycle, at, reason)
       VALUES (?, ?, ?, ?, ?, ?, ?)`,
    ),
    insertDataRequest: db.prepare(
      "INSERT OR IGNORE INTO data_requests (shop_id, id, customer, requested_at, due_at) VALUES (?, ?, ?, ?, ?)",
    ),
  };
}

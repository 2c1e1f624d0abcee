import {
  type CommitResult,
  type LoadedShop,
  planCommit,
  type ShopChanges,
  type Submission,
} from "../../domain/decide/commit.ts";
import { type CommitKeys, keysOf } from "../../domain/decide/commit-keys.ts";
import type { NewDelivery, UnsentEvent } from "../../domain/deliveries/event-queue.ts";
import { subscriptionId, timeOrderedId } from "../../domain/ids.ts";
import type { DataRequest } from "../../domain/people/data-request.ts";
import type { StoredText } from "../../domain/people/redaction.ts";
import type { Order, Subscription } from "../../domain/resources.ts";
import { dayOf } from "../../lib/time.ts";
import { contractOrders } from "../engine/contract-orders.ts";
import { contractsRead } from "../engine/contract-reads.ts";
import { stateOf } from "../engine/mirrored-rows.ts";
import type { MirrorStore, StoredRead, TextSearch } from "../port/mirror.ts";
import { contractReads, contractsOfOrder, contractsWithoutRate, newestRate, noteReads } from "./contract-reads.ts";
import { loadFields, writeFields } from "./custom-fields.ts";
import { columnArrays, type Database, pipeline, type Queries, type Writes } from "./database.ts";
import { lockShops, noteSpans, writeCounts } from "./mirror-locks.ts";
import { checkLeases } from "./nodes.ts";
import { addRedacted, joinedTexts, loadRows, splitTexts, writeRows } from "./rows.ts";
import { textSearches } from "./text-search.ts";
import { removeAnswers, writeTexts } from "./texts.ts";

interface CommitInput {
  shops: Map<number, LoadedShop>;
  /** Stored readings of contracts, by shop id. */
  reads: Map<number, Map<string, StoredRead>>;
}

/** Maximum idle time of a transaction that redacts people. */
const REDACTING_MS = 4_000;

/** @param node id of this process */
export function mirrorStore(db: Database, random: (bytes: number) => Uint8Array, node: string): MirrorStore {
  const texts = textSearches(db);

  /**
   * Checks the leases after this transaction has locked the shops. Another node may take over a lease after the check.
   * Then the other node's commit waits for the locks.
   */
  const checksOf = (tx: Queries, submissions: readonly Submission[], searches: readonly TextSearch[]) => [
    checkLeases(
      tx,
      node,
      submissions.filter(({ isNodeWork = false }) => isNodeWork).map(({ shop }) => shop.id),
    ),
    ...(searches.length > 0 ? [allowIdle(tx)] : []),
  ];

  return {
    searchTexts: texts.search,

    async applyRecords(submissions, now, searches) {
      if (submissions.length === 0) return [];
      return db.transaction(async (tx) => {
        const { results, write } = await planSubmissions(tx, submissions, {
          now,
          random,
          textsOf: (keys) => texts.read(tx, keys, searches),
          beside: () => checksOf(tx, submissions, searches),
        });
        await tx.commitWith(write);
        return results;
      });
    },

    async contractOf(shop, contractGid) {
      const found = await db.get<{ json: string; revision: string | null; customer: string }>(
        `SELECT subscriptions.json, subscriptions.revision, customers.json AS customer FROM subscriptions
         JOIN customers ON customers.shop_id = subscriptions.shop_id
         AND customers.id = substring(subscriptions.json FROM '"customerId":"(cus_[a-z2-7]{24})"')
         WHERE subscriptions.shop_id = $1::bigint AND subscriptions.id = $2::text`,
        [shop.id, subscriptionId(shop.firstDomain, contractGid)],
      );
      if (found === undefined) return undefined;
      const { shopifyId } = JSON.parse(found.customer) as { shopifyId: string };
      const { json, revision } = found;
      return { subscription: JSON.parse(json) as Subscription, customerGid: shopifyId, revision };
    },

    contractReads: (shop, contractGids) => contractReads(db, shop.id, contractGids),

    newestRate: (shop, pair) => newestRate(db, shop.id, pair),

    contractsWithoutRate: (shop, after, limit) => contractsWithoutRate(db, shop.id, after, limit),

    contractsOfOrder: (shop, orderGid) => contractsOfOrder(db, shop.id, orderGid),

    async ordersOf(shop, contractGid) {
      return contractOrders(shop.firstDomain, contractGid, async (ids) => {
        const rows = await db.all<{ json: string }>(
          "SELECT json FROM orders WHERE shop_id = $1::bigint AND id = ANY($2::text[])",
          [shop.id, ids],
        );
        return rows.map(({ json }) => JSON.parse(json) as Order);
      });
    },
  };
}

interface CommitOptions {
  now: number;
  random: (bytes: number) => Uint8Array;
  /** Reads the stored texts about redacted people. */
  textsOf?: (keys: CommitKeys) => Promise<StoredText[]>;
  /** Sends further statements of the caller, after the statements that lock the shops. */
  beside?: () => Promise<unknown>[];
}

/** Plans and writes a commit inside the caller's transaction. */
export async function applySubmissions(
  tx: Queries,
  submissions: readonly Submission[],
  options: CommitOptions,
): Promise<CommitResult[]> {
  const { results, write } = await planSubmissions(tx, submissions, options);
  await write(tx);
  return results;
}

/** Locks the shops and plans a commit. The returned `write` sends the planned statements through `last`. */
async function planSubmissions(
  tx: Queries,
  submissions: readonly Submission[],
  { now, random, textsOf = async () => [], beside = () => [] }: CommitOptions,
): Promise<{ results: CommitResult[]; write(last: Writes): Promise<void> }> {
  const [{ shops, reads }] = await pipeline([load(tx, submissions, textsOf), ...beside()]);
  const { results, changes } = planCommit(submissions, shops, now, () => timeOrderedId("whd_", now, random));
  return { results, write: (last) => write(last, changes, reads, now) };
}

/** Allows more idle time: redacting all texts about people can take seconds without a statement. */
async function allowIdle(tx: Queries): Promise<void> {
  await tx.run("SELECT set_config('idle_in_transaction_session_timeout', $1::text, true)", [String(REDACTING_MS)]);
}

/**
 * Locks the shops of the submissions and loads their data. Sends all statements at once, except the queries for
 * customers of loaded contracts and for rows of redacted people. The result lacks shops whose removal began since the
 * caller found them.
 */
async function load(
  tx: Queries,
  submissions: readonly Submission[],
  textsOf: (keys: CommitKeys) => Promise<StoredText[]>,
): Promise<CommitInput> {
  const keys = keysOf(submissions);
  const ids = keys.map(({ shop }) => shop.id);
  if (keys.some(({ redactedPeople }) => redactedPeople.size > 0))
    await pipeline([lockShops(tx, ids), addRedacted(tx, keys)]);
  const [states, rows, fields, texts, reads] = await pipeline([
    lockShops(tx, ids),
    loadRows(tx, keys),
    loadFields(tx, keys),
    pipeline(keys.map(textsOf)),
    pipeline(ids.map((id) => contractReads(tx, id, contractsRead(submissions, id)))),
  ]);
  const shops = new Map<number, LoadedShop>();
  for (const [index, shopKeys] of keys.entries()) {
    const { id } = shopKeys.shop;
    const [state, loaded] = [states.get(id), rows.get(id)];
    if (state === undefined || loaded === undefined) continue;
    loaded.texts = texts[index] ?? [];
    Object.assign(loaded, fields.get(id));
    shops.set(id, { keys: shopKeys, state: stateOf(state), rows: loaded, reads: reads[index] ?? new Map() });
  }
  return { shops, reads: new Map(ids.map((id, index) => [id, reads[index] ?? new Map()])) };
}

/**
 * Writes planned changes. Sends all statements at once. The statements lock deliveries. To avoid deadlocks, all nodes
 * write the changes in ascending order of shops.
 */
async function write(
  tx: Writes,
  planned: readonly ShopChanges[],
  reads: CommitInput["reads"],
  now: number,
): Promise<void> {
  const changes = planned.toSorted((a, b) => a.shop.id - b.shop.id);
  const rows = changes.flatMap(({ shop, rows }) => rows.map((each) => ({ shopId: shop.id, ...each })));
  await pipeline([
    writeRows(tx, rows),
    writeCounts(
      tx,
      changes.filter((each) => each.rows.length > 0),
    ),
    noteSpans(tx, changes),
    ...changes.flatMap(({ shop: { id }, ...change }) => [
      writeFields(tx, id, change),
      insertDeliveries(tx, id, change.deliveries, now),
      insertUnsent(tx, id, change.unsent, now),
      removeFromInbox(tx, id, change.inboxNumbers),
      noteReads(tx, id, change.reads, reads.get(id) ?? new Map()),
      insertDataRequests(tx, id, change.dataRequests),
      // Must come before `writeTexts`, which locks deliveries in any order. `removeAnswers` locks the same deliveries
      // in a fixed order first.
      removeAnswers(tx, id, change.redactedDeliveries),
      writeTexts(tx, id, change.texts),
    ]),
  ]);
}

async function removeFromInbox(tx: Writes, shopId: number, numbers: readonly number[]): Promise<void> {
  if (numbers.length === 0) return;
  await tx.run("DELETE FROM inbox WHERE shop_id = $1::bigint AND number = ANY($2::bigint[])", [shopId, numbers]);
}

/** Inserts a shop's new deliveries in the given order, in the caller's transaction. The deliveries are due now. */
async function insertDeliveries(
  tx: Writes,
  shopId: number,
  deliveries: readonly NewDelivery[],
  now: number,
): Promise<void> {
  if (deliveries.length === 0) return;
  await tx.run(
    `INSERT INTO deliveries
       (shop_id, id, kind, topic, test, body, secret_version, redacted, status, next_attempt_at, claimable_at,
        created_at)
     SELECT $1::bigint, id, kind, topic, test, body, secret_version, redacted, 'pending', $2::bigint, $2::bigint,
       $2::bigint
     FROM unnest(${splitTexts(3)}, $4::text[], $5::text[], $6::text[], $7::boolean[], $8::bigint[], $9::boolean[])
       WITH ORDINALITY AS new (body, id, kind, topic, test, secret_version, redacted, place)
     ORDER BY place`,
    [
      shopId,
      now,
      joinedTexts(deliveries.map(({ body }) => body)),
      ...columnArrays(deliveries, ({ id, kind, topic, isTest, secretVersion, isRedacted = false }) => [
        id,
        kind,
        topic,
        isTest,
        secretVersion,
        isRedacted,
      ]),
    ],
  );
}

/** Stores why a shop's events have no delivery. Keeps only the last event of each day, subject, topic and renewal. */
async function insertUnsent(tx: Writes, shopId: number, events: readonly UnsentEvent[], now: number): Promise<void> {
  if (events.length === 0) return;
  // One statement cannot write a row twice.
  const last = new Map(events.map((event) => [`${event.subject} ${event.topic} ${event.cycle}`, event]));
  await tx.run(
    `INSERT INTO unsent_events (shop_id, day, at, subject, topic, cycle, reason)
     SELECT $1::bigint, $2::bigint, $3::bigint, * FROM unnest($4::text[], $5::text[], $6::bigint[], $7::text[])
     ON CONFLICT (shop_id, day, subject, topic, cycle) DO UPDATE SET at = excluded.at, reason = excluded.reason`,
    [
      shopId,
      dayOf(now),
      now,
      ...columnArrays([...last.values()], ({ subject, topic, cycle, reason }) => [subject, topic, cycle, reason]),
    ],
  );
}

/** Adds a shop's data requests in the caller's transaction. Skips requests that exist already. */
async function insertDataRequests(tx: Writes, shopId: number, requests: readonly DataRequest[]): Promise<void> {
  if (requests.length === 0) return;
  await tx.run(
    `INSERT INTO data_requests (shop_id, id, customer, requested_at, due_at)
     SELECT $1::bigint, * FROM unnest($2::text[], $3::text[], $4::bigint[], $5::bigint[]) ON CONFLICT DO NOTHING`,
    [shopId, ...columnArrays(requests, ({ id, customer, requestedAt, dueAt }) => [id, customer, requestedAt, dueAt])],
  );
}

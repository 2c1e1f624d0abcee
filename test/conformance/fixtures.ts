import { expect } from "bun:test";
import type { CommitResult } from "../../src/domain/decide/commit.ts";
import { TOPIC_NAMES } from "../../src/domain/events/event.ts";
import { TRIGGER_HANDLES } from "../../src/domain/events/trigger.ts";
import type { ApiKey } from "../../src/domain/key.ts";
import type { Position } from "../../src/domain/pages/cursor.ts";
import type { RowFilter } from "../../src/domain/pages/row-filter.ts";
import type { Tokens } from "../../src/domain/platform/connection.ts";
import type { MirrorRecord } from "../../src/domain/records/platform-records.ts";
import type { Resource } from "../../src/domain/resources.ts";
import type { MirroredShop, Shop } from "../../src/domain/shop.ts";
import type { Receipt } from "../../src/store/port/inbox.ts";
import type { RowForm } from "../../src/store/port/pages.ts";
import type { Store } from "../../src/store/port/store.ts";
import { StoreError } from "../../src/store/port/store-error.ts";
import { START } from "../support/app.ts";
import { applySearched } from "../support/searched.ts";

export const TOKENS: Tokens = { accessToken: "shpat_1", refreshToken: null, expiresAt: null };
export const URL = "https://hooks.example.com/in";
export const HOUR = 3_600_000;

/**
 * Adds a shop. Its id is neither 1 nor the number of its first row, so a test fails if the program mixes up these
 * numbers.
 */
export async function addShop(store: Store, name = "alpha"): Promise<Shop> {
  if ((await store.shops.list()).length === 0) await skipIds(store, 2);
  return store.shops.add({ domain: `${name}.myshopify.com`, plan: "pro", currency: "USD" }, START);
}

async function skipIds(store: Store, count: number): Promise<void> {
  for (let n = 0; n < count; n += 1) {
    await store.shops.add({ domain: "removed.example.com", plan: "pro", currency: "USD" }, START);
    await removeShop(store, "removed.example.com");
  }
}

/** Adds a shop for which every event is queued. */
export async function shopWithEvents(store: Store, name?: string): Promise<Shop> {
  const shop = await addShop(store, name);
  await chooseAllEvents(store, shop);
  return shop;
}

/** Makes an API key for tests that use only its name. */
export function apiKey(name: string, fields: Partial<ApiKey> = {}): ApiKey {
  return {
    id: `key_${name}`,
    label: `Key ${name}`,
    fingerprint: `cad_pk_${name}`,
    createdAt: START,
    lastUsedAt: null,
    legacy: false,
    createdBy: null,
    ...fields,
  };
}

/** Removes a shop in all its steps. @returns whether the shop existed */
export async function removeShop(store: Store, domain: string): Promise<boolean> {
  const shop = await store.shops.beginRemoval(domain, START);
  if (shop === undefined) return false;
  while (await store.shops.removeSome(shop.id));
  return true;
}

/** Gives a shop everything that events need: an endpoint, all topics, all triggers and a connection. */
export async function chooseAllEvents(store: Store, shop: MirroredShop): Promise<void> {
  await store.webhooks.set(shop.id, { url: URL, topics: TOPIC_NAMES }, START);
  await store.connections.connect(shop.id, "token", TOKENS, [], START);
  await store.shops.set(shop.domain, { triggers: TRIGGER_HANDLES });
}

/** Commits the records of one submission, and throws if they are refused. */
export async function commit(
  store: Store,
  shop: MirroredShop,
  records: MirrorRecord[],
  now = START,
): Promise<CommitResult & { accepted: number }> {
  const [result] = await applySearched(store.mirror, [{ shop, records }], now);
  if (result === undefined || "refused" in result) throw new Error(`refused: ${JSON.stringify(result)}`);
  return result;
}

export function receipt(shop: MirroredShop, webhookId: string | null, fields: Partial<Receipt> = {}): Receipt {
  return {
    shopId: shop.id,
    webhookId,
    topic: "orders/create",
    subject: "contract 1",
    needsPlatform: true,
    body: "{}",
    triggeredAt: START,
    ...fields,
  };
}

/** Receives platform webhooks. Then marks all waiting webhooks of the shop as failed. */
export async function receiveFailed({ inbox }: Store, shop: MirroredShop, count = 1): Promise<void> {
  const failed = receipt(shop, null, { topic: "orders/paid", subject: "s" });
  await inbox.receive(Array(count).fill(failed), START);
  const items = await inbox.list(shop.id, { limit: 1_000, status: "waiting" });
  await inbox.postpone(
    shop.id,
    items.map(({ number }) => number),
    "It failed.",
    null,
  );
}

/** Reads all rows of a resource page by page, and parses them. */
export async function allRows(
  store: Store,
  shop: MirroredShop,
  form: RowForm,
  limit = 250,
): Promise<Record<string, unknown>[]> {
  const all: Record<string, unknown>[] = [];
  for (let after: Position | null = null, isFirst = true; isFirst || after !== null; isFirst = false) {
    const page = await store.pages.list(shop.id, form, limit, after);
    if (page === undefined) throw new Error("the page's own cursor was refused");
    const rows = parsePage(page.rows);
    if (page.end === null ? rows.length > limit : rows.length !== limit)
      throw new Error(`a page of ${limit} has ${rows.length} rows`);
    all.push(...rows);
    after = page.end;
  }
  return all;
}

export function parsePage(rows: Uint8Array): Record<string, unknown>[] {
  return JSON.parse(`[${Buffer.from(rows)}]`);
}

/** Waits for all promises. @returns the error of each promise; undefined if it did not fail */
export async function failures(promises: readonly Promise<unknown>[]): Promise<unknown[]> {
  const settled = await Promise.allSettled(promises);
  return settled.map((each) => (each.status === "rejected" ? each.reason : undefined));
}

/** Expects that each operation breaks a constraint. */
export async function expectConflict(...operations: Promise<unknown>[]): Promise<void> {
  const errors = await failures(operations);
  for (const error of errors) expect(error).toBeInstanceOf(StoreError);
  expect(errors).toMatchObject(errors.map(() => ({ reason: "conflict" })));
}

/** Receives platform webhooks. @returns whether each was new */
export function receiveAll(store: Store, receipts: readonly Receipt[], now = START): Promise<boolean[]> {
  return store.inbox.receive(receipts, now);
}

/** Reads a page of changes, and parses its rows. */
export async function changedRows(
  store: Store,
  shop: MirroredShop,
  resource: Resource,
  { after = 0, limit = 250, filter = {} as RowFilter } = {},
): Promise<Record<string, unknown>[]> {
  return parsePage((await store.pages.changes(shop.id, resource, filter, limit, after)).rows);
}

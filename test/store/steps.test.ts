import { expect, test } from "bun:test";
import { nextTurn } from "../../src/lib/waits.ts";
import type { Store } from "../../src/store/port/store.ts";
import { claim, failed, queueRewards, record, succeeded } from "../conformance/delivery-fixtures.ts";
import { addShop, HOUR, receipt, URL } from "../conformance/fixtures.ts";
import { START, temporaryFolder } from "../support/app.ts";
import { afterTest } from "../support/cleanup.ts";
import { openStoreIn } from "../support/open-store.ts";
import { readRows } from "../support/rows.ts";

const COUNT = 900;
const range = Array.from({ length: COUNT }, (_, n) => n);

async function opened() {
  const folder = temporaryFolder();
  async function open(): Promise<Store> {
    const store = await openStoreIn(folder);
    afterTest(() => store.close());
    return store;
  }
  const store = await open();
  const shop = await addShop(store);
  await store.webhooks.set(shop.id, { url: URL, topics: ["loyalty.reward_earned"] }, START);
  return { store, shop, open, countOf: (table: "deliveries" | "platform_webhooks") => readRows(folder, table).length };
}

/** Closes the database after the first step of the work, as a kill would. Each step takes a turn of the event loop. */
async function interrupted(store: Store, work: () => Promise<unknown>): Promise<void> {
  const working = work();
  const [outcome] = await Promise.allSettled([working, nextTurn().then(() => store.close())]);
  expect(outcome.status).toBe("rejected");
}

test("pruning that is interrupted between two steps is finished by the next one", async () => {
  const { store, shop, open, countOf } = await opened();
  await queueRewards(store, shop, range);
  const claims = await claim(store, shop);
  await record(
    store,
    claims.map((each) => succeeded(each)),
  );
  await interrupted(store, () => store.deliveries.prune(START + HOUR, 0));
  expect([countOf("deliveries") > 0, countOf("deliveries") < COUNT]).toEqual([true, true]);
  await (await open()).deliveries.prune(START + HOUR, 0);
  expect(countOf("deliveries")).toBe(0);
});

test("retrying all dead deliveries that is interrupted between two steps is finished by the next one", async () => {
  const { store, shop, open } = await opened();
  await queueRewards(store, shop, range);
  const claims = await claim(store, shop);
  await record(
    store,
    claims.map((each) => failed(each)),
    [],
  );
  await interrupted(store, () => store.deliveries.retryDead(shop.id, 0, START + 1));
  const { deliveries } = await open();
  const left = await deliveries.countDead(shop.id, 0);
  expect([left > 0, left < COUNT]).toEqual([true, true]);
  expect(await deliveries.list(shop.id, { limit: COUNT, status: "pending" })).toHaveLength(COUNT - left);
  expect(await deliveries.retryDead(shop.id, 0, START + 2)).toBe(left);
  expect(await deliveries.countDead(shop.id, 0)).toBe(0);
});

test("forgetting ids of platform webhooks that is interrupted between two steps is finished by the next one", async () => {
  const { store, shop, open, countOf } = await opened();
  const ids = Array.from({ length: 2_500 }, (_, n) => receipt(shop, `w${n}`));
  await store.inbox.receive(ids, START);
  await interrupted(store, () => store.inbox.forgetReceipts(START + 1));
  expect([countOf("platform_webhooks") > 0, countOf("platform_webhooks") < 2_500]).toEqual([true, true]);
  await (await open()).inbox.forgetReceipts(START + 1);
  expect(countOf("platform_webhooks")).toBe(0);
});

import { describe, expect, test } from "bun:test";
import type { Shop } from "../../src/domain/shop.ts";
import type { Store } from "../../src/store/port/store.ts";
import { START } from "../support/app.ts";
import { claim, claimOne, end, failed, queueRewards, record, succeeded } from "./delivery-fixtures.ts";
import { engines, storeWithEvents } from "./engines.ts";
import { addShop, commit, HOUR, removeShop, TOKENS, URL } from "./fixtures.ts";

const MINUTE = 60_000;
const error = "The endpoint responded with HTTP 500.";

/** Queues a webhook and records that its first attempt fails. The next attempt is planned in a year. */
async function failOnce(store: Store, shop: Shop, id: string, at: number): Promise<void> {
  await queueRewards(store, shop, [id], at);
  await record(store, [failed(await claimOne(store, shop, { now: at }), at)], [8_760 * HOUR]);
}

async function succeedOnce(store: Store, shop: Shop, id: string, at: number): Promise<void> {
  await queueRewards(store, shop, [id], at);
  await record(store, [succeeded(await claimOne(store, shop, { now: at }), at)]);
}

describe.each(engines())("$name: the alert of an endpoint", (engine) => {
  test("begins when it has failed for an hour and in five first attempts, since its first failure", async () => {
    const { store, shop } = await storeWithEvents(engine);
    for (const minute of [0, 10, 20, 30, 40, 59]) {
      await failOnce(store, shop, `m${minute}`, START + minute * MINUTE);
      expect(await store.alerts.list(shop.id)).toEqual([]);
    }
    await failOnce(store, shop, "m60", START + HOUR);
    const alert = { cause: "endpoint" as const, since: START, failures: 7, lastAt: START + HOUR };
    expect(await store.alerts.list(shop.id)).toEqual([{ ...alert, host: "hooks.example.com", error }]);
  });

  test("does not begin after few first attempts, however often they are repeated", async () => {
    const { store, shop } = await storeWithEvents(engine);
    for (const hour of [0, 1, 2, 3]) await failOnce(store, shop, `h${hour}`, START + hour * HOUR);
    const claimed = await claim(store, shop, { now: START + 9_000 * HOUR });
    expect(claimed.length).toBe(4);
    const ended = claimed.map((each) => failed(each, START + 9_000 * HOUR));
    await record(store, ended, [HOUR, HOUR, HOUR]);
    expect(await store.alerts.list(shop.id)).toEqual([]);
  });

  test("starts again after a success, and a shop that is well gets no row", async () => {
    const { store, shop, rows } = await storeWithEvents(engine);
    await succeedOnce(store, shop, "first", START);
    expect(await rows("alerts")).toEqual([]);
    for (const hour of [0, 1, 2, 3]) await failOnce(store, shop, `h${hour}`, START + hour * HOUR);
    await succeedOnce(store, shop, "ok", START + 4 * HOUR);
    await failOnce(store, shop, "after", START + 5 * HOUR);
    expect(await rows("alerts")).toMatchObject([{ cause: "endpoint", since: START + 5 * HOUR, failures: 1 }]);
    for (const hour of [6, 7, 8, 9]) await failOnce(store, shop, `h${hour}`, START + hour * HOUR);
    expect(await store.alerts.list(shop.id)).toMatchObject([{ since: START + 5 * HOUR, failures: 5 }]);
    await succeedOnce(store, shop, "again", START + 10 * HOUR);
    expect(await store.alerts.list(shop.id)).toEqual([]);
    expect(await rows("alerts")).toMatchObject([{ well_at: START + 10 * HOUR }]);
  });

  test("leaves failures out that began before a success of the same transaction", async () => {
    const { store, shop, rows } = await storeWithEvents(engine);
    await queueRewards(store, shop, [1, 2, 3]);
    const [first, second, third] = await claim(store, shop);
    if (first === undefined || second === undefined || third === undefined) throw new Error("three are due");
    await record(store, [failed(first, START + 1), succeeded(second, START + 2), failed(third, START + 3)]);
    expect(await rows("alerts")).toMatchObject([{ since: START + 3, failures: 1, well_at: null }]);
  });

  test("begins again with another host, and leaves the alert of another shop alone", async () => {
    const { store, shop } = await storeWithEvents(engine);
    const other = await addShop(store, "other");
    for (const hour of [0, 1, 2, 3]) await failOnce(store, shop, `h${hour}`, START + hour * HOUR);
    await store.webhooks.set(shop.id, { url: "https://other.example.com/sds" }, START);
    await failOnce(store, shop, "new", START + 5 * HOUR);
    expect(await store.alerts.list(shop.id)).toEqual([]);
    for (const hour of [6, 7, 8, 9]) await failOnce(store, shop, `h${hour}`, START + hour * HOUR);
    expect(await store.alerts.list(shop.id)).toMatchObject([{ host: "other.example.com", failures: 5 }]);
    expect(await store.alerts.list(other.id)).toEqual([]);
  });
});

describe.each(engines())("$name: the alert of dead deliveries", (engine) => {
  test("begins with the first, and ends when one succeeds and none is dead", async () => {
    const { store, shop, rows } = await storeWithEvents(engine);
    await queueRewards(store, shop, [1, 2]);
    const [one, two] = await end(store, shop, "dead");
    expect(await store.alerts.list(shop.id)).toMatchObject([
      { cause: "dead", since: START, failures: 2, host: "hooks.example.com", error },
    ]);
    await store.deliveries.retry(shop.id, one?.id ?? "", START);
    await end(store, shop, "delivered", START + 1);
    expect(await store.alerts.list(shop.id)).toMatchObject([{ cause: "dead" }]);
    await store.deliveries.retry(shop.id, two?.id ?? "", START);
    // While the retry runs, no delivery is dead. The alert is not listed, but it has not ended either.
    expect(await store.alerts.list(shop.id)).toEqual([]);
    expect(await rows("alerts")).toContainEqual(expect.objectContaining({ cause: "dead", well_at: null }));
    await end(store, shop, "delivered", START + 2);
    expect(await rows("alerts")).toContainEqual(expect.objectContaining({ cause: "dead", well_at: START + 2 }));
  });

  test("names neither host nor error of a workflow trigger, because the platform may name a person", async () => {
    const { store, shop } = await storeWithEvents(engine);
    await commit(store, shop, []);
    await queueRewards(store, shop, [1]);
    const claimed = await claimOne(store, shop);
    await record(store, [failed({ ...claimed, kind: "trigger", url: URL })], []);
    expect(await store.alerts.list(shop.id)).toMatchObject([{ cause: "dead", host: null, error: null }]);
  });
});

describe.each(engines())("$name: the alert of a connection", (engine) => {
  test("is kept with its trouble, and ends with it, with a new connection or with the connection itself", async () => {
    const { store, shop, rows } = await storeWithEvents(engine);
    await store.connections.connect(shop.id, "refresh", TOKENS, [], START);
    await store.connections.setTrouble(shop.id, "it was revoked", START + 1);
    await store.connections.setTrouble(shop.id, "it was revoked again", START + 2);
    const alert = { cause: "connection", since: START + 1, failures: 1, lastAt: START + 2, host: null };
    expect(await store.alerts.list(shop.id)).toEqual([{ ...alert, error: "it was revoked again" } as never]);
    await store.connections.setTrouble(shop.id, null, START + 3);
    expect(await store.alerts.list(shop.id)).toEqual([]);
    expect(await rows("alerts")).toMatchObject([{ well_at: START + 3 }]);
    await store.connections.setTrouble(shop.id, "it was revoked", START + 4);
    expect(await store.alerts.list(shop.id)).toMatchObject([{ since: START + 4 }]);
    await store.connections.connect(shop.id, "refresh", TOKENS, [], START + 5);
    expect(await store.alerts.list(shop.id)).toEqual([]);
    await store.connections.setTrouble(shop.id, "it was revoked", START + 6);
    await store.connections.uninstall(shop.id, START + 7);
    expect(await rows("alerts")).toEqual([]);
  });
});

describe.each(engines())("$name: the removal of a shop", (engine) => {
  test("removes its alerts, and an attempt that ends meanwhile adds none", async () => {
    const { store, shop, rows } = await storeWithEvents(engine);
    await failOnce(store, shop, "one", START);
    await queueRewards(store, shop, ["two"]);
    const claimed = await claimOne(store, shop);
    await store.shops.beginRemoval(shop.domain, START);
    expect(await rows("alerts")).toEqual([]);
    expect(await record(store, [failed(claimed)])).toHaveLength(1);
    expect(await rows("alerts")).toEqual([]);
    await removeShop(store, shop.domain);
  });
});

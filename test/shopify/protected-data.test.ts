import { describe, expect, test } from "bun:test";
import { LEVEL_TEXTS } from "../../src/shopify/api/warnings.ts";
import { connected, HOUR_MS, withMirroredContract } from "../support/connected.ts";

test("without level 2, everything but names and e-mail is mirrored, and the warning says what to ask for", async () => {
  const all = await connected();
  all.remote.approvedLevel = 1;
  const contract = all.createContract();
  all.test.clock.ms += HOUR_MS;
  const { platform } = all.test.app;
  expect(await platform.missingLevels(all.shop.shop)).toEqual([LEVEL_TEXTS[2]]);
  expect(await all.load()).toMatchObject({ subscriptions: 1, skipped: 0 });
  expect(await all.shop.all("subscriptions")).toMatchObject([{ shopifyId: contract }]);
  expect(await all.shop.all("customers")).toMatchObject([{ email: null, firstName: null }]);
  expect(all.logged(LEVEL_TEXTS[2])).toHaveLength(1);
  all.remote.approvedLevel = 2;
  expect(await platform.missingLevels(all.shop.shop)).toEqual([]);
  await all.load();
  expect(await all.shop.all("customers")).toMatchObject([{ email: "a@example.com" }]);
});

test("without level 1, a load ends with what to ask for, because contracts need their customer", async () => {
  const all = await connected();
  all.remote.approvedLevel = 0;
  for (let n = 0; n < 20; n += 1) all.createContract();
  all.test.clock.ms += HOUR_MS;
  expect(await all.test.app.platform.missingLevels(all.shop.shop)).toEqual([LEVEL_TEXTS[1]]);
  await expect(all.load()).rejects.toThrow(LEVEL_TEXTS[1]);
  expect(await all.inbox()).toEqual([]);
});

test("without level 1, contracts that the mirror has are mirrored on, without their orders", async () => {
  const { all, contract } = await withMirroredContract();
  await all.load();
  all.test.clock.ms += HOUR_MS;
  all.remote.approvedLevel = 0;
  all.remote.pause(contract);
  all.remote.outgoing.splice(0);
  expect(await all.reconcile()).toMatchObject({ subscriptions: 1 });
  expect(await all.shop.all("subscriptions")).toMatchObject([{ shopifyId: contract, status: "PAUSED" }]);
  expect(await all.load()).toMatchObject({ subscriptions: 1, skipped: 0 });
  expect(await all.shop.all("customers")).toMatchObject([{ email: "a@example.com" }]);
});

describe("without level 1", () => {
  test("a charge that the mirror has keeps its order and its money", async () => {
    const { all, contract } = await withMirroredContract();
    const order = all.remote.succeedAttempt(all.remote.startAttempt(contract, 1));
    all.remote.updateOrder(order, { lines: [{ title: "Tea", price: "3.00" }] });
    await all.deliverAll();
    const charged = expect.objectContaining({ shopifyId: order, totalCents: 300 });
    expect(await all.shop.all("orders")).toContainEqual(charged);
    all.test.clock.ms += 2 * HOUR_MS;
    all.remote.approvedLevel = 0;
    all.remote.updateOrder(order, { lines: [{ title: "Tea", price: "4.00" }] });
    await all.deliverAll();
    await all.processedAfter(HOUR_MS);
    expect(await all.shop.all("orders")).toContainEqual(charged);
  });

  test("a new charge gets its order and its money when the app is approved", async () => {
    const { all, contract } = await withMirroredContract();
    await all.load();
    const since = all.test.clock.ms;
    all.remote.approvedLevel = 0;
    const order = all.remote.succeedAttempt(all.remote.startAttempt(contract, 1));
    all.remote.updateOrder(order, { lines: [{ title: "Tea", price: "3.00" }] });
    await all.deliverAll();
    all.test.clock.ms += 2 * HOUR_MS;
    all.remote.pause(contract);
    await all.deliverAll();
    const unseen = { cycleNumber: 1, status: "PAID", shopifyId: null, totalCents: 2500 };
    expect(await all.shop.all("orders")).toContainEqual(expect.objectContaining(unseen));
    all.remote.approvedLevel = 2;
    await all.reconcile(since);
    const seen = { ...unseen, shopifyId: order, totalCents: 300 };
    expect(await all.shop.all("orders")).toContainEqual(expect.objectContaining(seen));
  });
});

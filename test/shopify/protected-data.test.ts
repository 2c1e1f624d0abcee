import { expect, test } from "bun:test";
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
  expect(await all.test.app.platform.synchronizer.reconcile(all.shop.shop)).toMatchObject({ subscriptions: 1 });
  expect(await all.shop.all("subscriptions")).toMatchObject([{ shopifyId: contract, status: "PAUSED" }]);
  expect(await all.load()).toMatchObject({ subscriptions: 1, skipped: 0 });
  expect(await all.shop.all("customers")).toMatchObject([{ email: "a@example.com" }]);
});

import { expect, test } from "bun:test";
import { API_VERSION } from "../../../src/shopify/api/address.ts";
import { connected, HOUR_MS, withMirroredContract } from "../../support/connected.ts";

const ANSWERS = `the platform answers with its API version 2027-01, but this sds was made for ${API_VERSION}: update sds`;

async function read({ test: { app }, shop }: Awaited<ReturnType<typeof connected>>) {
  const read = () => app.platform.synchronizer.reconcile(shop.shop);
  const texts = async () => (await app.store.connections.warnings(shop.shop.id)).map(({ text }) => text);
  return { read, texts };
}

test("answers of another version are warned of once a day, until they have the right version again", async () => {
  const all = await connected();
  const { read: reconcile, texts } = await read(all);
  await all.load();
  expect(await texts()).toEqual([]);
  all.platform.versions.answers = "2027-01";
  for (let hour = 0; hour < 30; hour += 3) {
    all.test.clock.ms += 3 * HOUR_MS;
    await reconcile();
  }
  expect(await texts()).toEqual([ANSWERS]);
  expect(all.logged(ANSWERS)).toHaveLength(2);
  all.platform.versions.answers = API_VERSION;
  all.test.clock.ms += HOUR_MS;
  await reconcile();
  expect(await texts()).toEqual([]);
});

test("platform webhooks of another version are warned of once a day", async () => {
  const { all, contract } = await withMirroredContract();
  const { texts } = await read(all);
  expect(await texts()).toEqual([]);
  all.platform.versions.webhooks = "2026-04";
  for (let hour = 0; hour < 30; hour += 3) {
    all.test.clock.ms += 3 * HOUR_MS;
    all.remote.activate(contract);
    await all.deliverAll();
  }
  expect(await texts()).toEqual([expect.stringContaining("sends webhooks of its API version 2026-04")]);
  expect(all.logged("sends webhooks of its API version")).toHaveLength(2);
});

test("versions that alternate are warned of once, and end an hour after the last wrong one", async () => {
  const { all, contract } = await withMirroredContract();
  const { texts } = await read(all);
  for (let minute = 0; minute < 20; minute += 1) {
    const version = minute % 2 === 0 ? "2026-10" : API_VERSION;
    Object.assign(all.platform.versions, { answers: version, webhooks: version });
    all.test.clock.ms += 60_000;
    if (minute % 2 === 0) all.remote.pause(contract);
    else all.remote.activate(contract);
    await all.deliverAll();
  }
  expect(await texts()).toHaveLength(2);
  expect(all.logged("API version 2026-10")).toHaveLength(2);
  all.test.clock.ms += HOUR_MS;
  all.remote.pause(contract);
  await all.deliverAll();
  expect(await texts()).toEqual([]);
});

test("a header that is no version is not noted", async () => {
  const all = await connected();
  for (const version of ["", "<script>", "x".repeat(21)]) {
    all.platform.versions.answers = version;
    await all.load();
  }
  expect(await (await read(all)).texts()).toEqual([]);
});

test("a field that is gone is warned of, and its readings wait until the field is there", async () => {
  const { all, contract } = await withMirroredContract();
  const { texts } = await read(all);
  all.platform.removedFields = new Set(["SubscriptionContract.status"]);
  all.remote.pause(contract);
  const before = all.operations().length;
  await all.deliverAll();
  for (let hour = 0; hour < 20; hour += 1) await all.processedAfter(HOUR_MS);
  expect(await texts()).toEqual([expect.stringContaining("no longer has SubscriptionContract.status, which this sds")]);
  expect(new Set((await all.inbox()).map(({ status }) => status))).toEqual(new Set(["waiting"]));
  // No page or batch is halved: each attempt is one query.
  expect(all.operations().length - before).toBeLessThan(50);
  all.platform.removedFields = new Set();
  await all.processedAfter(HOUR_MS);
  expect(await all.shop.all("subscriptions")).toMatchObject([{ status: "PAUSED" }]);
  expect(await all.inbox()).toEqual([]);
  expect(await texts()).toEqual([]);
});

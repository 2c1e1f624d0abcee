import { expect, test } from "bun:test";
import { join } from "node:path";
import { createSlices } from "../../src/lib/slices.ts";
import { createLog } from "../../src/log.ts";
import { createBodyWriter } from "../../src/mirror/body-writer.ts";
import type { MirrorStore } from "../../src/store/mirror.ts";
import { openStore } from "../../src/store/open-store.ts";
import { StoreError } from "../../src/store/store-error.ts";
import { removeShop } from "../conformance/fixtures.ts";
import { randomBytes, START, temporaryFolder } from "../support/app.ts";
import { afterTest } from "../support/cleanup.ts";
import { eventually } from "../support/eventually.ts";
import { customer, order } from "../support/records.ts";

const parts = (count: number, first = 1) =>
  Array.from({ length: count }, (_, n) => JSON.stringify([customer(first + 2 * n), customer(first + 2 * n + 1)]));

async function setUp() {
  const folder = temporaryFolder();
  const store = await openStore({
    folder,
    masterKeyFile: join(folder, "master.key"),
    busyTimeoutMs: 2_000,
    random: randomBytes,
  });
  afterTest(() => store.close());
  const logged: string[] = [];
  const log = createLog("debug", { write: (text) => logged.push(text) }, () => START);
  /** Called before each commit that applies parts. */
  const before = { commit: (): void => undefined };
  const mirror: Pick<MirrorStore, "applyIntakeParts"> = {
    async applyIntakeParts(...args) {
      before.commit();
      return store.mirror.applyIntakeParts(...args);
    },
  };
  const writer = () => {
    const made = createBodyWriter({
      mirror,
      bodies: store.intakeBodies,
      slices: createSlices(),
      now: () => START,
      sleep: () => Bun.sleep(1),
      log,
      onQueued: () => undefined,
    });
    afterTest(() => made.stop());
    return made;
  };
  const addShop = (domain: string) => store.shops.add({ domain, plan: "pro", currency: "USD" }, START);
  const customers = async (shopId: number) => (await store.shops.rowCounts(shopId)).customers;
  return { store, writer, before, logged, addShop, customers, shop: await addShop("alpha.myshopify.com") };
}

async function appliedOf(submitted: ReturnType<ReturnType<typeof createBodyWriter>["submit"]>): Promise<void> {
  const result = await submitted;
  if ("refused" in result) throw new Error(result.refused.reason);
  await result.applied;
}

test("a body is applied whole before its sender hears of it, and bodies of two shops take turns", async () => {
  const { writer, addShop, shop, customers, store } = await setUp();
  const other = await addShop("beta.myshopify.com");
  const bodyWriter = writer();
  const order: string[] = [];
  const long = appliedOf(bodyWriter.submit(shop, parts(400))).then(() => order.push("long"));
  const short = appliedOf(bodyWriter.submit(other, parts(3))).then(() => order.push("short"));
  await Promise.all([long, short]);
  expect(order).toEqual(["short", "long"]);
  expect([await customers(shop.id), await customers(other.id)]).toEqual([800, 6]);
  expect(await store.intakeBodies.waiting()).toEqual([]);
});

test("a stopped program applies the rest after its next start", async () => {
  const { writer, before, shop, customers, store } = await setUp();
  const first = writer();
  let commits = 0;
  before.commit = () => {
    commits += 1;
    if (commits === 3) void first.stop();
  };
  await first.submit(shop, parts(100));
  await eventually(async () => commits === 3 && (await customers(shop.id)) > 0);
  await first.stop();
  const interrupted = await customers(shop.id);
  expect(interrupted).toBeLessThan(200);
  await store.intakeBodies.begin(shop.id);
  await writer().resume();
  expect(await customers(shop.id)).toBe(200);
  expect(await store.intakeBodies.waiting()).toEqual([]);
});

test("a database that fails is told to the sender, and the rest is applied when it works again", async () => {
  const { writer, before, shop, customers } = await setUp();
  let commits = 0;
  before.commit = () => {
    commits += 1;
    if (commits === 2) throw new StoreError("busy", new Error("database is locked"));
  };
  const submitted = appliedOf(writer().submit(shop, parts(100)));
  expect(await submitted.catch((thrown: unknown) => thrown)).toBeInstanceOf(StoreError);
  await eventually(async () => (await customers(shop.id)) === 200);
});

test("a body that cannot be applied is dropped, and the next one is applied", async () => {
  const { writer, shop, customers, store, logged } = await setUp();
  const bodyWriter = writer();
  const bad = appliedOf(bodyWriter.submit(shop, [JSON.stringify([order(9, 1)]), ...parts(50)]));
  const good = appliedOf(bodyWriter.submit(shop, parts(2)));
  expect(await bad.catch((thrown: Error) => thrown.message)).toContain("a checked record was refused");
  await good;
  expect(await customers(shop.id)).toBe(4);
  expect(await store.intakeBodies.waiting()).toEqual([]);
  expect(logged.join("")).toContain("the rest of a body of the intake cannot be applied and is dropped");
});

test("a body whose shop is removed meanwhile is refused, or ends with it", async () => {
  const { writer, before, shop, store } = await setUp();
  const bodyWriter = writer();
  let removal: Promise<boolean> | undefined;
  before.commit = () => {
    removal ??= removeShop(store, shop.domain);
  };
  await appliedOf(bodyWriter.submit(shop, parts(200)));
  expect(await removal).toBe(true);
  expect(await bodyWriter.submit(shop, parts(1))).toEqual({
    refused: { index: 0, field: "", reason: `is for a shop that was removed: ${shop.domain}` },
  });
});

import { describe, expect, test } from "bun:test";
import { noAccess } from "../../src/actions/access.ts";
import { changeShop, connectionText, shopStatus } from "../../src/actions/shop.ts";
import { NO_COUNTS } from "../../src/domain/platform/sync.ts";
import type { Plan } from "../../src/domain/shop.ts";
import { loadExclusively } from "../../src/shopify/sync/exclusive-load.ts";
import { receiveFailed, TOKENS } from "../conformance/fixtures.ts";
import { receive } from "../conformance/received.ts";
import { MERCHANT, OPERATOR } from "../support/actors.ts";
import { START, testShop } from "../support/app.ts";

const GRANTED = ["read_own_subscription_contracts", "read_customers", "read_orders"];
const NO_TRIGGERS = noAccess("workflow triggers");

async function opened(plan: Plan = "pro") {
  const { app, shop } = await testShop({}, plan);
  const { store } = app;
  return { store, shop, status: () => shopStatus(store, shop, Date.now()) };
}

/** The process ID of a process that has ended. */
async function endedProcess(): Promise<number> {
  const child = Bun.spawn(["true"]);
  await child.exited;
  return child.pid;
}

describe("the status of a shop", () => {
  test("is empty for a new shop", async () => {
    const { status } = await opened();
    expect(await status()).toEqual({
      planFixed: false,
      retryDays: [1, 3, 5],
      creditTitle: "Loyalty credit",
      triggers: [],
      hasConnection: false,
      trouble: null,
      troubleSince: null,
      warnings: [],
      uninstalledAt: null,
      load: null,
      loadedAt: null,
      reconciledAt: null,
      reconciledRows: null,
      inbox: { waiting: 0, failed: 0 },
      dataRequests: [],
    });
  });

  test("has the times of the last load and the last reconciliation, and counts the inbox", async () => {
    const { store, shop, status } = await opened();
    await store.syncs.complete(shop.id, "full", START, 9, START + 1);
    await store.syncs.complete(shop.id, "changes", START, 7, START + 2);
    await receiveFailed(store, shop);
    await receive(store, shop, ["a", "b"]);
    expect(await status()).toMatchObject({
      loadedAt: START + 1,
      reconciledAt: START + 2,
      reconciledRows: 7,
      inbox: { waiting: 2, failed: 1 },
    });
  });

  test("says how far an unfinished load is, and whether some process does it", async () => {
    const { store, shop, status } = await opened();
    const loadOf = async () => (await status()).load;
    await store.connections.connect(shop.id, "token", TOKENS, GRANTED, START);
    expect(await loadOf()).toEqual({ isUnderWay: false, text: "it begins now", done: null, error: null });
    const now = Date.now();
    await store.syncs.claimLoad(shop.id, { holder: "a", now, until: now + 15_000 });
    const counts = { ...NO_COUNTS, subscriptions: 1_240 };
    const progress = { stage: "subscriptions", counts, done: 0.25, leftMs: 100_000 } as const;
    await store.syncs.keepLoad(shop.id, "a", now + 15_000, progress);
    const text = "1,240 of about 5,000 subscriptions, 2 minutes left";
    expect(await loadOf()).toEqual({ isUnderWay: true, text, done: 0.25, error: null });
    await store.syncs.releaseLoad(shop.id, "a", { ...progress, error: "HTTP 503" });
    expect(await loadOf()).toEqual({ isUnderWay: false, text, done: 0.25, error: "HTTP 503" });
    await store.syncs.complete(shop.id, "full", START, 9, START + 1);
    expect(await loadOf()).toBeNull();
  });

  describe("while another process claims the load", () => {
    /** Makes a connected shop, and the claims of this process and of a dead one. */
    async function claims() {
      const { store, shop, status } = await opened();
      const { syncs, connections } = store;
      await connections.connect(shop.id, "token", TOKENS, GRANTED, START);
      const holderNow = async () => (await syncs.loadState(shop.id, Date.now()))?.holder ?? "";
      let own = "";
      const load = async () => {
        own = await holderNow();
        return NO_COUNTS;
      };
      const clocks = { now: Date.now, clock: () => performance.now() };
      await loadExclusively({ syncs, synchronizer: { load }, ...clocks }, shop, { events: false });
      const dead = own.replace(` ${process.pid} `, ` ${await endedProcess()} `);
      const claim = async (holder: string) => {
        const now = Date.now();
        await syncs.claimLoad(shop.id, { holder, now, until: now + 60_000, deadHolder: await holderNow() });
        expect(await holderNow()).toBe(holder);
      };
      const isUnderWay = async () => (await status()).load?.isUnderWay;
      return { own, dead, claim, isUnderWay };
    }

    test("says that it is under way, unless that process is dead", async () => {
      const { own, dead, claim, isUnderWay } = await claims();
      await claim(own);
      expect(await isUnderWay()).toBe(true);
      await claim(dead);
      expect(await isUnderWay()).toBe(false);
    });

    test.skipIf(process.platform !== "linux")("takes no process of another container for dead", async () => {
      const { dead, claim, isUnderWay } = await claims();
      await claim(dead.replace(/pid:\[\d+\]/, "pid:[1]"));
      expect(await isUnderWay()).toBe(true);
    });
  });

  test("says in words whether the connection works", async () => {
    const { store, shop, status } = await opened();
    expect(connectionText(await status())).toBe("not connected");
    await store.connections.connect(shop.id, "token", TOKENS, GRANTED, START);
    expect(await status()).toMatchObject({ hasConnection: true, trouble: null });
    expect(connectionText(await status())).toBe("connected");
    await store.connections.setTrouble(shop.id, "the token is refused", START);
    expect(await status()).toMatchObject({ hasConnection: true, trouble: "the token is refused" });
    expect(connectionText(await status())).toBe(`the token is refused; since ${new Date(START).toISOString()}`);
  });
});

describe("changing a shop", () => {
  test("stores the given settings, and checks access only if triggers change", async () => {
    const { store, shop, status } = await opened("free");
    const { shop: changed, warnings } = await changeShop(
      store,
      { shop, change: { currency: "EUR", retryDays: [2] }, actor: MERCHANT },
      START,
    );
    expect([changed, warnings]).toEqual([{ ...shop, currency: "EUR" }, []]);
    expect(await status()).toMatchObject({ retryDays: [2] });
  });

  test("refuses triggers to a merchant whose plan has none; the operator gets a warning", async () => {
    const { store, shop, status } = await opened("free");
    const change = { triggers: ["subscription-created" as const] };
    await expect(changeShop(store, { shop, change, actor: MERCHANT }, START)).rejects.toMatchObject({
      code: "plan_required",
      message: NO_TRIGGERS,
    });
    expect((await status()).triggers).toEqual([]);
    expect((await changeShop(store, { shop, change, actor: OPERATOR }, START)).warnings).toEqual([NO_TRIGGERS]);
    expect((await status()).triggers).toEqual(["subscription-created"]);
  });

  test("checks triggers against the plan that is set with them", async () => {
    const { store, shop } = await opened("free");
    const change = { plan: "pro" as const, triggers: [] };
    expect((await changeShop(store, { shop, change, actor: OPERATOR }, START)).warnings).toEqual([]);
    const back = { shop: { ...shop, plan: "pro" as const }, change: { plan: "free" as const, triggers: [] } };
    expect((await changeShop(store, { ...back, actor: OPERATOR }, START)).warnings).toEqual([NO_TRIGGERS]);
  });
});

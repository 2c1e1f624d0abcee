import { describe, expect, test } from "bun:test";
import { type ConnectedShop, HOUR_MS, LINE, withContract, withMirroredContract } from "../support/connected.ts";
import type { Webhook } from "../support/platform/webhook.ts";
import { LAG_MS, row, settled } from "./replicas.ts";

const MINUTE_MS = 60_000;

/** A shop whose mirrored contract is in its second month. The replicas of the platform are late. */
async function late(lagsMs = [LAG_MS]) {
  const { all, contract } = await withMirroredContract({ lines: [LINE] });
  all.test.clock.ms += 32 * 24 * HOUR_MS;
  all.remote.replicaLagsMs = lagsMs;
  return { all, contract };
}

/** The webhooks about contracts that wait at the stand-in. */
function contractWebhooks({ remote }: ConnectedShop): Webhook[] {
  return remote.outgoing.filter(({ topic }) => topic.startsWith("subscription_contracts/"));
}

describe("the change of a webhook that a late replica does not show yet is read again", () => {
  test("for a new contract", async () => {
    const { all } = await late();
    const contract = all.createContract();
    all.remote.outgoing.splice(0, all.remote.outgoing.length, ...contractWebhooks(all));
    await all.deliverAll();
    expect(await row(all, "subscriptions", contract)).toBeUndefined();
    expect(await settled(all)).toBeLessThan(4);
    expect(await row(all, "subscriptions", contract)).toMatchObject({ status: "ACTIVE" });
    expect(all.logged("cannot")).toEqual([]);
  });

  test("for a status", async () => {
    const { all, contract } = await late();
    all.remote.pause(contract);
    await all.deliverAll();
    expect(await row(all, "subscriptions", contract)).toMatchObject({ status: "ACTIVE" });
    await settled(all);
    expect(await row(all, "subscriptions", contract)).toMatchObject({ status: "PAUSED" });
  });

  test.each([true, false])("for a charge, with the webhooks of its order: %p", async (withOrder) => {
    const { all, contract } = await late();
    const order = all.remote.succeedAttempt(all.remote.startAttempt(contract, 1));
    if (!withOrder)
      all.remote.outgoing
        .splice(0)
        .forEach((each) => void (each.topic.includes("attempts") && all.remote.outgoing.push(each)));
    await all.deliverAll();
    await settled(all);
    expect(await row(all, "orders", order)).toMatchObject({ cycleNumber: 1, status: "PAID" });
  });

  test("for a declined charge, with or without the attempt's id", async () => {
    const { all, contract } = await late();
    await all.queueAllEvents();
    const attempt = all.remote.startAttempt(contract, 1);
    all.test.clock.ms += MINUTE_MS;
    all.remote.failAttempt(attempt);
    await all.deliverAll();
    await settled(all);
    expect(await all.shop.all("orders")).toContainEqual(expect.objectContaining({ cycleNumber: 1, status: "FAILED" }));
    expect(await all.queuedTopics()).toEqual(["order.failed"]);
  });

  test("for a skip", async () => {
    const { all, contract } = await late();
    all.remote.skipCycle(contract, 1);
    await all.deliverAll();
    await settled(all);
    expect(await all.shop.all("orders")).toContainEqual(expect.objectContaining({ status: "SKIPPED" }));
    all.remote.unskipCycle(contract, 1);
    await all.deliverAll();
    await settled(all);
    expect(await all.shop.all("orders")).toContainEqual(expect.objectContaining({ cycleNumber: 1, status: "PENDING" }));
  });

  test("for an order of a known contract", async () => {
    const { all, contract } = await late();
    const order = all.remote.originOrder(contract) ?? "";
    all.remote.updateOrder(order, { lines: [{ title: "Tea", price: "3.00" }] });
    await all.deliverAll();
    await settled(all);
    expect(await row(all, "orders", order)).toMatchObject({ totalCents: 300 });
  });

  // The replicas answer in turn. One replica names an order, and another replica answers the query for this order.
  test.each([{ lagsMs: [0, LAG_MS, 0, 0, 0] }, { lagsMs: [0, 0, LAG_MS, LAG_MS, 0] }])(
    "for an order that another replica named: %j",
    async ({ lagsMs }) => {
      const { all, contract } = await late([...lagsMs]);
      const fresh = all.createContract();
      const order = all.remote.succeedAttempt(all.remote.startAttempt(contract, 1));
      const withoutOrders = all.remote.outgoing.filter(({ topic }) => !topic.startsWith("orders/"));
      all.remote.outgoing.splice(0, all.remote.outgoing.length, ...withoutOrders);
      await all.deliverAll();
      await settled(all);
      expect(await row(all, "orders", order)).toMatchObject({ cycleNumber: 1, status: "PAID" });
      expect(await row(all, "orders", all.remote.originOrder(fresh) ?? "")).toMatchObject({ status: "PAID" });
    },
  );

  test("however the replicas take turns", async () => {
    const { all, contract } = await late([0, LAG_MS, 5_000, 0]);
    all.remote.pause(contract);
    const order = all.remote.succeedAttempt(all.remote.startAttempt(contract, 1));
    await all.deliverAll();
    await settled(all);
    expect(await row(all, "subscriptions", contract)).toMatchObject({ status: "PAUSED" });
    expect(await row(all, "orders", order)).toMatchObject({ status: "PAID" });
  });

  test("but not for longer than some minutes", async () => {
    const { all, contract } = await withContract();
    const revision = "9999999999999999999";
    const body = JSON.stringify({ admin_graphql_api_id: contract, revision_id: revision });
    const [webhook] = contractWebhooks(all);
    if (webhook !== undefined) await all.send({ ...webhook, body });
    await all.processed();
    // While the program waits for this revision, it mirrors what the platform shows.
    expect(await row(all, "subscriptions", contract)).toMatchObject({ status: "ACTIVE" });
    const started = all.test.clock.ms;
    expect(await settled(all)).toBeLessThan(6);
    expect(all.test.clock.ms - started).toBeLessThan(30 * MINUTE_MS);
  });
});

test("an older reading counts for no later webhook", async () => {
  const { all, contract } = await late();
  all.remote.pause(contract);
  const [webhook] = all.remote.outgoing.splice(0);
  all.test.clock.ms += 10_000;
  // This webhook names no revision. So the program cannot know that its reading is too old.
  if (webhook !== undefined)
    await all.send({ ...webhook, id: "other", body: JSON.stringify({ admin_graphql_api_id: contract }) });
  await all.processed();
  expect(await row(all, "subscriptions", contract)).toMatchObject({ status: "ACTIVE" });
  all.test.clock.ms += MINUTE_MS;
  if (webhook !== undefined) await all.send(webhook);
  await all.processed();
  expect(await row(all, "subscriptions", contract)).toMatchObject({ status: "PAUSED" });
});

describe("a reconciliation", () => {
  test("reads what its list shows newer than what is stored, whenever the last reading began", async () => {
    const { all, contract } = await late();
    await all.load();
    const order = all.remote.originOrder(contract) ?? "";
    all.remote.updateOrder(order, { lines: [{ title: "Tea", price: "3.00" }] });
    all.remote.pause(contract);
    all.remote.outgoing.length = 0;
    all.test.clock.ms += 10_000;
    // This webhook about the order causes a reading after the change. The webhook does not name the revision of the
    // contract.
    const { topic, triggeredAt } = { topic: "orders/updated", triggeredAt: new Date(all.test.clock.ms).toISOString() };
    const body = JSON.stringify({ admin_graphql_api_id: order });
    await all.send({ shop: all.remote.domain, topic, body, id: "w", eventId: "w", triggeredAt });
    all.test.app.processor.wake();
    all.remote.replicaLagsMs = [60_000];
    await all.processed();
    expect(await row(all, "subscriptions", contract)).toMatchObject({ status: "ACTIVE" });
    all.remote.replicaLagsMs = [];
    all.test.clock.ms += HOUR_MS;
    await all.reconcile();
    expect(await row(all, "subscriptions", contract)).toMatchObject({ status: "PAUSED" });
    expect(await row(all, "orders", order)).toMatchObject({ totalCents: 300 });
    expect(await all.inbox()).toEqual([]);
    const begun = all.platform.requests.length;
    await all.reconcile();
    expect(all.operations(begun)).not.toContain("Nodes");
  });

  test("reads again what its reading does not show yet", async () => {
    const { all, contract } = await late([0]);
    await all.load();
    const order = all.remote.originOrder(contract) ?? "";
    all.remote.updateOrder(order, { lines: [{ title: "Tea", price: "3.00" }] });
    all.remote.pause(contract);
    all.remote.outgoing.length = 0;
    all.test.clock.ms += 10_000;
    all.platform.fault = ({ operation }) => {
      all.remote.replicaLagsMs = ["Nodes", "BillingCycles"].includes(operation) ? [LAG_MS] : [];
      return undefined;
    };
    expect(await all.reconcile()).toMatchObject({ skipped: 0 });
    expect(await row(all, "subscriptions", contract)).toMatchObject({ status: "ACTIVE" });
    expect((await all.inbox()).map(({ subject }) => subject)).toContain(contract);
    await settled(all);
    expect(await row(all, "subscriptions", contract)).toMatchObject({ status: "PAUSED" });
    expect(await row(all, "orders", order)).toMatchObject({ totalCents: 300 });
  });

  test.each(["failAttempt", "challenge"] as const)(
    "reads an attempt that the last reading did not show, if its webhook is lost: %s",
    async (end) => {
      const { all, contract } = await withMirroredContract();
      await all.load();
      all.remote.replicaLagsMs = [LAG_MS];
      all.remote[end](all.remote.startAttempt(contract, 1));
      all.remote.outgoing.length = 0;
      all.test.clock.ms += 5_000;
      all.remote.pause(contract);
      // The replica that answers about the contract is not late, but the one that answers about its cycles is.
      all.platform.fault = ({ operation }) => {
        all.remote.replicaLagsMs = operation === "BillingCycles" ? [LAG_MS] : [0];
        return undefined;
      };
      await all.deliverAll();
      expect(await row(all, "subscriptions", contract)).toMatchObject({ status: "PAUSED" });
      const ofAttempt = expect.objectContaining({ source: "recurring", cycleNumber: 1 });
      expect(await all.shop.all("orders")).not.toContainEqual(ofAttempt);
      all.platform.fault = () => undefined;
      all.test.clock.ms += MINUTE_MS;
      await all.reconcile();
      expect(await all.shop.all("orders")).toContainEqual(ofAttempt);
      const begun = all.platform.requests.length;
      await all.reconcile();
      expect(all.operations(begun)).not.toContain("Nodes");
    },
  );

  test("does not read an attempt again that was declined before the charge", async () => {
    const { all, contract } = await withMirroredContract();
    await all.load();
    all.test.clock.ms += HOUR_MS;
    await all.reconcile();
    for (const end of ["failAttempt", "succeedAttempt"] as const) {
      all.remote[end](all.remote.startAttempt(contract, 1));
      await all.deliverAll();
      all.test.clock.ms += MINUTE_MS;
    }
    const begun = all.platform.requests.length;
    await all.reconcile();
    expect(all.operations(begun)).not.toContain("BillingCycles");
    expect(await all.inbox()).toEqual([]);
  });
});

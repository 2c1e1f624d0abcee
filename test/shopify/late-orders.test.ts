import { describe, expect, test } from "bun:test";
import { connected, HOUR_MS, LINE } from "../support/connected.ts";
import type { Webhook } from "../support/platform/webhook.ts";
import { LAG_MS, row, settled } from "./replicas.ts";

describe("an order that late replicas show to one of its two contracts is read for the other too", () => {
  /** A shop with two contracts. While orders are hidden, a late replica answers all queries for orders. */
  async function shopOfTwo() {
    const all = await connected();
    const orders = { areHidden: false };
    all.platform.fault = ({ operation, variables }) => {
      const ids = (variables["ids"] ?? []) as string[];
      const isForOrders = operation === "Nodes" && ids.some((id) => id.includes("/Order/"));
      all.remote.replicaLagsMs = orders.areHidden && isForOrders ? [LAG_MS] : [0];
      return undefined;
    };
    const customer = all.remote.createCustomer({ email: "a@example.com" });
    const terms = { customer, lines: [LINE] };
    /** Sends the webhooks whose topic begins with `topics` and whose body contains `gid`. */
    const deliver = async (webhooks: readonly Webhook[], gid: string, topics: string) => {
      for (const webhook of webhooks)
        if (webhook.topic.startsWith(topics) && webhook.body.includes(gid)) await all.send(webhook);
      await all.processed();
    };
    const count = async (order: string) =>
      (await all.shop.all("orders")).filter(({ shopifyId }) => shopifyId === order).length;
    return { all, terms, deliver, count, orders };
  }

  test("if it is their checkout", async () => {
    const { all, terms, deliver, count, orders } = await shopOfTwo();
    all.remote.replicaLagsMs = [LAG_MS];
    const [first = "", second = ""] = all.remote.createContracts([terms, terms]);
    const order = all.remote.originOrder(first) ?? "";
    const webhooks = all.remote.outgoing.splice(0);
    await deliver(webhooks, first, "subscription_contracts/");
    orders.areHidden = true;
    await deliver(webhooks, second, "subscription_contracts/");
    expect(await row(all, "subscriptions", second)).toMatchObject({ status: "ACTIVE" });
    expect(await count(order)).toBe(1);
    orders.areHidden = false;
    await settled(all);
    expect(await count(order)).toBe(2);
  });

  test("if it is their checkout, and a load reads it", async () => {
    const { all, terms, count, orders } = await shopOfTwo();
    all.remote.replicaLagsMs = [LAG_MS];
    const [first = ""] = all.remote.createContracts([terms, terms]);
    const order = all.remote.originOrder(first) ?? "";
    all.remote.outgoing.length = 0;
    all.test.clock.ms += 1_000;
    orders.areHidden = true;
    expect(await all.load()).toMatchObject({ subscriptions: 2, skipped: 0 });
    expect(await count(order)).toBe(0);
    orders.areHidden = false;
    await settled(all);
    expect(await count(order)).toBe(2);
    expect(all.logged("cannot")).toEqual([]);
  });

  test("if it is their renewal", async () => {
    const { all, terms, deliver, count, orders } = await shopOfTwo();
    const [first, second] = [all.remote.createContract(terms), all.remote.createContract(terms)];
    await all.deliverAll();
    all.test.clock.ms += 32 * 24 * HOUR_MS;
    all.remote.replicaLagsMs = [LAG_MS];
    const order = all.remote.succeedAttempts([first, second].map((gid) => all.remote.startAttempt(gid, 1)));
    const webhooks = all.remote.outgoing.splice(0);
    await deliver(webhooks, first, "subscription_billing_attempts/");
    orders.areHidden = true;
    await deliver(webhooks, second, "subscription_billing_attempts/");
    expect(await count(order)).toBe(1);
    orders.areHidden = false;
    await settled(all);
    expect(await count(order)).toBe(2);
  });
});

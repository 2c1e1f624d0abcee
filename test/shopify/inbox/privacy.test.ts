import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { connected, DOMAIN, LINE } from "../../support/connected.ts";
import { webhook } from "./posting.ts";

describe("privacy", () => {
  test("a redaction removes e-mail and names from the mirror, queued bodies, rewards and the inbox", async () => {
    const all = await connected();
    const { store } = all.test.app;
    const { id } = all.shop.shop;
    const endpoint = { url: "https://hooks.example.com/", topics: ["loyalty.reward_earned" as const] };
    await store.webhooks.set(id, endpoint, all.test.clock.now());
    const customer = all.remote.createCustomer({ email: "ada@example.com", firstName: "Ada", lastName: "Lovelace" });
    await all.deliverAll();
    await all.shop.intake({
      type: "reward",
      id: "r1",
      source: "referral",
      customer,
      friend: "ada@example.com",
      name: "Ada",
      reward_cents: 500,
      code: "X1",
    });
    all.platform.fault = () => ({ status: 503 });
    all.remote.placeOrder({ customer });
    await all.deliverAll();
    expect((await all.inbox()).length).toBeGreaterThan(0);
    all.test.clock.ms += 60_000;
    all.remote.redactCustomer(customer);
    await all.deliverAll();
    expect(await all.shop.all("customers")).toMatchObject([
      { shopifyId: customer, email: null, firstName: null, lastName: null },
    ]);
    const held = JSON.stringify(await store.people.export(all.shop.shop, customer));
    expect(held).not.toContain("ada@example.com");
    expect(held).not.toMatch(/Ada|Lovelace/);
    expect(held).toContain('"reward_cents":500');
    expect(held).toContain('"code":"X1"');
    const [delivery] = await store.deliveries.list(id, { limit: 1 });
    expect(JSON.parse((await store.deliveries.show(id, delivery?.id ?? "")).body).data).toMatchObject({
      reward_cents: 500,
      friend: null,
      name: null,
    });
  });

  test("a redaction leaves nothing of the person in the file, and changes nobody whose number contains the same digits", async () => {
    const all = await connected();
    const names = { first_name: "Grace", last_name: "Hopper" };
    const seven = { admin_graphql_api_id: "gid://shopify/Customer/7", email: "seven@example.com", ...names };
    await all.send(webhook("customers/update", JSON.stringify(seven)));
    await all.processed();
    all.platform.fault = () => ({ status: 503 });
    const other = { admin_graphql_api_id: "gid://shopify/Order/1", email: "bob@example.com", customer: { id: 1712 } };
    await all.send(webhook("orders/create", JSON.stringify(other)));
    await all.processed();
    const redaction = { shop_domain: DOMAIN, customer: { id: 7, email: "seven@example.com" } };
    await all.send(webhook("customers/redact", JSON.stringify(redaction)));
    await all.processed();
    const [order] = await all.inbox();
    expect(JSON.stringify(await all.test.app.store.inbox.read(all.shop.shop.id, [order?.number ?? 0]))).toContain(
      "bob@example.com",
    );
    // A job of the program does this every minute.
    await all.test.app.store.checkpoint();
    const files = Buffer.concat(
      ["sds.db", "sds.db-wal"].map((name) => readFileSync(join(all.test.folder, "data", name))),
    );
    const texts = ["seven@example.com", "Hopper", "bob@example.com"];
    expect(texts.filter((text) => files.includes(text))).toEqual(["bob@example.com"]);
  });

  test("everything that is stored about a person can be exported", async () => {
    const all = await connected();
    const customer = all.remote.createCustomer({ email: "ada@example.com", firstName: "Ada", lastName: "Lovelace" });
    const other = all.remote.createCustomer({ email: "bob@example.com", firstName: "Bob", lastName: "Other" });
    const contract = all.createContract({ customer });
    all.remote.createContract({ customer: other, lines: [LINE] });
    await all.deliverAll();
    await all.shop.intake({
      type: "cancel_flow",
      id: "c1",
      subscription: contract,
      reason_id: "price",
      offer_type: null,
      accepted: false,
      saved: false,
    });
    const held = await all.test.app.store.people.export(all.shop.shop, customer);
    expect(held).toMatchObject({
      customer: { shopifyId: customer, email: "ada@example.com" },
      subscriptions: [{ shopifyId: contract }],
      orders: [{ cycleNumber: 0 }],
      cancelFlows: [{ id: "c1" }],
    });
    expect(JSON.stringify(held)).not.toContain("bob@example.com");
    expect(await all.test.app.store.people.export(all.shop.shop, "gid://shopify/Customer/1")).toBeUndefined();
  });

  test("a request for a person's data is logged with the customer's id, without e-mail", async () => {
    const all = await connected();
    const customer = all.remote.createCustomer({ email: "ada@example.com" });
    await all.deliverAll();
    all.remote.requestData(customer);
    await all.deliverAll();
    const requests = all.logged("data was requested");
    expect(requests).toHaveLength(1);
    expect(JSON.stringify(requests)).toContain(customer);
    expect(all.test.logged.join("")).not.toContain("ada@example.com");
  });
});

import { describe, expect, test } from "bun:test";
import { connectionText, shopStatus } from "../../../src/actions/shop.ts";
import { type ConnectedShop, connected, DOMAIN, HOUR_MS } from "../../support/connected.ts";
import { eventually } from "../../support/eventually.ts";
import { disconnect, post, send } from "./posting.ts";

describe("the plan", () => {
  const plan = async ({ test }: ConnectedShop) => (await test.app.store.shops.find(DOMAIN))?.plan;
  const subscription = (name: string, status: string) => ({ app_subscription: { name, status } });

  test("follows all app subscriptions of the shop, not only the webhook's", async () => {
    const all = await connected();
    all.remote.setAppSubscription({ name: "Free", status: "ACTIVE" });
    all.remote.setAppSubscription({ name: "API and webhooks", status: "ACTIVE" });
    await all.deliverAll();
    expect(await plan(all)).toBe("free+addon");
    all.remote.setAppSubscription({ name: "API and webhooks", status: "CANCELLED" });
    await all.deliverAll();
    expect(await plan(all)).toBe("free");
    expect(all.logged("the shop's plan changed")).toHaveLength(2);
  });

  test("follows the webhook if the shop is not connected", async () => {
    const all = await connected();
    await disconnect(all);
    await send(all, "app_subscriptions/update", subscription("Free", "ACTIVE"));
    expect(await plan(all)).toBe("free");
    // The end of an app subscription ends only the plan of the same name.
    await send(all, "app_subscriptions/update", subscription("Pro", "ACTIVE"));
    await send(all, "app_subscriptions/update", subscription("Free", "CANCELLED"));
    expect(await plan(all)).toBe("pro");
    await send(all, "app_subscriptions/update", subscription("Pro", "CANCELLED"));
    expect(await plan(all)).toBe("free");
  });

  test("stays as it is while the shop has not paid its bill", async () => {
    const all = await connected();
    all.remote.setAppSubscription({ name: "Free", status: "EXPIRED" });
    all.remote.setAppSubscription({ name: "Pro", status: "FROZEN" });
    await all.deliverAll();
    expect(await plan(all)).toBe("pro");
  });

  test("stays as it is if sds does not know the name, with a log line", async () => {
    const all = await connected();
    all.remote.setAppSubscription({ name: `Enterprise ${"x".repeat(200)}`, status: "ACTIVE" });
    await all.deliverAll();
    expect(await plan(all)).toBe("pro");
    const [line] = all.logged("a plan that sds does not know");
    expect(line).toMatchObject({ level: "warn", plan: `enterprise-${"x".repeat(89)}` });
    all.remote.setAppSubscription({ name: "Unknown too", status: "PENDING" });
    await all.deliverAll();
    expect(all.logged("a plan that sds does not know")).toHaveLength(1);
  });

  test("is not guessed while the platform is down", async () => {
    const all = await connected();
    all.platform.fault = () => ({ status: 503 });
    all.remote.setAppSubscription({ name: "Free", status: "ACTIVE" });
    await all.deliverAll();
    expect(await plan(all)).toBe("pro");
    expect(await all.inbox()).toMatchObject([{ subject: "installation", status: "waiting", attempts: 1 }]);
    all.platform.fault = () => undefined;
    await all.processedAfter(HOUR_MS);
    expect(await plan(all)).toBe("free");
  });
});

describe("a change of the granted scopes", () => {
  const all = ["read_own_subscription_contracts", "read_customers", "read_orders"];

  test("is stored and logged", async () => {
    const shop = await connected();
    shop.remote.setScopes([...all, "read_all_orders"]);
    await shop.deliverAll();
    expect((await shop.test.app.store.connections.find(shop.shop.shop.id))?.scopes).toEqual([
      ...all,
      "read_all_orders",
    ]);
    const [line] = shop.logged("the scopes that the shop grants changed");
    expect(line).toMatchObject({ added: "read_all_orders", removed: "read_products" });
    shop.remote.setScopes([...all, "read_all_orders"]);
    await shop.deliverAll();
    expect(shop.logged("the scopes that the shop grants changed")).toHaveLength(1);
  });

  test("that revokes a needed scope is logged as an error, and shown in the shop's status", async () => {
    const shop = await connected();
    shop.remote.setScopes(["read_customers"]);
    await shop.deliverAll();
    expect(shop.logged("took back scopes that sds needs")).toHaveLength(1);
    const status = await shopStatus(shop.test.app.store, shop.shop.shop, Date.now());
    expect(connectionText(status)).toBe("the shop does not grant read_own_subscription_contracts, read_orders");
  });
});

describe("a removal of the shop", () => {
  test("is carried out and logged", async () => {
    const all = await connected();
    // The webhook about the uninstall is lost.
    all.remote.uninstall();
    await send(all, "shop/redact", { shop_domain: DOMAIN });
    expect(await all.test.app.store.shops.list()).toEqual([]);
    expect(all.logged("the shop is being removed, because the platform asked for it")).toHaveLength(1);
    await eventually(async () => (await all.test.app.store.shops.removing()).length === 0);
    await eventually(() => all.logged("a shop was removed with everything that was stored about it").length === 1);
  });

  test("is not carried out if the shop has the app installed again, with a log line", async () => {
    const all = await connected();
    for (let n = 0; n < 2; n += 1) {
      await send(all, "shop/redact", { shop_domain: DOMAIN });
      expect(await all.test.app.store.shops.list()).toHaveLength(1);
      expect(all.logged("has the app installed again; the shop stays")).toHaveLength(n + 1);
      expect(await all.inbox()).toEqual([]);
    }
  });

  test.each([503, 402, 423, 430, 301])(
    "waits while the platform answers HTTP %d, however long, and is then carried out",
    async (status) => {
      const all = await connected();
      all.platform.fault = () => ({ status });
      await send(all, "shop/redact", { shop_domain: DOMAIN });
      for (let n = 1; n <= 15; n += 1) {
        expect(await all.inbox()).toMatchObject([{ subject: "removal", status: "waiting", attempts: n }]);
        await all.processedAfter(8 * HOUR_MS);
      }
      expect(await all.test.app.store.shops.list()).toHaveLength(1);
      all.remote.uninstall();
      all.platform.fault = () => undefined;
      all.test.clock.ms += 8 * HOUR_MS;
      all.test.app.processor.wake();
      await eventually(async () => (await all.test.app.store.shops.list()).length === 0);
    },
  );

  test("of a shop that is not connected is carried out while the platform of another shop does not answer", async () => {
    const all = await connected();
    const beta = "beta.myshopify.com";
    await all.test.addShop(beta);
    for (let n = 0; n < 20; n += 1) all.createContract();
    const { promise: until, resolve: answer } = Promise.withResolvers<void>();
    all.platform.fault = () => ({ until });
    for (const webhook of all.remote.outgoing.splice(0)) await all.send(webhook);
    await post(all, "shop/redact", { shop_domain: beta }, { shop: beta });
    await eventually(async () => (await all.test.app.store.shops.list()).length === 1);
    answer();
    await all.processed();
  });

  test("is not carried out if the platform accepts the token and only refuses the query", async () => {
    const all = await connected();
    const denied = { message: "Access denied", extensions: { code: "ACCESS_DENIED" } };
    all.platform.fault = () => ({ status: 200, body: JSON.stringify({ data: null, errors: [denied] }) });
    await send(all, "shop/redact", { shop_domain: DOMAIN });
    expect(await all.test.app.store.shops.list()).toHaveLength(1);
    expect(await all.inbox()).toEqual([]);
  });

  test("is carried out if the platform no longer knows the shop", async () => {
    const all = await connected();
    all.platform.fault = () => ({ status: 404 });
    await send(all, "shop/redact", { shop_domain: DOMAIN });
    expect(await all.test.app.store.shops.list()).toEqual([]);
  });

  test("is refused and logged if it names another shop", async () => {
    const all = await connected();
    await send(all, "shop/redact", { shop_domain: "beta.myshopify.com" });
    expect(await all.test.app.store.shops.list()).toHaveLength(1);
    expect(all.logged("names one shop in its body and another in its header")).toHaveLength(1);
    expect(await all.inbox()).toEqual([]);
  });
});

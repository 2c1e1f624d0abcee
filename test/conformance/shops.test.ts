import { describe, expect, test } from "bun:test";
import { START } from "../support/app.ts";
import { engines, storeWithShop, storeWithTwoShops } from "./engines.ts";
import { addShop, failures, removeShop } from "./fixtures.ts";

const DEFAULTS = { planFixed: false, retryDays: [1, 3, 5], creditTitle: "Loyalty credit", triggers: [] };
const removed = { name: "SdsError", code: "not_found" };

describe.each(engines())("$name: shops", (engine) => {
  test("are found by domain and by id, and listed by domain", async () => {
    const { store } = await engine.open();
    const beta = await store.shops.add({ domain: "beta.example.com", plan: "free", currency: "EUR" }, START + 1);
    const alpha = await store.shops.add(
      { domain: "alpha.example.com", plan: "pro", currency: "USD", planFixed: true },
      START,
    );
    expect(beta).toEqual({
      id: beta.id,
      domain: "beta.example.com",
      plan: "free",
      currency: "EUR",
      createdAt: START + 1,
    });
    expect(await store.shops.list()).toEqual([alpha, beta]);
    expect(await store.shops.find("beta.example.com")).toEqual(beta);
    expect(await store.shops.byId(alpha.id)).toEqual(alpha);
    expect(await store.shops.find("gamma.example.com")).toBeUndefined();
    expect(await store.shops.byId(beta.id + 100)).toBeUndefined();
    expect(await store.shops.settings(alpha.id)).toEqual({ ...DEFAULTS, planFixed: true });
    expect(await store.shops.settings(beta.id)).toEqual(DEFAULTS);
  });

  test("have a domain each", async () => {
    const { store, shop } = await storeWithShop(engine);
    const again = store.shops.add({ domain: shop.domain, plan: "free", currency: "EUR" }, START);
    expect((await failures([again]))[0]).toMatchObject({
      code: "conflict",
      message: "the shop alpha.myshopify.com exists already",
    });
    expect(await store.shops.list()).toEqual([shop]);
  });

  test("keep the settings that a change does not name", async () => {
    const { store, shop, other } = await storeWithTwoShops(engine);
    expect(await store.shops.set(shop.domain, { plan: "free+addon", retryDays: [2, 4] })).toEqual({
      ...shop,
      plan: "free+addon",
    });
    expect(await store.shops.set(shop.domain, { currency: "EUR", planFixed: true })).toEqual({
      ...shop,
      plan: "free+addon",
      currency: "EUR",
    });
    await store.shops.set(shop.domain, { creditTitle: "Crédit ☕", triggers: ["subscription-created"], retryDays: [] });
    expect(await store.shops.settings(shop.id)).toEqual({
      planFixed: true,
      retryDays: [],
      creditTitle: "Crédit ☕",
      triggers: ["subscription-created"],
    });
    expect(await store.shops.find(other.domain)).toEqual(other);
    expect(await store.shops.settings(other.id)).toEqual(DEFAULTS);
  });

  test("that were removed have neither settings nor counts", async () => {
    const { store } = await engine.open();
    const { id, domain } = await addShop(store);
    await removeShop(store, domain);
    const refused = await failures([
      store.shops.settings(id),
      store.shops.rowCounts(id),
      store.shops.set(domain, { plan: "free" }),
    ]);
    expect(refused).toMatchObject([
      { ...removed },
      { ...removed },
      { ...removed, message: `there is no shop ${domain}` },
    ]);
  });
});

describe.each(engines())("$name: the plan of the platform's app subscription", (engine) => {
  test("is set, and the result says whether it changed", async () => {
    const { store, shop, other } = await storeWithTwoShops(engine);
    expect(await store.shops.followPlan(shop.id, "free")).toBe(true);
    expect(await store.shops.followPlan(shop.id, "free")).toBe(false);
    expect((await store.shops.byId(shop.id))?.plan).toBe("free");
    expect((await store.shops.byId(other.id))?.plan).toBe("pro");
    expect(await store.shops.followPlan(other.id + 100, "free")).toBe(false);
  });

  test("does not replace the operator's plan", async () => {
    const { store, shop } = await storeWithShop(engine);
    await store.shops.set(shop.domain, { planFixed: true });
    expect(await store.shops.followPlan(shop.id, "free")).toBe(false);
    expect((await store.shops.byId(shop.id))?.plan).toBe("pro");
  });
});

describe.each(engines())("$name: the intake secret", (engine) => {
  test("differs for each shop, is the same in every process, and is sealed in the database", async () => {
    const { store, reopen, rows, shop: alpha, other: beta } = await storeWithTwoShops(engine);
    const secretOf = async (domain: string, of = store) => (await of.shops.intakeSecret(domain))?.secret ?? "";
    expect(await store.shops.intakeSecret(alpha.domain)).toEqual({
      shop: alpha,
      secret: expect.stringMatching(/^intake_[A-Za-z0-9+/]{43}=$/),
    });
    expect(await secretOf(beta.domain)).not.toBe(await secretOf(alpha.domain));
    expect(await secretOf(alpha.domain, await reopen())).toBe(await secretOf(alpha.domain));
    expect(await store.shops.intakeSecret("gamma.example.com")).toBeUndefined();
    const sealed = (await rows("shops")).map(({ intake_secret }) =>
      Buffer.from(String(intake_secret), "hex").toString("latin1"),
    );
    expect(sealed.filter((text) => text.includes("intake_"))).toEqual([]);
    expect(new Set(sealed).size).toBe(2);
  });
});

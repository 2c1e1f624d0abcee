import { describe, expect, test } from "bun:test";
import { hashKey } from "../../src/domain/key.ts";
import type { Shop } from "../../src/domain/shop.ts";
import { START } from "../support/app.ts";
import { deadDelivery } from "../support/dead-delivery.ts";
import { customer, gid, order, subscription } from "../support/records.ts";
import { engines, storeWithShop, storeWithTwoShops } from "./engines.ts";
import { addShop, apiKey, commit, failures, receipt, removeShop, TOKENS } from "./fixtures.ts";

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
      firstDomain: "beta.example.com",
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

  test("are found by the id of a key or a delivery, and by a fingerprint that one shop has", async () => {
    const { store, shop, other } = await storeWithTwoShops(engine);
    const add = (owner: Shop, label: string, fingerprint: string) =>
      store.keys.add(owner.id, { ...apiKey(label), fingerprint }, hashKey(label));
    await add(shop, "a", "cad_pk_shared");
    await add(other, "b", "cad_pk_shared");
    await add(other, "c", "cad_pk_alone");
    const id = await deadDelivery(store, shop);
    expect(await store.shops.owning(apiKey("b").id)).toEqual(other);
    expect(await store.shops.owning(id)).toEqual(shop);
    expect(await store.shops.owning("cad_pk_alone")).toEqual(other);
    expect(await store.shops.owning("cad_pk_shared")).toBeUndefined();
    expect(await store.shops.owning("key_unknown")).toBeUndefined();
  });

  test("that need somebody most come first: refused ones, then dead deliveries, then waiting work", async () => {
    const { store, shop, other } = await storeWithTwoShops(engine);
    const [waiting, refused] = [await addShop(store, "waiting"), await addShop(store, "refused")];
    await deadDelivery(store, other);
    await store.inbox.receive([receipt(waiting, "w")], START);
    await store.connections.connect(refused.id, "token", TOKENS, [], START);
    await store.connections.setTrouble(refused.id, "401", START);
    expect(await store.shops.neediest(9)).toEqual([refused, other, waiting, shop]);
    expect(await store.shops.neediest(1)).toEqual([refused]);
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

describe.each(engines())("$name: a renamed shop", (engine) => {
  const NEW = "renamed.myshopify.com";

  test("keeps everything else, and is found by its first domain too", async () => {
    const { store, shop, other } = await storeWithTwoShops(engine);
    const renamed = await store.shops.rename(shop.domain, NEW);
    expect(renamed).toEqual({ ...shop, domain: NEW, firstDomain: shop.domain });
    for (const domain of [NEW, shop.domain]) expect(await store.shops.find(domain)).toEqual(renamed);
    expect(await store.shops.find(other.domain)).toEqual(other);
    const again = await store.shops.rename(NEW, "twice.myshopify.com");
    expect(again).toEqual({ ...shop, domain: "twice.myshopify.com", firstDomain: shop.domain });
    expect(await store.shops.find(NEW)).toBeUndefined();
    expect(await store.shops.rename("twice.myshopify.com", shop.domain)).toEqual(shop);
  });

  test("keeps its intake secret and its style under both domains", async () => {
    const { store, shop } = await storeWithTwoShops(engine);
    const secret = (await store.shops.intakeSecret(shop.domain))?.secret;
    await store.styles.set(shop.id, { source: "p{}", hash: "a" });
    await store.shops.rename(shop.domain, NEW);
    for (const domain of [NEW, shop.domain]) {
      expect((await store.shops.intakeSecret(domain))?.secret).toBe(secret ?? "");
      expect(await store.styles.shopOf(domain)).toMatchObject({ shopId: shop.id });
    }
  });

  test("keeps the ids of its rows", async () => {
    const { store, rows, shop } = await storeWithTwoShops(engine);
    await commit(store, shop, [customer(1), subscription(1), order(1, 1)]);
    const ids = async (table: "customers" | "subscriptions" | "orders") => (await rows(table)).map(({ id }) => id);
    const before = [await ids("customers"), await ids("subscriptions"), await ids("orders")];
    const renamed = await store.shops.rename(shop.domain, NEW);
    await commit(store, renamed, [
      customer(1, { firstName: "New" }),
      subscription(1),
      order(1, 1, { attemptCount: 9 }),
    ]);
    expect([await ids("customers"), await ids("subscriptions"), await ids("orders")]).toEqual(before);
    expect(await store.mirror.contractOf(renamed, gid.contract(1))).toBeDefined();
    expect((await store.mirror.ordersOf(renamed, gid.contract(1))).size).toBe(1);
    const exported = await store.people.export(renamed, gid.customer(1));
    expect(JSON.stringify(exported)).toContain("New");
  });

  test("is refused for a domain that another shop has, or had first, and for an unknown shop", async () => {
    const { store, shop, other } = await storeWithTwoShops(engine);
    const rename = (from: string, to: string) => failures([store.shops.rename(from, to)]).then(([failure]) => failure);
    expect(await rename(shop.domain, other.domain)).toMatchObject({ code: "conflict" });
    expect(await rename("unknown.example.com", NEW)).toMatchObject({ code: "not_found" });
    await store.shops.rename(shop.domain, NEW);
    const message = `the shop ${shop.domain} is now ${NEW}`;
    expect(await rename(other.domain, shop.domain)).toMatchObject({ code: "conflict", message });
    expect(await rename(shop.domain, "third.example.com")).toMatchObject({ code: "not_found" });
    const add = store.shops.add({ domain: shop.domain, plan: "pro", currency: "USD" }, START);
    expect((await failures([add]))[0]).toMatchObject({ code: "conflict", message });
    await store.shops.beginRemoval(other.domain, START);
    expect(await rename(NEW, other.domain)).toMatchObject({ code: "conflict" });
    expect(await rename(other.domain, "third.example.com")).toMatchObject({ code: "not_found" });
  });

  test("ends the warning of its new domain, which found it before", async () => {
    const { store, shop } = await storeWithTwoShops(engine);
    await store.connections.connect(shop.id, "token", TOKENS, [], START);
    await store.connections.warn(shop.id, `domain ${NEW}`, "renamed", START);
    await store.connections.warn(shop.id, "answers", "another version", START);
    expect(await store.connections.shopMovedTo(NEW)).toBe(shop.id);
    expect(await store.connections.shopMovedTo(shop.domain)).toBeUndefined();
    await store.shops.rename(shop.domain, NEW);
    expect(await store.connections.shopMovedTo(NEW)).toBeUndefined();
    expect(await store.connections.warnings(shop.id)).toMatchObject([{ kind: "answers" }]);
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

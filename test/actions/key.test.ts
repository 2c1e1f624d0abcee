import { describe, expect, test } from "bun:test";
import { noAccess } from "../../src/actions/access.ts";
import { createKey } from "../../src/actions/key.ts";
import { hashKey } from "../../src/domain/key.ts";
import { MERCHANT, OPERATOR } from "../support/actors.ts";
import { randomBytes, START, testApp } from "../support/app.ts";

async function opened(plan: "pro" | "free" = "pro") {
  const { app } = await testApp();
  const { store } = app;
  const shop = await store.shops.add({ domain: "alpha.myshopify.com", plan, currency: "USD" }, START);
  const dependencies = { store, random: randomBytes };
  const importKey = (legacyKey: string) =>
    createKey(dependencies, { shop, label: "Old", actor: OPERATOR, legacyKey }, START);
  return { store, shop, dependencies, importKey };
}

const LEGACY = `cad_pk_${"ab".repeat(24)}`;
const NO_ACCESS = noAccess("API access");

describe("a new key", () => {
  test("opens the shop, has a trimmed label, and is stored only as a hash", async () => {
    const { store, shop, dependencies } = await opened();
    const wanted = { shop, label: " Warehouse ", actor: { ...MERCHANT, who: "staff 42" } } as const;
    const { entry, plaintext, warnings } = await createKey(dependencies, wanted, START);
    expect(plaintext).toMatch(/^cad_pk_[0-9a-f]{48}$/);
    expect(entry).toEqual({
      id: expect.stringMatching(/^key_[a-z2-7]{24}$/),
      label: "Warehouse",
      fingerprint: plaintext.slice(0, 15),
      createdAt: START,
      lastUsedAt: null,
      legacy: false,
      createdBy: "staff 42",
    });
    expect(warnings).toEqual([]);
    expect(await store.keys.list(shop.id)).toEqual([entry]);
    expect(await store.keys.find(hashKey(plaintext))).toMatchObject({ keyId: entry.id, shopId: shop.id });
  });

  test("with the label of another key is made with a warning", async () => {
    const { shop, dependencies } = await opened();
    const { entry } = await createKey(dependencies, { shop, label: "Warehouse", actor: OPERATOR }, START);
    const second = await createKey(dependencies, { shop, label: " Warehouse", actor: OPERATOR }, START);
    expect(second.warnings).toEqual([`the key ${entry.fingerprint}… has the label Warehouse too`]);
  });

  test("is refused to a merchant with a hundred keys; the operator gets it, and revoked keys do not count", async () => {
    const { store, shop, dependencies } = await opened();
    const make = (n: number, actor = MERCHANT) => createKey(dependencies, { shop, label: `Key ${n}`, actor }, START);
    for (let n = 1; n <= 100; n += 1) await make(n);
    const message = "a shop can have 100 keys: revoke one that no system uses";
    await expect(make(101)).rejects.toMatchObject({ code: "invalid", message });
    const { entry } = await make(101, OPERATOR);
    const other = (await store.keys.list(shop.id)).find(({ id }) => id !== entry.id);
    for (const key of [entry, other]) await store.keys.revoke(shop.id, key?.id ?? "", START);
    expect((await make(102)).entry.label).toBe("Key 102");
  });

  test("is refused for its label, and nothing is stored", async () => {
    const { store, shop, dependencies } = await opened();
    const message = "the label must have 1 to 200 characters and no control or invisible characters";
    const refused = createKey(dependencies, { shop, label: " ", actor: OPERATOR }, START);
    await expect(refused).rejects.toMatchObject({ code: "invalid", message });
    expect(await store.keys.list(shop.id)).toEqual([]);
  });

  test("is refused to a merchant whose plan has no API access; the operator gets it with a warning", async () => {
    const { store, shop, dependencies } = await opened("free");
    const refused = createKey(dependencies, { shop, label: "A", actor: MERCHANT }, START);
    await expect(refused).rejects.toMatchObject({ code: "plan_required", message: NO_ACCESS });
    expect(await store.keys.list(shop.id)).toEqual([]);
    const { entry, warnings } = await createKey(dependencies, { shop, label: "A", actor: OPERATOR }, START);
    expect(warnings).toEqual([NO_ACCESS]);
    expect(await store.keys.list(shop.id)).toEqual([entry]);
  });
});

describe("a legacy key", () => {
  test("opens the shop and is marked", async () => {
    const { store, shop, importKey } = await opened();
    const { entry, warnings } = await importKey(LEGACY);
    expect(entry).toMatchObject({ label: "Old", fingerprint: "cad_pk_abababab", legacy: true });
    expect(warnings).toEqual([]);
    expect(await store.keys.find(hashKey(LEGACY))).toMatchObject({ keyId: entry.id, shopId: shop.id });
  });

  test("is not stored twice, and does not come back after it was revoked", async () => {
    const { store, shop, importKey } = await opened();
    const { entry } = await importKey(LEGACY);
    await expect(importKey(LEGACY)).rejects.toMatchObject({ code: "conflict" });
    await store.keys.revoke(shop.id, entry.id, START);
    await expect(importKey(LEGACY)).rejects.toMatchObject({ code: "conflict" });
  });
});

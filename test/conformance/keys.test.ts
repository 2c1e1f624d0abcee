import { describe, expect, test } from "bun:test";
import { hashKey } from "../../src/domain/key.ts";
import { START } from "../support/app.ts";
import { engines, storeInTwoProcesses, storeWithShop, storeWithTwoShops } from "./engines.ts";
import { apiKey, expectConflict, failures, removeShop } from "./fixtures.ts";

describe.each(engines())("$name: API keys", (engine) => {
  test("are listed for each shop, oldest first, and keys of the same moment by id", async () => {
    const { store, shop: alpha, other: beta } = await storeWithTwoShops(engine);
    const [a, b, c] = [
      apiKey("a", { createdAt: START + 1 }),
      apiKey("b", { legacy: true, createdBy: "staff 42" }),
      apiKey("c"),
    ];
    for (const each of [a, c, b]) await store.keys.add(alpha.id, each, hashKey(each.id));
    expect(await store.keys.list(alpha.id)).toEqual([b, c, a]);
    expect(await store.keys.list(beta.id)).toEqual([]);
  });

  test("are found by their hash, with the plan that the shop has now", async () => {
    const { store, shop } = await storeWithShop(engine);
    await store.keys.add(shop.id, apiKey("a"), hashKey("secret a"));
    const { id: shopId, firstDomain } = shop;
    const owner = {
      keyId: "key_a",
      shopId,
      domain: shop.domain,
      firstDomain,
      changeCount: 0,
      branch: "",
      lastUsedAt: null,
    };
    expect(await store.keys.find(hashKey("secret a"))).toEqual({ ...owner, plan: "pro" });
    await store.shops.set(shop.domain, { plan: "free" });
    expect(await store.keys.find(hashKey("secret a"))).toEqual({ ...owner, plan: "free" });
    expect(await store.keys.find(hashKey("secret b"))).toBeUndefined();
  });

  test("are stored only as a hash", async () => {
    const { store, rows, shop } = await storeWithShop(engine);
    await store.keys.add(shop.id, apiKey("a"), hashKey("secret a"));
    expect(await rows("api_keys")).toEqual([
      {
        id: "key_a",
        shop_id: shop.id,
        label: "Key a",
        hash: hashKey("secret a").toHex(),
        fingerprint: "cad_pk_a",
        legacy: false,
        created_at: START,
        last_used_at: null,
        revoked_at: null,
        created_by: null,
      },
    ]);
  });

  test("cannot be stored twice, in any shop, and not again after they were revoked", async () => {
    const { store, shop: alpha, other: beta } = await storeWithTwoShops(engine);
    await store.keys.add(alpha.id, apiKey("a"), hashKey("secret a"));
    await store.keys.revoke(alpha.id, "key_a", START);
    const again = [
      store.keys.add(alpha.id, apiKey("b"), hashKey("secret a")),
      store.keys.add(beta.id, apiKey("c"), hashKey("secret a")),
    ];
    const message = "this key was stored before, and may have been revoked since: create a new one";
    for (const failure of await failures(again))
      expect(failure).toMatchObject({ name: "SdsError", code: "conflict", message });
    expect(await store.keys.list(beta.id)).toEqual([]);
  });

  test("cannot be stored for a shop that was removed", async () => {
    const { store, shop } = await storeWithShop(engine);
    await removeShop(store, shop.domain);
    await expectConflict(store.keys.add(shop.id, apiKey("a"), hashKey("secret a")));
  });
});

describe.each(engines())("$name: revoking an API key", (engine) => {
  test("by id or fingerprint ends it at once, for every process", async () => {
    const { store, second: other, rows, shop } = await storeInTwoProcesses(engine);
    for (const each of ["a", "b", "c"]) await store.keys.add(shop.id, apiKey(each), hashKey(each));
    expect(await store.keys.revoke(shop.id, "key_a", START + 5)).toEqual({ ...apiKey("a"), revokedAt: START + 5 });
    expect(await store.keys.revoke(shop.id, "cad_pk_b", START + 6)).toEqual({ ...apiKey("b"), revokedAt: START + 6 });
    for (const each of ["a", "b"]) expect(await other.keys.find(hashKey(each))).toBeUndefined();
    expect((await other.keys.list(shop.id)).map(({ id }) => id)).toEqual(["key_c"]);
    expect((await rows("api_keys")).map(({ revoked_at }) => revoked_at)).toEqual([START + 5, START + 6, null]);
  });

  test("that is unknown, already revoked or another shop's is refused", async () => {
    const { store, shop: alpha, other: beta } = await storeWithTwoShops(engine);
    await store.keys.add(alpha.id, apiKey("a"), hashKey("a"));
    await store.keys.add(beta.id, apiKey("b"), hashKey("b"));
    await store.keys.revoke(alpha.id, "key_a", START);
    const names = ["key_a", "cad_pk_a", "key_b", "cad_pk_b", "key_c"];
    const refused = await failures(names.map((name) => store.keys.revoke(alpha.id, name, START + 1)));
    const messages = names.map((name) => `there is no key ${name}, or it is revoked already`);
    expect(refused).toMatchObject(messages.map((message) => ({ code: "not_found", message })));
    expect(await store.keys.list(beta.id)).toHaveLength(1);
  });

  test("by a fingerprint that several keys share is refused with their ids, and works by id", async () => {
    const { store, shop } = await storeWithShop(engine);
    for (const each of ["a", "b"])
      await store.keys.add(shop.id, apiKey(each, { fingerprint: "cad_pk_same" }), hashKey(each));
    const message = expect.stringMatching(
      /^several keys begin with cad_pk_same: name one by its id \(key_[ab], key_[ab]\)$/,
    );
    expect((await failures([store.keys.revoke(shop.id, "cad_pk_same", START)]))[0]).toMatchObject({
      code: "invalid",
      message,
    });
    expect(await store.keys.list(shop.id)).toHaveLength(2);
    await store.keys.revoke(shop.id, "key_b", START);
    expect(await store.keys.revoke(shop.id, "cad_pk_same", START)).toMatchObject({ id: "key_a" });
  });
});

test.each(engines())("$name: the last use of a key is the latest, in whatever order uses are noted", async (engine) => {
  const { store, shop } = await storeWithShop(engine);
  for (const each of ["a", "b"]) await store.keys.add(shop.id, apiKey(each), hashKey(each));
  const lastUses = async () => (await store.keys.list(shop.id)).map(({ lastUsedAt }) => lastUsedAt);
  await store.keys.touch(new Map([["key_a", START + 5]]));
  expect(await lastUses()).toEqual([START + 5, null]);
  await store.keys.touch(
    new Map([
      ["key_a", START + 4],
      ["key_b", START + 6],
      ["key_unknown", START],
    ]),
  );
  expect(await lastUses()).toEqual([START + 5, START + 6]);
  expect(await store.keys.find(hashKey("b"))).toMatchObject({ lastUsedAt: START + 6 });
  await store.keys.touch(new Map());
});

import { describe, expect, test } from "bun:test";
import { TOPIC_NAMES } from "../../src/domain/events/event.ts";
import { START } from "../support/app.ts";
import { TABLE_NAMES } from "../support/tables.ts";
import { engines, storeWithShop, storeWithTwoShops } from "./engines.ts";
import { addShop, failures, HOUR, removeShop, TOKENS, URL } from "./fixtures.ts";

const SECRET = /^whsec_[A-Za-z0-9+/]{43}=$/;

describe.each(engines())("$name: webhook settings", (engine) => {
  test("are empty at first, and a change keeps settings that it does not name", async () => {
    const { store, shop, other } = await storeWithTwoShops(engine);
    expect(await store.webhooks.settings(shop.id)).toEqual({ url: null, topics: [] });
    expect(await store.webhooks.set(shop.id, { topics: TOPIC_NAMES.slice(0, 2) }, START)).toEqual({
      url: null,
      topics: TOPIC_NAMES.slice(0, 2),
    });
    expect(await store.webhooks.set(shop.id, { url: URL }, START)).toEqual({
      url: URL,
      topics: TOPIC_NAMES.slice(0, 2),
    });
    expect(await store.webhooks.set(shop.id, { topics: [] }, START)).toEqual({ url: URL, topics: [] });
    expect(await store.webhooks.settings(shop.id)).toEqual({ url: URL, topics: [] });
    expect(await store.webhooks.settings(other.id)).toEqual({ url: null, topics: [] });
  });

  test("that two processes change at the same time keep both changes", async () => {
    const { store, reopen } = await engine.open();
    const other = await reopen();
    const { id } = await addShop(store);
    const topics = TOPIC_NAMES.slice(0, 3);
    await Promise.all([store.webhooks.set(id, { url: URL }, START), other.webhooks.set(id, { topics }, START)]);
    expect(await store.webhooks.settings(id)).toEqual({ url: URL, topics });
  });

  test("that are cleared leave the secrets, which older deliveries need", async () => {
    const { store, shop, other } = await storeWithTwoShops(engine);
    for (const { id } of [shop, other]) await store.webhooks.set(id, { url: URL, topics: TOPIC_NAMES }, START);
    const secret = await store.webhooks.secret(shop.id, START);
    await store.webhooks.clear(shop.id);
    expect(await store.webhooks.settings(shop.id)).toEqual({ url: null, topics: [] });
    expect(await store.webhooks.settings(other.id)).toEqual({ url: URL, topics: TOPIC_NAMES });
    expect(await store.webhooks.secretOf(shop.id, 1)).toBe(secret);
  });
});

describe.each(engines())("$name: signing secrets", (engine) => {
  test("are made with the first settings, or when they are first read", async () => {
    const { store, rows, shop: alpha, other: beta } = await storeWithTwoShops(engine);
    expect(await store.webhooks.secrets(alpha.id)).toEqual([]);
    await store.webhooks.set(alpha.id, { topics: [] }, START);
    const secret = await store.webhooks.secret(beta.id, START + 1);
    expect(secret).toMatch(SECRET);
    expect(await store.webhooks.secret(beta.id, START + 2)).toBe(secret);
    expect(await store.webhooks.secret(alpha.id, START)).not.toBe(secret);
    expect(
      (await rows("webhook_secrets")).map(({ shop_id, version, created_at }) => [shop_id, version, created_at]),
    ).toEqual([
      [alpha.id, 1, START],
      [beta.id, 1, START + 1],
    ]);
  });

  test("are made once when two processes ask at the same time", async () => {
    const { store, reopen } = await engine.open();
    const other = await reopen();
    const { id } = await addShop(store);
    const seen = await Promise.all([store, other, store, other].map((each) => each.webhooks.secret(id, START)));
    expect(new Set(seen).size).toBe(1);
    expect(await store.webhooks.secrets(id)).toHaveLength(1);
  });

  test("are rotated: each version stays, and the newest signs all later deliveries", async () => {
    const { store, shop, other } = await storeWithTwoShops(engine);
    const secrets = [await store.webhooks.secret(shop.id, START)];
    await store.webhooks.secret(other.id, START);
    for (let version = 2; version <= 11; version += 1)
      secrets.push(await store.webhooks.rotateSecret(shop.id, START + version));
    expect(new Set(secrets).size).toBe(11);
    expect(await store.webhooks.secret(shop.id, START)).toBe(secrets[10] ?? "");
    expect(await store.webhooks.secrets(shop.id)).toEqual(secrets.toReversed());
    expect(await Promise.all(secrets.map((_, index) => store.webhooks.secretOf(shop.id, index + 1)))).toEqual(secrets);
    expect(await store.webhooks.secrets(other.id)).toHaveLength(1);
    const [missing] = await failures([store.webhooks.secretOf(other.id, 2)]);
    expect(missing).toMatchObject({ code: "failed", message: "the signing secret 2 of the shop is missing" });
  });

  test("overlap for the time that a rotation names, and the next rotation ends the overlap", async () => {
    const { store, reopen } = await engine.open();
    const other = await reopen();
    const [shop, next] = [await addShop(store), await addShop(store, "other")];
    const endsAt = async () => [
      await other.webhooks.overlapEndsAt(shop.id),
      await other.webhooks.overlapEndsAt(next.id),
    ];
    expect(await endsAt()).toEqual([null, null]);
    // The first rotation begins no overlap, because the shop has no former secret yet.
    await store.webhooks.rotateSecret(shop.id, START, HOUR);
    expect(await endsAt()).toEqual([null, null]);
    await store.webhooks.rotateSecret(shop.id, START + 1, HOUR);
    expect(await endsAt()).toEqual([START + 1 + HOUR, null]);
    await store.webhooks.rotateSecret(shop.id, START + 2, 2 * HOUR);
    expect(await endsAt()).toEqual([START + 2 + 2 * HOUR, null]);
    await store.webhooks.rotateSecret(shop.id, START + 3);
    expect(await endsAt()).toEqual([null, null]);
    expect(await store.webhooks.secrets(shop.id)).toHaveLength(4);
  });

  test("that two processes rotate at the same time get two versions", async () => {
    const { store, reopen, rows } = await engine.open();
    const other = await reopen();
    const { id } = await addShop(store);
    await Promise.all([store, other, store, other, store].map((each) => each.webhooks.rotateSecret(id, START)));
    expect((await rows("webhook_secrets")).map(({ version }) => version)).toEqual([1, 2, 3, 4, 5]);
    expect(new Set(await store.webhooks.secrets(id)).size).toBe(5);
  });

  test("are also made by a rotation, if a shop has no secret", async () => {
    const { store } = await engine.open();
    const { id } = await addShop(store);
    const secret = await store.webhooks.rotateSecret(id, START);
    expect(await store.webhooks.secrets(id)).toEqual([secret]);
  });

  test("are not made for a shop that was removed", async () => {
    const { store } = await engine.open();
    const { id, domain } = await addShop(store);
    await removeShop(store, domain);
    const { webhooks } = store;
    const refused = await failures([
      webhooks.secret(id, START),
      webhooks.rotateSecret(id, START),
      webhooks.set(id, { url: URL }, START),
    ]);
    expect(refused).toMatchObject(refused.map(() => ({ code: "not_found", message: "the shop was removed" })));
    expect(await store.webhooks.secrets(id)).toEqual([]);
  });
});

test.each(engines())("$name: no secret or token is in the database in plain form", async (engine) => {
  const { store, reopen, rows, shop } = await storeWithShop(engine);
  await store.connections.connect(
    shop.id,
    "refresh",
    { ...TOKENS, accessToken: "shpat_secret", refreshToken: "shprt_secret" },
    [],
    START,
  );
  const secret = await store.webhooks.rotateSecret(shop.id, START);
  const intake = (await store.shops.intakeSecret(shop.domain))?.secret ?? "";
  const stored = JSON.stringify(await Promise.all(TABLE_NAMES.map(rows)));
  const plain = [secret, intake, "shpat_secret", "shprt_secret"];
  const forms = plain.flatMap((each) => [
    each,
    Buffer.from(each).toHex(),
    Buffer.from(each.slice(each.indexOf("_") + 1), "base64").toHex(),
  ]);
  expect(forms.filter((form) => form !== "" && stored.includes(form))).toEqual([]);
  const other = await reopen();
  expect([
    await other.webhooks.secret(shop.id, START),
    (await other.connections.tokens(shop.id))?.refreshToken,
  ]).toEqual([secret, "shprt_secret"]);
});

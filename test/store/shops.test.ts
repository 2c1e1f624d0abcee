import { expect, test } from "bun:test";
import { join } from "node:path";
import { hashKey } from "../../src/domain/key.ts";
import { hashToken } from "../../src/domain/session.ts";
import { openStore } from "../../src/store/open-store.ts";
import { addShop, allRows, chooseAllEvents, commit, HOUR } from "../conformance/fixtures.ts";
import { randomBytes, START, temporaryFolder } from "../support/app.ts";
import { afterTest } from "../support/cleanup.ts";
import { customer } from "../support/records.ts";

test("a shop that is being removed has no key, session or endpoint from the first step on, and its rows are removed in steps", async () => {
  const folder = temporaryFolder();
  const store = await openStore({
    folder,
    masterKeyFile: join(folder, "master.key"),
    busyTimeoutMs: 2_000,
    random: randomBytes,
  });
  afterTest(() => store.close());
  const shop = await addShop(store);
  await chooseAllEvents(store, shop);
  await store.keys.add(
    shop.id,
    { id: "key_1", label: "Key", fingerprint: "cad_pk_1", createdAt: START, lastUsedAt: null, legacy: false },
    hashKey("key"),
  );
  await store.sessions.addLink(shop.id, hashToken("link"), START, START + HOUR);
  await store.sessions.addLink(shop.id, hashToken("unused link"), START, START + HOUR);
  await store.sessions.begin(hashToken("link"), hashToken("session"), START, START + HOUR);
  const customers = Array.from({ length: 5_000 }, (_, n) => customer(n + 1));
  await commit(store, shop, customers);

  const removing = store.shops.remove(shop.domain);
  expect(await store.shops.byId(shop.id)).toBeDefined();
  expect(await store.keys.find(hashKey("key"))).toBeUndefined();
  expect(await store.sessions.find(hashToken("session"), START)).toBeUndefined();
  expect(await store.sessions.begin(hashToken("unused link"), hashToken("session"), START, START + HOUR)).toBe(false);
  expect(await store.webhooks.settings(shop.id)).toEqual({ url: null, topics: [] });
  const left: number[] = [];
  while ((await store.shops.byId(shop.id)) !== undefined) {
    left.push((await allRows(store, shop, "customers")).length);
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(await removing).toBe(true);
  expect(left.some((count) => count > 0 && count < 5_000)).toBe(true);
});

import { describe, expect, test } from "bun:test";
import { hashToken } from "../../src/actions/session.ts";
import { signInAt } from "../support/actors.ts";
import { START } from "../support/app.ts";
import { engines, storeInTwoProcesses, storeWithShop, storeWithTwoShops } from "./engines.ts";
import { expectConflict, HOUR, removeShop } from "./fixtures.ts";

const [LINK, OTHER_LINK] = [hashToken("link"), hashToken("other link")];
const [SESSION, OTHER_SESSION] = [hashToken("session"), hashToken("other session")];

describe.each(engines())("$name: a sign-in link", (engine) => {
  test("begins one session, of its shop", async () => {
    const { store, shop, other } = await storeWithTwoShops(engine);
    await store.sessions.addLink(shop.id, LINK, START + 10);
    await store.sessions.addLink(other.id, OTHER_LINK, START + 10);
    expect(await store.sessions.begin(LINK, SESSION, signInAt(START + 9), START + HOUR)).toBe(true);
    expect(await store.sessions.begin(LINK, OTHER_SESSION, signInAt(START + 9), START + HOUR)).toBe(false);
    expect(await store.sessions.find(SESSION, START + 9)).toEqual({ shop, expiresAt: START + HOUR });
    expect(await store.sessions.find(OTHER_SESSION, START + 9)).toBeUndefined();
    expect(await store.sessions.begin(OTHER_LINK, OTHER_SESSION, signInAt(START + 9), START + HOUR)).toBe(true);
    expect(await store.sessions.find(OTHER_SESSION, START + 9)).toEqual({ shop: other, expiresAt: START + HOUR });
    for (const { id } of [shop, other])
      expect(await store.audit.list(id, {}, {}, 9)).toMatchObject([{ action: "session.begun", at: START + 9 }]);
  });

  test("works for one of two processes that use it at once", async () => {
    const { store, second: other, shop } = await storeInTwoProcesses(engine);
    await store.sessions.addLink(shop.id, LINK, START + 10);
    const begun = await Promise.all([
      store.sessions.begin(LINK, SESSION, signInAt(START), START + HOUR),
      other.sessions.begin(LINK, OTHER_SESSION, signInAt(START), START + HOUR),
    ]);
    expect(begun.filter(Boolean)).toHaveLength(1);
  });

  test("that is expired or unknown begins no session", async () => {
    const { store, rows, shop } = await storeWithShop(engine);
    await store.sessions.addLink(shop.id, LINK, START + 10);
    expect(await store.sessions.begin(LINK, SESSION, signInAt(START + 10), START + HOUR)).toBe(false);
    expect(await store.sessions.begin(OTHER_LINK, SESSION, signInAt(START), START + HOUR)).toBe(false);
    expect(await rows("admin_sessions")).toEqual([]);
  });

  test("is stored only as a hash, and so is a session", async () => {
    const { store, rows, shop } = await storeWithShop(engine);
    await store.sessions.addLink(shop.id, LINK, START + 10);
    await store.sessions.begin(LINK, SESSION, signInAt(START + 1), START + HOUR);
    expect(await rows("admin_links")).toEqual([
      { hash: LINK.toHex(), shop_id: shop.id, expires_at: START + 10, used_at: START + 1 },
    ]);
    expect(await rows("admin_sessions")).toEqual([
      { hash: SESSION.toHex(), shop_id: shop.id, created_at: START + 1, expires_at: START + HOUR },
    ]);
  });

  test("of a shop that was removed is refused", async () => {
    const { store, shop } = await storeWithShop(engine);
    await removeShop(store, shop.domain);
    await expectConflict(store.sessions.addLink(shop.id, LINK, START + 10));
  });
});

describe.each(engines())("$name: a session", (engine) => {
  test("ends at its time, or when it is ended, for every process", async () => {
    const { store, second: other, shop } = await storeInTwoProcesses(engine);
    for (const [link, session] of [
      [LINK, SESSION],
      [OTHER_LINK, OTHER_SESSION],
    ] as const) {
      await store.sessions.addLink(shop.id, link, START + 10);
      await store.sessions.begin(link, session, signInAt(START), START + HOUR);
    }
    expect(await other.sessions.find(SESSION, START + HOUR - 1)).toMatchObject({ shop });
    expect(await other.sessions.find(SESSION, START + HOUR)).toBeUndefined();
    await store.shops.set(shop.domain, { plan: "free" });
    expect(await other.sessions.find(SESSION, START)).toMatchObject({ shop: { ...shop, plan: "free" } });
    await store.sessions.end(SESSION);
    expect(await other.sessions.find(SESSION, START)).toBeUndefined();
    expect(await other.sessions.find(OTHER_SESSION, START)).toBeDefined();
    await store.sessions.end(SESSION);
  });

  test("lives on while it is used, up to an age, and never ends earlier", async () => {
    const { store, shop } = await storeWithShop(engine);
    await store.sessions.addLink(shop.id, LINK, START + 10);
    await store.sessions.begin(LINK, SESSION, signInAt(START), START + 100);
    const renewed = async (expiresAt: number) => {
      await store.sessions.renew(SESSION, expiresAt, 150);
      return (await store.sessions.find(SESSION, START))?.expiresAt;
    };
    expect([await renewed(START + 90), await renewed(START + 120), await renewed(START + 200)]).toEqual([
      START + 100,
      START + 120,
      START + 150,
    ]);
  });

  test("with another proof than a link is stored once, and not for a shop in removal", async () => {
    const { store, rows, shop } = await storeWithShop(engine);
    await store.sessions.put(SESSION, shop.id, START, START + 10);
    await store.sessions.put(SESSION, shop.id, START + 5, START + 15);
    expect(await rows("admin_sessions")).toEqual([
      { hash: SESSION.toHex(), shop_id: shop.id, created_at: START, expires_at: START + 15 },
    ]);
    await store.shops.beginRemoval(shop.domain, START);
    await expectConflict(store.sessions.put(OTHER_SESSION, shop.id, START, START + 10));
  });

  test("that begins while another process ends all sessions of its shop is ended too, or its link stays unused", async () => {
    const { store, second: other, rows, shop } = await storeInTwoProcesses(engine);
    const names = Array.from({ length: 8 }, (_, n) => `${n}`);
    for (let round = 0; round < 5; round += 1) {
      for (const name of names) await store.sessions.addLink(shop.id, hashToken(name), START + HOUR);
      const [first, ...begun] = await Promise.all([
        other.sessions.endAll(shop.id, START),
        ...names.map((name) =>
          store.sessions.begin(hashToken(name), hashToken(`s ${name}`), signInAt(START), START + HOUR),
        ),
      ]);
      expect(await rows("admin_sessions")).toEqual([]);
      expect(first).toBe(begun.filter(Boolean).length);
    }
  });

  test("ends together with the shop's other sessions and unused links; the unexpired sessions are counted", async () => {
    const { store, rows, shop, other } = await storeWithTwoShops(engine);
    const begin = async (id: number, name: string, expiresAt: number) => {
      await store.sessions.addLink(id, hashToken(`link ${name}`), START + HOUR);
      await store.sessions.begin(hashToken(`link ${name}`), hashToken(name), signInAt(START), expiresAt);
    };
    await begin(shop.id, "a", START + 10);
    await begin(shop.id, "b", START + 11);
    await begin(shop.id, "c", START + 12);
    await begin(other.id, "d", START + 12);
    await store.sessions.addLink(shop.id, LINK, START + HOUR);
    expect(await store.sessions.endAll(shop.id, START + 10)).toBe(2);
    expect(await store.sessions.endAll(shop.id, START + 10)).toBe(0);
    expect(await store.sessions.begin(LINK, SESSION, signInAt(START), START + HOUR)).toBe(false);
    for (const name of ["a", "b", "c"]) expect(await store.sessions.find(hashToken(name), START)).toBeUndefined();
    expect(await store.sessions.find(hashToken("d"), START)).toMatchObject({ shop: other });
    for (const table of ["admin_links", "admin_sessions"] as const)
      expect((await rows(table)).map(({ shop_id }) => shop_id)).toEqual([other.id]);
  });
});

test.each(engines())("$name: the address is the last that a server noted, until it removes it", async (engine) => {
  const { store, reopen } = await engine.open();
  const other = await reopen();
  expect(await store.sessions.address()).toBeUndefined();
  await store.sessions.noteAddress("http://127.0.0.1:1");
  await other.sessions.noteAddress("http://127.0.0.1:2");
  expect(await store.sessions.address()).toBe("http://127.0.0.1:2");
  await store.sessions.forgetAddress("http://127.0.0.1:1");
  expect(await store.sessions.address()).toBe("http://127.0.0.1:2");
  await other.sessions.forgetAddress("http://127.0.0.1:2");
  expect(await store.sessions.address()).toBeUndefined();
  await store.check();
});

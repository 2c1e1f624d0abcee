import { describe, expect, test } from "bun:test";
import { hashToken } from "../../src/actions/session.ts";
import type { Store } from "../../src/store/port/store.ts";
import { signInAt } from "../support/actors.ts";
import { START } from "../support/app.ts";
import { type Engine, engines, storeWithTwoShops } from "./engines.ts";
import { addShop, expectConflict, HOUR } from "./fixtures.ts";

const [SESSION, OTHER_SESSION] = [hashToken("session"), hashToken("other session")];
const FORM = hashToken("form");
const PATH = "/admin/keys";
const KEY = "a-new-key-that-nobody-may-read";
const NETWORK = "192.0.2.7";
const MINUTE = 60_000;

async function begin(store: Store, shopId: number, session: Uint8Array, expiresAt = START + HOUR): Promise<void> {
  const link = hashToken(`link ${session.toHex()}`);
  await store.sessions.addLink(shopId, link, START + HOUR);
  await store.sessions.begin(link, session, signInAt(START), expiresAt);
}

/** Adds a shop with two sessions, and opens the database in two processes. */
async function opened(engine: Engine) {
  const all = await engine.open();
  const other = await all.reopen();
  const shop = await addShop(all.store);
  for (const session of [SESSION, OTHER_SESSION]) await begin(all.store, shop.id, session);
  return { ...all, other, shop };
}

describe.each(engines())("$name: a form", (engine) => {
  test("is used once in its session, by any process", async () => {
    const { store, other } = await opened(engine);
    expect(await store.settingsPage.useForm(SESSION, FORM)).toBe(true);
    for (const each of [store, other]) expect(await each.settingsPage.useForm(SESSION, FORM)).toBe(false);
    expect(await other.settingsPage.useForm(OTHER_SESSION, FORM)).toBe(true);
    expect(await other.settingsPage.useForm(SESSION, hashToken("other form"))).toBe(true);
  });

  test("is accepted once if many requests post it at once", async () => {
    const { store, other } = await opened(engine);
    const posts = Array.from({ length: 20 }, (_, n) =>
      (n % 2 === 0 ? store : other).settingsPage.useForm(SESSION, FORM),
    );
    expect((await Promise.all(posts)).filter(Boolean)).toHaveLength(1);
  });

  test("of a session that has ended is refused", async () => {
    const { store } = await opened(engine);
    await store.sessions.end(SESSION);
    await expectConflict(store.settingsPage.useForm(SESSION, FORM));
  });
});

describe.each(engines())("$name: a notice", (engine) => {
  test("is given once, to its session at its path, by any process, in the order of the notices", async () => {
    const { store, other } = await opened(engine);
    const until = START + 10;
    for (const text of ["first", "second \u0000 é"]) await store.settingsPage.putNotice(SESSION, PATH, text, until);
    await other.settingsPage.putNotice(SESSION, PATH, "third", until);
    expect(await other.settingsPage.takeNotices(OTHER_SESSION, PATH, START)).toEqual([]);
    expect(await other.settingsPage.takeNotices(SESSION, "/admin/plan", START)).toEqual([]);
    expect(await other.settingsPage.takeNotices(SESSION, PATH, START)).toEqual(["first", "second \u0000 é", "third"]);
    for (const each of [store, other]) expect(await each.settingsPage.takeNotices(SESSION, PATH, START)).toEqual([]);
  });

  test("is given once if many requests ask at once", async () => {
    const { store, other } = await opened(engine);
    await store.settingsPage.putNotice(SESSION, PATH, KEY, START + 10);
    const asked = Array.from({ length: 20 }, (_, n) =>
      (n % 2 === 0 ? store : other).settingsPage.takeNotices(SESSION, PATH, START),
    );
    expect((await Promise.all(asked)).flat()).toEqual([KEY]);
  });

  test("is not given after it has expired", async () => {
    const { store } = await opened(engine);
    await store.settingsPage.putNotice(SESSION, PATH, "short", START + 10);
    await store.settingsPage.putNotice(SESSION, PATH, "long", START + 11);
    expect(await store.settingsPage.takeNotices(SESSION, PATH, START + 10)).toEqual(["long"]);
  });

  test("is stored sealed, and for its session alone", async () => {
    const { store, rows } = await opened(engine);
    await store.settingsPage.putNotice(SESSION, PATH, KEY, START + 10);
    const [row] = await rows("admin_notices");
    expect(row).toMatchObject({ session: SESSION.toHex(), path: PATH, expires_at: START + 10 });
    expect(Buffer.from(String(row?.["sealed"]), "hex").includes(KEY)).toBe(false);
    expect(String(row?.["sealed"]).length).toBeGreaterThan(2 * KEY.length);
  });

  test("for a session that has ended is refused", async () => {
    const { store } = await opened(engine);
    await store.sessions.end(SESSION);
    await expectConflict(store.settingsPage.putNotice(SESSION, PATH, KEY, START + 10));
  });
});

describe.each(engines())("$name: forms and notices", (engine) => {
  const ends: [name: string, end: (store: Store, shopId: number, domain: string) => Promise<unknown>][] = [
    ["are removed when the session is ended", (store) => store.sessions.end(SESSION)],
    ["are removed with all sessions of the shop", (store, shopId) => store.sessions.endAll(shopId, START)],
    ["are removed when the shop's removal begins", (store, _, domain) => store.shops.beginRemoval(domain, START)],
  ];
  test.each(ends)("%s, and those of another shop stay", async (_name, end) => {
    const { store, rows, shop, other } = await storeWithTwoShops(engine);
    await begin(store, shop.id, SESSION);
    await begin(store, other.id, OTHER_SESSION);
    for (const session of [SESSION, OTHER_SESSION]) {
      await store.settingsPage.useForm(session, FORM);
      await store.settingsPage.putNotice(session, PATH, KEY, START + HOUR);
    }
    await end(store, shop.id, shop.domain);
    for (const table of ["admin_forms", "admin_notices"] as const)
      expect((await rows(table)).map(({ session }) => session)).toEqual([OTHER_SESSION.toHex()]);
  });
});

describe.each(engines())("$name: wrong sign-in tokens", (engine) => {
  test("make a network wait after five within a minute, until the oldest is a minute old", async () => {
    const { store, other, rows } = await opened(engine);
    const count = (at: number, network = NETWORK) =>
      (at % 2 === 0 ? store : other).settingsPage.countToken(network, at);
    for (let n = 0; n < 5; n += 1) expect(await count(START + n)).toBeUndefined();
    const before = await rows("admin_wrong_tokens");
    expect(await count(START + 4)).toBe(MINUTE - 4);
    expect(await count(START + MINUTE - 1)).toBe(1);
    expect(await rows("admin_wrong_tokens")).toEqual(before);
    expect(await count(START + 4, "2001:db8:0:0::/64")).toBeUndefined();
    expect(await count(START + MINUTE)).toBeUndefined();
    expect(await count(START + MINUTE)).toBe(1);
  });

  test("are all counted when many come at once, at several nodes", async () => {
    const { store, reopen } = await opened(engine);
    const nodes = [store, ...(await Promise.all([reopen(), reopen(), reopen()]))];
    const counts = Array.from({ length: 40 }, (_, n) =>
      nodes[n % nodes.length]?.settingsPage.countToken(NETWORK, START),
    );
    const waits = await Promise.all(counts);
    expect(waits.filter((wait) => wait === undefined)).toHaveLength(5);
    expect(new Set(waits.filter((wait) => wait !== undefined))).toEqual(new Set([MINUTE]));
  });

  test("are uncounted one by one if they were right", async () => {
    const { store, other } = await opened(engine);
    for (let n = 0; n < 5; n += 1) await store.settingsPage.countToken(NETWORK, START);
    await other.settingsPage.takeBackToken(NETWORK, START);
    await other.settingsPage.takeBackToken(NETWORK, START + 1);
    await other.settingsPage.takeBackToken("198.51.100.1", START);
    expect(await store.settingsPage.countToken(NETWORK, START + 1)).toBeUndefined();
    expect(await store.settingsPage.countToken(NETWORK, START + 1)).toBe(MINUTE - 1);
    await Promise.all([store, other].map(({ settingsPage }) => settingsPage.takeBackToken(NETWORK, START)));
    for (let n = 0; n < 2; n += 1) expect(await other.settingsPage.countToken(NETWORK, START + 2)).toBeUndefined();
    expect(await other.settingsPage.countToken(NETWORK, START + 2)).toBe(MINUTE - 2);
  });

  test("from a clock that was ahead count for a minute around their time", async () => {
    const { store } = await opened(engine);
    for (let n = 0; n < 5; n += 1) await store.settingsPage.countToken(NETWORK, START + HOUR);
    expect(await store.settingsPage.countToken(NETWORK, START + HOUR - 2_000)).toBe(MINUTE + 2_000);
    expect(await store.settingsPage.countToken(NETWORK, START)).toBeUndefined();
  });
});

test.each(engines())("$name: only expired rows are removed", async (engine) => {
  const { store, rows, shop } = await opened(engine);
  await begin(store, shop.id, hashToken("short"), START + 5);
  await store.sessions.addLink(shop.id, hashToken("short link"), START + 5);
  await store.settingsPage.useForm(hashToken("short"), FORM);
  await store.settingsPage.useForm(SESSION, FORM);
  await store.settingsPage.putNotice(SESSION, PATH, "short", START + 5);
  await store.settingsPage.putNotice(SESSION, PATH, "long", START + 6);
  await store.settingsPage.countToken("192.0.2.1", START);
  await store.settingsPage.countToken("192.0.2.2", START + 1);
  await store.settingsPage.countToken("192.0.2.3", START + HOUR);
  await store.settingsPage.removeExpired(START + 5, START + MINUTE);
  expect((await rows("admin_sessions")).map(({ hash }) => hash)).toEqual(
    [SESSION, OTHER_SESSION].map((hash) => hash.toHex()).sort(),
  );
  expect((await rows("admin_links")).map(({ expires_at }) => Number(expires_at) > START + 5)).toEqual([
    true,
    true,
    true,
  ]);
  expect(await rows("admin_forms")).toEqual([{ session: SESSION.toHex(), form: FORM.toHex() }]);
  expect((await rows("admin_notices")).map((row) => row["expires_at"])).toEqual([START + 6]);
  expect((await rows("admin_wrong_tokens")).map(({ network }) => network)).toEqual(["192.0.2.2"]);
});

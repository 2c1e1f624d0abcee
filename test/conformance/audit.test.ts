import { describe, expect, test } from "bun:test";
import { auditEntry } from "../../src/domain/audit.ts";
import { hashKey } from "../../src/domain/key.ts";
import type { AuditFilter, AuditPage, AuditPlace } from "../../src/store/port/audit.ts";
import { MERCHANT, OPERATOR } from "../support/actors.ts";
import { START } from "../support/app.ts";
import { type Engine, engines, storeWithTwoShops } from "./engines.ts";
import { apiKey, expectConflict, HOUR, removeShop } from "./fixtures.ts";

const CREATED = auditEntry(MERCHANT, START, "key.created", { subject: "key_a", after: { label: "A" } });

async function listed({ store, shop }: Awaited<ReturnType<Engine["open"]>> & { shop: { id: number } }) {
  return (await store.audit.list(shop.id, {}, {}, 10)).map(({ number: _, ...entry }) => entry);
}

describe.each(engines())("$name: the audit list", (engine) => {
  test("has the entry of a change, of the change's shop only", async () => {
    const all = await storeWithTwoShops(engine);
    const { store, shop, other } = all;
    await store.audited(shop.id, CREATED).keys.add(shop.id, apiKey("a"), hashKey("a"));
    expect((await store.keys.list(shop.id)).length).toBe(1);
    expect(await listed(all)).toEqual([CREATED]);
    expect(await store.audit.list(other.id, {}, {}, 10)).toEqual([]);
  });

  test("has no entry of a change that is refused, or that changes nothing", async () => {
    const all = await storeWithTwoShops(engine);
    const { store, shop } = all;
    await store.keys.add(shop.id, apiKey("a"), hashKey("a"));
    const audited = store.audited(shop.id, CREATED);
    await expect(audited.keys.add(shop.id, apiKey("b"), hashKey("a"))).rejects.toMatchObject({ code: "conflict" });
    await expect(audited.keys.revoke(shop.id, "key_none", START)).rejects.toMatchObject({ code: "not_found" });
    await expect(audited.deliveries.retry(shop.id, "whd_none", START)).rejects.toMatchObject({ code: "not_found" });
    expect(await audited.styles.clear(shop.id)).toBe(false);
    expect(await audited.connections.disconnect(shop.id, START)).toBe(false);
    expect(await listed(all)).toEqual([]);
  });

  test("is read in pages, by person, action and time", async () => {
    const all = await storeWithTwoShops(engine);
    const { store, shop } = all;
    const actors = [MERCHANT, { ...MERCHANT, who: "staff 42" }, OPERATOR];
    for (const [hour, actor] of actors.entries())
      await store.audit.add(
        shop.id,
        auditEntry(actor, START + hour * HOUR, hour === 0 ? "key.created" : "style.saved"),
      );
    const list = async (
      ...[filter, place, limit]: Parameters<typeof store.audit.list> extends [number, ...infer R] ? R : never
    ) => (await store.audit.list(shop.id, filter, place, limit)).map(({ who }) => who);
    expect(await list({}, {}, 2)).toEqual(["command line", "staff 42"]);
    const [newest, middle] = await store.audit.list(shop.id, {}, {}, 2);
    expect(await list({}, { olderThan: middle?.number ?? 0 }, 2)).toEqual([MERCHANT.who]);
    expect(await list({}, { newerThan: middle?.number ?? 0 }, 2)).toEqual(["command line"]);
    expect(await list({}, { newerThan: (newest?.number ?? 0) - 10 }, 2)).toEqual(["staff 42", MERCHANT.who]);
    expect(await list({ who: "staff" }, {}, 9)).toEqual(["staff 42"]);
    expect(await list({ action: "style.saved" }, {}, 9)).toEqual(["command line", "staff 42"]);
    expect(await list({ from: START + HOUR, to: START + 2 * HOUR }, {}, 9)).toEqual(["staff 42"]);
  });

  test("is searched in parts, forwards and backwards, until enough is found or the search is to end", async () => {
    const { store, shop } = await storeWithTwoShops(engine);
    const entry = auditEntry(OPERATOR, START, "link.made");
    await store.audit.add(shop.id, CREATED);
    for (let step = 0; step < 60; step += 1)
      await Promise.all(Array.from({ length: 100 }, () => store.audit.add(shop.id, entry)));
    await store.audit.add(shop.id, CREATED);
    const [newest, oldest] = (await store.audit.list(shop.id, { action: "key.created" }, {}, 9)).map(
      ({ number }) => number,
    );
    const page = (place: AuditPlace, limit: number, goesOn: boolean, filter: AuditFilter = { action: "key.created" }) =>
      store.audit.page(shop.id, filter, place, limit, () => goesOn);
    const numbersOf = ({ entries, end }: AuditPage) => [entries.map(({ number }) => number), end];
    if (newest === undefined || oldest === undefined) throw new Error("both are found");
    expect(numbersOf(await page({}, 1, false))).toEqual([[newest], null]);
    const stopped = await page({}, 2, false);
    expect(numbersOf(stopped)).toEqual([[newest], newest - 4_999]);
    expect(numbersOf(await page({ olderThan: stopped.end ?? 0 }, 2, false))).toEqual([[oldest], null]);
    expect(numbersOf(await page({}, 2, true))).toEqual([[newest, oldest], null]);
    expect(numbersOf(await page({ newerThan: 0 }, 2, false))).toEqual([[oldest], oldest + 4_999]);
    expect(numbersOf(await page({ newerThan: 0 }, 2, true))).toEqual([[newest, oldest], null]);
    expect((await page({}, 6_002, false, {})).entries).toHaveLength(6_002);
  });

  test("loses old entries, and goes with its shop", async () => {
    const all = await storeWithTwoShops(engine);
    const { store, shop, other } = all;
    for (const { id } of [shop, other])
      for (const at of [START, START + HOUR]) await store.audit.add(id, auditEntry(OPERATOR, at, "link.made"));
    expect(await store.audit.prune(START + HOUR)).toBe(2);
    expect((await listed(all)).map(({ at }) => at)).toEqual([START + HOUR]);
    await removeShop(store, shop.domain);
    expect(await listed(all)).toEqual([]);
    await expectConflict(store.audit.add(shop.id, CREATED));
    expect(await store.audit.list(other.id, {}, {}, 10)).toHaveLength(1);
  });
});

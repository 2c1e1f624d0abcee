import { describe, expect, test } from "bun:test";
import { auditEntry } from "../../src/domain/audit.ts";
import type { Store } from "../../src/store/port/store.ts";
import { MERCHANT } from "../support/actors.ts";
import { START } from "../support/app.ts";
import { end, queueRewards } from "./delivery-fixtures.ts";
import { engines, storeWithEvents, type TestStore } from "./engines.ts";
import { addShop, HOUR, TOKENS } from "./fixtures.ts";

const error = "The endpoint responded with HTTP 500.";

const ALL = { operator: true, email: true };
const LINK = "https://sds.example.com/admin/deliveries";
const HALF_DAY = 12 * HOUR;

describe.each(engines())("$name: the notices of an alert", (engine) => {
  /** Opens a shop with a broken connection, whose alert is due at START. */
  async function alerted() {
    const opened = await storeWithEvents(engine);
    await opened.store.connections.connect(opened.shop.id, "refresh", TOKENS, [], START);
    await opened.store.connections.setTrouble(opened.shop.id, "it was revoked", START);
    return opened;
  }

  async function tellAll(store: Store, now: number): Promise<boolean[]> {
    const due = await store.alerts.due(now);
    for (const alert of due) await store.alerts.tell(alert, ALL, LINK, now);
    return due.map(({ isOver }) => isOver);
  }

  test("are queued once, and once when it is over; a new alert waits for a day since the last", async () => {
    const { store, shop, rows } = await alerted();
    const [due] = await store.alerts.due(START);
    if (due === undefined) throw new Error("the alert is due");
    expect(due).toMatchObject({ cause: "connection", error: "it was revoked", isOver: false, connection: "refresh" });
    const told = await Promise.all([1, 2, 3].map(() => store.alerts.tell(due, ALL, LINK, START)));
    expect(told.filter(Boolean)).toHaveLength(1);
    expect(await rows("alert_notices")).toHaveLength(1);
    expect(await tellAll(store, START + HALF_DAY)).toEqual([]);
    await store.connections.setTrouble(shop.id, null, START + HALF_DAY);
    expect(await tellAll(store, START + HALF_DAY)).toEqual([true]);
    expect(await tellAll(store, START + HALF_DAY)).toEqual([]);
    await store.connections.setTrouble(shop.id, "it was revoked", START + HALF_DAY);
    expect(await tellAll(store, START + 23 * HOUR)).toEqual([]);
    expect(await store.alerts.list(shop.id)).toMatchObject([{ cause: "connection" }]);
    expect(await tellAll(store, START + 24 * HOUR)).toEqual([false]);
    expect(await rows("alert_notices")).toHaveLength(3);
  });

  test("are not queued for an alert that changed meanwhile, or a shop that is being removed", async () => {
    const { store, shop, rows } = await alerted();
    const [due] = await store.alerts.due(START);
    if (due === undefined) throw new Error("the alert is due");
    await store.connections.setTrouble(shop.id, null, START);
    expect(await store.alerts.tell(due, ALL, LINK, START)).toBeFalse();
    await store.connections.setTrouble(shop.id, "it was revoked", START);
    await store.shops.beginRemoval(shop.domain, START);
    expect(await store.alerts.due(START)).toEqual([]);
    expect(await store.alerts.tell(due, ALL, LINK, START)).toBeFalse();
    expect(await rows("alert_notices")).toEqual([]);
  });

  test("are claimed by one process, and again when the claim has ended", async () => {
    const { store, shop } = await alerted();
    expect(await store.alerts.claimNotice(START, () => START)).toBeUndefined();
    await tellAll(store, START);
    const claimed = await Promise.all([1, 2].map(() => store.alerts.claimNotice(START, () => START + 60_000)));
    const notice = { cause: "connection" as const, since: START, failures: 1, lastAt: START, host: null };
    expect(claimed.filter((each) => each !== undefined)).toEqual([
      {
        number: expect.any(Number),
        shop: { id: shop.id, domain: shop.domain },
        attempts: 1,
        createdAt: START,
        notice: { ...notice, error: "it was revoked", isOver: false, link: LINK },
        recipient: null,
      },
    ]);
    expect(await store.alerts.claimNotice(START + 59_999, () => 0)).toBeUndefined();
    const again = await store.alerts.claimNotice(START + 60_000, (attempts) => START + 60_000 + attempts);
    expect(again?.attempts).toBe(2);
    expect(await store.alerts.claimNotice(START + 60_000, () => 0)).toBeUndefined();
    await store.alerts.removeNotice(again?.number ?? 0);
    expect(await store.alerts.claimNotice(START + HOUR, () => 0)).toBeUndefined();
  });

  test("start a workflow for an endpoint and for dead webhooks, if its trigger is on and the plan has it", async () => {
    const { store, shop, rows } = await alerted();
    await store.connections.setTrouble(shop.id, null, START);
    const triggers = async () => (await rows("deliveries")).filter(({ topic }) => topic === "endpoint-failing");
    const dieAt = async (at: number) => {
      await queueRewards(store, shop, [`r${at}`], at);
      await end(store, shop, "dead", at);
      expect(await tellAll(store, at)).toEqual([false]);
      await store.deliveries.retryDead(shop.id, 0, at);
      await end(store, shop, "delivered", at + 1);
      expect(await tellAll(store, at + 1)).toEqual([true]);
    };
    await store.shops.set(shop.domain, { triggers: [] });
    await dieAt(START);
    expect(await triggers()).toEqual([]);
    await store.shops.set(shop.domain, { triggers: ["endpoint-failing"] });
    await dieAt(START + 24 * HOUR);
    const since = new Date(START + 24 * HOUR).toISOString();
    expect((await triggers()).map(({ body, kind }) => [kind, JSON.parse(String(body))])).toEqual([
      [
        "trigger",
        {
          handle: "endpoint-failing",
          payload: { Host: "hooks.example.com", Error: error, Since: since, Link: LINK },
        },
      ],
    ]);
    await queueRewards(store, shop, ["free"], START + 48 * HOUR);
    await store.shops.set(shop.domain, { plan: "free" });
    await end(store, shop, "dead", START + 48 * HOUR);
    expect(await tellAll(store, START + 48 * HOUR)).toEqual([false]);
    expect(await triggers()).toHaveLength(1);
  });
});

describe.each(engines())("$name: the e-mail addresses of a shop", (engine) => {
  const hashIn = async ({ rows }: TestStore) =>
    Uint8Array.fromHex(String((await rows("alert_addresses")).at(-1)?.["hash"]));

  test("get an e-mail that asks to confirm, and notices only after that", async () => {
    const opened = await storeWithEvents(engine);
    const { store, shop } = opened;
    const { alerts, connections } = store;
    expect(await alerts.addAddress(shop.id, "a@example.com", START)).toBe("added");
    expect(await alerts.addAddress(shop.id, "a@example.com", START)).toBe("known");
    const asked = await alerts.claimNotice(START, () => START + HOUR);
    expect(asked).toMatchObject({ notice: null, recipient: { address: "a@example.com" } });
    const token = asked?.recipient?.token ?? "";
    expect(token).toMatch(/^[A-Za-z0-9_-]{43}$/);
    const hash = new Bun.CryptoHasher("sha256").update(token).digest();
    expect(await hashIn(opened)).toEqual(new Uint8Array(hash));
    await alerts.removeNotice(asked?.number ?? 0);
    const tellAll = async (at: number) => {
      for (const alert of await alerts.due(at)) await alerts.tell(alert, { ...ALL, operator: false }, LINK, at);
    };
    const failAndTell = async (at: number) => {
      await connections.connect(shop.id, "refresh", TOKENS, [], at);
      await tellAll(at);
      await connections.setTrouble(shop.id, "it was revoked", at);
      await tellAll(at);
      return alerts.claimNotice(at, () => at + HOUR);
    };
    expect(await failAndTell(START)).toBeUndefined();
    expect(await alerts.findAddress(hash)).toMatchObject({
      ...{ address: "a@example.com", confirmedAt: null },
      shop: { id: shop.id, domain: shop.domain },
    });
    await connections.connect(shop.id, "refresh", TOKENS, [], START);
    await tellAll(START);
    await alerts.confirmAddress(hash, START + 1);
    await alerts.confirmAddress(hash, START + 2);
    expect(await alerts.addresses(shop.id)).toMatchObject([{ confirmedAt: START + 1 }]);
    expect(await failAndTell(START + 48 * HOUR)).toMatchObject({
      notice: { cause: "connection", isOver: false },
      recipient: { address: "a@example.com", token },
    });
  });

  test("are removed with their waiting e-mails and their text, from their own shop only", async () => {
    const opened = await storeWithEvents(engine);
    const { store, shop, rows } = opened;
    const other = await addShop(store, "other");
    await store.alerts.addAddress(shop.id, "a@example.com", START);
    const [{ number } = { number: 0 }] = await store.alerts.addresses(shop.id);
    const hash = await hashIn(opened);
    expect(await store.alerts.removeAddress(other.id, number, START)).toBeUndefined();
    expect(await store.alerts.removeAddress(shop.id, number, START)).toBe("a@example.com");
    expect(await store.alerts.addresses(shop.id)).toEqual([]);
    expect(await store.alerts.findAddress(hash)).toBeUndefined();
    expect(await rows("alert_notices")).toEqual([]);
    expect((await rows("alert_addresses")).map(({ address }) => address)).toEqual([
      expect.stringMatching(/^[0-9a-f]{64}$/),
    ]);
  });

  test("are added three times in a day at most, because the address may be a stranger's", async () => {
    const { store, shop } = await storeWithEvents(engine);
    const addAndRemove = async (address: string, now: number) => {
      const result = await store.alerts.addAddress(shop.id, address, now);
      for (const { number } of await store.alerts.addresses(shop.id))
        await store.alerts.removeAddress(shop.id, number, now);
      return result;
    };
    for (const address of ["a@example.com", "A@example.com", "a@EXAMPLE.com"])
      expect(await addAndRemove(address, START)).toBe("added");
    expect(await addAndRemove("a@example.com", START)).toBe("too many");
    expect(await addAndRemove("b@example.com", START)).toBe("added");
    expect(await addAndRemove("a@example.com", START + 24 * HOUR)).toBe("added");
    const spellings = ["c@example.com", "C@example.com", "c@EXAMPLE.com", "c@Example.com"];
    const results = [];
    for (const address of spellings) results.push(await store.alerts.addAddress(shop.id, address, START + 24 * HOUR));
    expect(results).toEqual(["added", "added", "added", "too many"]);
  });

  test("are removed once by two presses at once, and get no notice after that", async () => {
    const opened = await storeWithEvents(engine);
    const { store, shop, rows } = opened;
    await store.alerts.addAddress(shop.id, "a@example.com", START);
    await store.alerts.confirmAddress(await hashIn(opened), START);
    const [{ number } = { number: 0 }] = await store.alerts.addresses(shop.id);
    const { alerts } = store.audited(shop.id, auditEntry(MERCHANT, START, "alert_address.removed"));
    const removed = await Promise.all([1, 2, 3, 4].map(() => alerts.removeAddress(shop.id, number, START)));
    expect(removed.filter((address) => address !== undefined)).toEqual(["a@example.com"]);
    expect(await store.audit.list(shop.id, {}, {}, 10)).toHaveLength(1);
    await store.connections.connect(shop.id, "refresh", TOKENS, [], START);
    await store.connections.setTrouble(shop.id, "it was revoked", START);
    const [due] = await store.alerts.due(START);
    if (due === undefined) throw new Error("the alert is due");
    expect(await store.alerts.tell(due, { ...ALL, operator: false }, LINK, START)).toBeTrue();
    expect(await rows("alert_notices")).toEqual([]);
  });

  test("are five at most, and ten are added in a day at most, also by posts at once", async () => {
    const { store, shop } = await storeWithEvents(engine);
    const addAll = (from: number, now: number) =>
      Promise.all(
        Array.from({ length: 7 }, (_, n) => store.alerts.addAddress(shop.id, `a${from + n}@example.com`, now)),
      );
    const counted = (results: string[], text: string) => results.filter((each) => each === text).length;
    const clear = async () => {
      for (const { number } of await store.alerts.addresses(shop.id))
        await store.alerts.removeAddress(shop.id, number, START);
    };
    const first = await addAll(0, START);
    expect([counted(first, "added"), counted(first, "full")]).toEqual([5, 2]);
    await clear();
    expect(counted(await addAll(10, START), "added")).toBe(5);
    await clear();
    expect(counted(await addAll(20, START), "too many")).toBe(7);
    expect(counted(await addAll(30, START + 24 * HOUR), "added")).toBe(5);
  });
});

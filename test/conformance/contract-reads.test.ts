import { describe, expect, test } from "bun:test";
import type { ContractCurrency, ContractRead } from "../../src/domain/platform/contract-read.ts";
import type { MirroredShop } from "../../src/domain/shop.ts";
import { START } from "../support/app.ts";
import { customer, gid, order, subscription } from "../support/records.ts";
import { engines, storeWithShop, storeWithTwoShops } from "./engines.ts";
import { commit } from "./fixtures.ts";

const CONTRACT = gid.contract(1);
/** A reading of the contract and of some orders. All changed a second before the reading began. */
function readAt(beganAt: number, orders: readonly number[] = []): ContractRead {
  const updatedAt = beganAt - 1_000;
  return { contract: CONTRACT, beganAt, updatedAt, orders: new Map(orders.map((n) => [gid.order(n), updatedAt])) };
}

/** The stored form of the reading that `readAt` returns. */
function stored(beganAt: number, orders: Record<number, number> = {}) {
  const entries = Object.entries(orders).map(([n, at]) => [
    gid.order(Number(n)),
    { beganAt: at, updatedAt: at - 1_000 },
  ]);
  return { beganAt, updatedAt: beganAt - 1_000, orders: Object.fromEntries(entries), renewals: [], currency: null };
}

/** The currency of a contract whose exchange rate is not known yet. */
const YEN: ContractCurrency = { pair: "JPY/USD", rate: null, ratedAt: null };

describe.each(engines())("$name: the readings of contracts", (engine) => {
  test("are noted together with their records, and change no row", async () => {
    const { store, rows, shop, other } = await storeWithTwoShops(engine);
    const reads = [readAt(START, [1])];
    const [result] = await store.mirror.applyRecords([{ shop, records: [], reads }], START, []);
    expect(result).toEqual({ accepted: 0, changed: 0, events: 0 });
    expect((await rows("shops")).map(({ change_count }) => change_count)).toEqual([0, 0]);
    const read = stored(START, { 1: START });
    expect(await store.mirror.contractReads(shop, [CONTRACT, gid.contract(2)])).toEqual(new Map([[CONTRACT, read]]));
    expect(await store.mirror.contractReads(other, [CONTRACT])).toEqual(new Map());
  });

  test("are not noted if their records are refused", async () => {
    const { store, shop } = await storeWithShop(engine);
    const reads = [readAt(START)];
    const [result] = await store.mirror.applyRecords([{ shop, records: [order(1, 1)], reads }], START, []);
    expect(result).toHaveProperty("refused");
    expect(await store.mirror.contractReads(shop, [CONTRACT])).toEqual(new Map());
  });

  test("keep the latest time of each order, also from earlier readings", async () => {
    const { store, shop } = await storeWithShop(engine);
    for (let n = 1; n <= 10; n += 1) {
      const reads = [readAt(START + n, n === 10 ? [] : [n])];
      await store.mirror.applyRecords([{ shop, records: [], reads }], START, []);
    }
    const read = (await store.mirror.contractReads(shop, [CONTRACT])).get(CONTRACT);
    const latest = [2, 3, 4, 5, 6, 7, 8, 9].map((n) => [n, START + n]);
    expect(read).toEqual(stored(START + 10, Object.fromEntries(latest)));
  });

  test("count in the order of their commits: an older reading that commits later replaces a newer one", async () => {
    const { store, shop } = await storeWithShop(engine);
    const reads = [readAt(START - 1, [1]), readAt(START + 1, [2]), readAt(START)];
    for (const read of reads) await store.mirror.applyRecords([{ shop, records: [], reads: [read] }], START, []);
    const last = (await store.mirror.contractReads(shop, [CONTRACT])).get(CONTRACT);
    expect(last).toEqual(stored(START, { 1: START - 1 }));
  });

  test("keep the cycles of the renewals until a reading brings others", async () => {
    const { store, shop } = await storeWithShop(engine);
    const afterReading = async (fields: Partial<ContractRead>) => {
      await store.mirror.applyRecords([{ shop, records: [], reads: [{ ...readAt(START), ...fields }] }], START, []);
      return (await store.mirror.contractReads(shop, [CONTRACT])).get(CONTRACT)?.renewals;
    };
    expect(await afterReading({})).toEqual([]);
    const runs = [[1, 2] as const, [5, 7] as const];
    expect(await afterReading({ renewals: runs })).toEqual(runs);
    expect(await afterReading({})).toEqual(runs);
    expect(await afterReading({ renewals: [], renewalsBefore: runs })).toEqual([]);
  });

  test("are refused with their records if the cycles of the renewals changed since they began", async () => {
    const { store, shop } = await storeWithShop(engine);
    const [runs, others] = [[[1, 2] as const], [[1, 3] as const]];
    const readWith = (fields: Partial<ContractRead>) => ({
      shop,
      records: [],
      reads: [{ ...readAt(START), ...fields }],
    });
    const first = readWith({ renewals: runs, renewalsBefore: [] });
    const late = readWith({ renewals: others, renewalsBefore: [] });
    const refused = { refused: { index: 0, field: "", reason: expect.stringContaining("outdated reading") } };
    // A commit of several submissions refuses the same submission as separate commits do.
    expect(await store.mirror.applyRecords([first, late], START, [])).toMatchObject([{ accepted: 0 }, refused]);
    expect(await store.mirror.applyRecords([late], START, [])).toMatchObject([refused]);
    const read = (await store.mirror.contractReads(shop, [CONTRACT])).get(CONTRACT);
    expect(read?.renewals).toEqual(runs);
    const next = readWith({ renewals: others, renewalsBefore: runs });
    expect(await store.mirror.applyRecords([next], START, [])).toMatchObject([{ accepted: 0 }]);
  });

  test("keep the rate of the contract's newest order, and a reading without rates keeps what is stored", async () => {
    const { store, shop } = await storeWithShop(engine);
    const rated = (to: number, ratedAt: number | null): ContractCurrency => ({
      ...YEN,
      rate: { from: 3000, to },
      ratedAt,
    });
    const afterReading = async (currency?: ContractCurrency | null) => {
      const reads = [{ ...readAt(START), ...(currency !== undefined && { currency }) }];
      await store.mirror.applyRecords([{ shop, records: [], reads }], START, []);
      return (await store.mirror.contractReads(shop, [CONTRACT])).get(CONTRACT)?.currency;
    };
    expect(await afterReading(YEN)).toEqual(YEN);
    expect(await afterReading(rated(20, null))).toEqual(rated(20, null));
    expect(await afterReading(rated(21, START))).toEqual(rated(21, START));
    expect(await afterReading()).toEqual(rated(21, START));
    expect(await afterReading(rated(22, START - 1))).toEqual(rated(21, START));
    expect(await afterReading(rated(23, START + 1))).toEqual(rated(23, START + 1));
    const dinars = { ...rated(24, START), pair: "KWD/USD" };
    expect(await afterReading(dinars)).toEqual(dinars);
    expect(await afterReading(null)).toBeNull();
  });

  test("give the newest rate of a currency in the shop, and the contracts without a rate", async () => {
    const { store, shop, other } = await storeWithTwoShops(engine);
    const note = (of: MirroredShop, n: number, currency: ContractCurrency) =>
      store.mirror.applyRecords(
        [{ shop: of, records: [], reads: [{ ...readAt(START), contract: gid.contract(n), currency }] }],
        START,
        [],
      );
    const rated = (to: number, ratedAt: number | null) => ({ ...YEN, rate: { from: 3000, to }, ratedAt });
    for (const n of [1, 2, 3]) await note(shop, n, YEN);
    await note(shop, 4, { ...YEN, pair: "KWD/USD" });
    await note(other, 5, YEN);
    expect(await store.mirror.newestRate(shop, YEN.pair)).toBeUndefined();
    await note(shop, 6, rated(20, START + 1));
    await note(shop, 7, rated(21, START));
    await note(shop, 8, rated(22, null));
    expect(await store.mirror.newestRate(shop, YEN.pair)).toEqual({ from: 3000, to: 20 });
    expect(await store.mirror.newestRate(shop, "KWD/USD")).toBeUndefined();
    expect(await store.mirror.newestRate(other, YEN.pair)).toBeUndefined();
    const listed = (numbers: number[]) =>
      numbers.map((n) => ({ contract: gid.contract(n), pair: n === 4 ? "KWD/USD" : YEN.pair }));
    expect(await store.mirror.contractsWithoutRate(shop, "", 2)).toEqual(listed([1, 2]));
    expect(await store.mirror.contractsWithoutRate(shop, gid.contract(2), 9)).toEqual(listed([3, 4]));
    expect(await store.mirror.contractsWithoutRate(other, "", 9)).toEqual(listed([5]));
  });

  test("are looked up by an order's gid: all contracts that have the order, only in their own shop", async () => {
    const { store, shop, other } = await storeWithTwoShops(engine);
    const shared = { shopifyId: gid.order(7) };
    const records = [1, 2, 3].flatMap((n) => [customer(n), subscription(n)]);
    const orders = [order(1, 1, shared), order(2, 1, shared), order(3, 1), order(3, 2, { shopifyId: null })];
    await commit(store, shop, [...records, ...orders]);
    await commit(store, other, [customer(4), subscription(4), order(4, 1, shared)]);
    const contracts = async (gidOfOrder: string) => (await store.mirror.contractsOfOrder(shop, gidOfOrder)).toSorted();
    expect(await contracts(gid.order(7))).toEqual([gid.contract(1), gid.contract(2)]);
    expect(await contracts(gid.order(3001))).toEqual([gid.contract(3)]);
    expect(await contracts(gid.order(8))).toEqual([]);
  });
});

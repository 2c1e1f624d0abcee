import { describe, expect, spyOn, test } from "bun:test";
import * as fc from "fast-check";
import { type CopyState, type CopyStore, copy } from "../../src/client/copy.ts";
import { createRequester } from "../../src/client/requester.ts";
import { createResourceReader } from "../../src/client/resource-reader.ts";
import { cleanUp } from "../support/cleanup.ts";
import { FakeApi, type FakeRow, refusal } from "../support/fake-api.ts";

/** A store in memory. `fails` makes the next save fail. */
class MemoryStore implements CopyStore<FakeRow> {
  readonly rows = new Map<string, FakeRow>();
  state: CopyState | undefined;
  fails = false;
  cleared = 0;

  load = async () => this.state;

  async save(rows: readonly FakeRow[], state: CopyState): Promise<void> {
    if (this.fails) throw new Error("the disk is full");
    for (const row of rows) this.rows.set(row.id, row);
    this.state = state;
  }

  async clear(): Promise<void> {
    this.cleared += 1;
    this.rows.clear();
    this.state = undefined;
  }

  sorted(): FakeRow[] {
    return [...this.rows.values()].sort((a, b) => (a.id < b.id ? 1 : -1));
  }
}

function readerOf(api: FakeApi) {
  let ms = 0;
  const sleep = async (waitMs: number) => {
    ms += waitMs;
  };
  const request = createRequester({ url: api.url, key: "cad_pk_test" }, { clock: () => ms, random: () => 1, sleep });
  return createResourceReader<FakeRow, object>("orders", request);
}

test("a copy reads everything once, and later only what changed", async () => {
  const api = new FakeApi(5);
  api.pageRows = 2;
  const store = new MemoryStore();
  expect(await copy(readerOf(api), store)).toEqual({ rows: 5, anew: false });
  expect(store.sorted()).toEqual(api.rows());

  api.put("ord_3", 33);
  api.requests.length = 0;
  expect(await copy(readerOf(api), store)).toEqual({ rows: 1, anew: false });
  expect(store.sorted()).toEqual(api.rows());
  expect(api.requests.map(({ query }) => query)).toEqual([{ since: "1~5", limit: "250" }]);
});

test("an interrupted first walk continues after its last page, with the checkpoint of its first page", async () => {
  const api = new FakeApi(6);
  api.pageRows = 2;
  const store = new MemoryStore();
  let count = 0;
  api.before = () => {
    count += 1;
    if (count === 2) api.put("ord_5", 55);
    return count === 3 ? refusal(401, "unauthorized") : undefined;
  };
  await expect(copy(readerOf(api), store)).rejects.toThrow("It is unauthorized.");
  await expect(copy(readerOf(api), store)).resolves.toEqual({ rows: 3, anew: false });
  expect(store.sorted()).toEqual(api.rows());
});

test("after a restore, copy clears the store and reads all rows again", async () => {
  const api = new FakeApi(3);
  const store = new MemoryStore();
  await copy(readerOf(api), store);
  api.restore("ord_1");
  expect(await copy(readerOf(api), store)).toEqual({ rows: 2, anew: true });
  expect(store.sorted()).toEqual(api.rows());
  expect(store.cleared).toBe(1);
});

test("with the key of another shop, copy throws, and the rows stay, also in the middle of the first walk", async () => {
  const api = new FakeApi(6);
  api.pageRows = 2;
  const store = new MemoryStore();
  let count = 0;
  api.before = () => (++count === 3 ? refusal(401, "unauthorized") : undefined);
  await expect(copy(readerOf(api), store)).rejects.toThrow("It is unauthorized.");
  for (const rows of [4, 6]) {
    api.isOtherShop = true;
    await expect(copy(readerOf(api), store)).rejects.toMatchObject({ code: "bad_cursor", reason: "other_shop" });
    expect([store.cleared, store.sorted().length]).toEqual([0, rows]);
    api.isOtherShop = false;
    await copy(readerOf(api), store);
  }
});

test("a restore in the middle of the first walk is noticed before the walk continues", async () => {
  const api = new FakeApi(6);
  api.pageRows = 2;
  const store = new MemoryStore();
  let count = 0;
  api.before = () => (++count === 3 ? refusal(401, "unauthorized") : undefined);
  await expect(copy(readerOf(api), store)).rejects.toThrow("It is unauthorized.");
  api.restore("ord_2", "ord_5");
  expect(await copy(readerOf(api), store)).toEqual({ rows: 4, anew: true });
  expect(store.sorted()).toEqual(api.rows());
});

test.each([
  ["of a first list", 400, "bad_cursor", false],
  ["of changes, for another reason than a restore,", 401, "unauthorized", true],
])("a refusal %s is an error, and clears nothing", async (_name, status, code, isCopied) => {
  const api = new FakeApi(3);
  const store = new MemoryStore();
  if (isCopied) await copy(readerOf(api), store);
  api.before = () => refusal(status, code);
  await expect(copy(readerOf(api), store)).rejects.toThrow(`It is ${code}.`);
  expect({ cleared: store.cleared, rows: store.sorted() }).toEqual({ cleared: 0, rows: isCopied ? api.rows() : [] });
});

test("copy throws an error of the store, and the next run still reads every row", async () => {
  const api = new FakeApi(3);
  const store = new MemoryStore();
  await copy(readerOf(api), store);
  api.put("ord_9", 9);
  store.fails = true;
  await expect(copy(readerOf(api), store)).rejects.toThrow("the disk is full");
  store.fails = false;
  await copy(readerOf(api), store);
  expect(store.sorted()).toEqual(api.rows());
});

test("any interleaving of changes, faults and restores leaves a copy that equals the mirror", async () => {
  const event = fc.oneof(
    { weight: 6, arbitrary: fc.record({ id: fc.nat(9), value: fc.nat(99) }) },
    { weight: 2, arbitrary: fc.constant("fault" as const) },
    { weight: 1, arbitrary: fc.constant("restore" as const) },
  );
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(event, { maxLength: 3 }), { maxLength: 30 }),
      fc.integer({ min: 1, max: 4 }),
      async (steps, pageRows) => {
        const api = new FakeApi(4);
        api.pageRows = pageRows;
        const store = new MemoryStore();
        const rest = [...steps];
        // Changes the mirror before each request.
        api.before = () => {
          let answer: Response | undefined;
          for (const one of rest.shift() ?? []) {
            if (one === "fault") answer = refusal(401, "unauthorized");
            else if (one === "restore") api.restore(`ord_${rest.length % 10}`);
            else api.put(`ord_${one.id}`, one.value);
          }
          return answer;
        };
        while (rest.length > 0) await copy(readerOf(api), store).catch(() => undefined);
        await copy(readerOf(api), store);
        expect(store.sorted()).toEqual(api.rows());
        await cleanUp();
      },
    ),
    { numRuns: 100 },
  );
});

describe("with everyMs", () => {
  test("a copy continues until the signal, also after temporary errors", async () => {
    const api = new FakeApi(1);
    const store = new MemoryStore();
    const stop = new AbortController();
    const told: string[] = [];
    let rounds = 0;
    const work = copy(readerOf(api), store, {
      everyMs: 1,
      signal: stop.signal,
      onTrouble: ({ message }) => {
        told.push(message);
        api.before = () => undefined;
      },
      onCurrent: () => {
        rounds += 1;
        if (rounds === 1) {
          api.put("ord_7", 7);
          api.before = () => refusal(503, "unavailable");
        }
        if (rounds === 2) stop.abort(new Error("enough"));
      },
    });
    await expect(work).rejects.toThrow("enough");
    expect(told).toEqual(["It is unavailable."]);
    expect(store.sorted()).toEqual(api.rows());
  });

  test.each([
    ["3600", 3_600_000],
    // A timer takes at most 2 ** 31 - 1 ms. With a longer time, it would fire at once.
    ["999999999", 2 ** 31 - 1],
    ["1", 60_000],
  ])("the next try comes after everyMs or Retry-After %p, whichever is longer", async (retryAfter, waitMs) => {
    const api = new FakeApi(1);
    api.before = () => refusal(503, "unavailable", { "Retry-After": retryAfter });
    const stop = new AbortController();
    const timers = spyOn(globalThis, "setTimeout");
    const onTrouble = () => stop.abort(new Error("enough"));
    const work = copy(readerOf(api), new MemoryStore(), { everyMs: 60_000, signal: stop.signal, onTrouble });
    await expect(work).rejects.toThrow("enough");
    const [, lastMs] = timers.mock.calls.at(-1) ?? [];
    timers.mockRestore();
    expect(lastMs).toBe(waitMs);
  });

  test("a value that is not a time is refused", async () => {
    for (const everyMs of [0, Number.NaN, Number.POSITIVE_INFINITY])
      await expect(copy(readerOf(new FakeApi(1)), new MemoryStore(), { everyMs })).rejects.toThrow(
        "everyMs must be a number",
      );
  });

  test("a refused key ends the copy", async () => {
    const api = new FakeApi(1);
    api.before = () => refusal(401, "unauthorized");
    await expect(copy(readerOf(api), new MemoryStore(), { everyMs: 1 })).rejects.toThrow("It is unauthorized.");
  });
});

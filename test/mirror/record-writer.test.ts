import { describe, expect, test } from "bun:test";
import type { CommitResult, Submission } from "../../src/domain/decide/commit.ts";
import type { MirrorRecord } from "../../src/domain/records/platform-records.ts";
import type { MirroredShop } from "../../src/domain/shop.ts";
import { createRecordWriter } from "../../src/mirror/record-writer.ts";
import type { MirrorStore, TextSearch } from "../../src/store/port/mirror.ts";
import { StoreError } from "../../src/store/port/store-error.ts";
import { START, testApp } from "../support/app.ts";
import { eventually } from "../support/eventually.ts";
import { customer, gid, line, subscription } from "../support/records.ts";

const shop = { id: 1, domain: "alpha.myshopify.com", firstDomain: "alpha.myshopify.com" };

const redactionOf = (n: number) => ({ type: "redaction", shopifyId: gid.customer(n), asOf: 1 }) as const;

/**
 * A mirror store that notes which submissions share a commit, and the searches for redactions. The test can end
 * searches.
 */
class Commits implements Pick<MirrorStore, "applyRecords" | "searchTexts"> {
  readonly groups: number[] = [];
  /** The searches that each commit got. */
  readonly used: TextSearch[][] = [];
  readonly searches: { shopId: number; people: string[]; end: PromiseWithResolvers<void> }[] = [];
  /** How many searches the writer has received and not ended yet. */
  open = 0;
  /** Whether each search waits until the test ends it. */
  isSlow = false;
  /** The error with which the next commit fails. */
  failure: StoreError | undefined;

  async searchTexts(of: MirroredShop, people: ReadonlySet<string>): Promise<TextSearch> {
    const end = Promise.withResolvers<void>();
    this.searches.push({ shopId: of.id, people: [...people], end });
    if (!this.isSlow) end.resolve();
    await end.promise;
    this.open += 1;
    return {
      shop: of,
      people,
      end: () => {
        this.open -= 1;
      },
    };
  }

  async applyRecords(
    submissions: readonly Submission[],
    _now: number,
    searches: readonly TextSearch[],
  ): Promise<CommitResult[]> {
    this.groups.push(submissions.length);
    this.used.push([...searches]);
    const { failure } = this;
    this.failure = undefined;
    if (failure !== undefined) throw failure;
    if (
      submissions.some(({ records }) =>
        records.some((record) => "shopifyId" in record && record.shopifyId === "broken"),
      )
    )
      throw new Error("a defect");
    return submissions.map(({ records }) => ({ accepted: records.length, changed: 0, events: 0 }));
  }
}

/** Makes a record writer. @param isSlow whether searches wait for the test */
function writing(isSlow = false) {
  const commits = new Commits();
  commits.isSlow = isSlow;
  const recordWriter = createRecordWriter(commits, Date.now);
  const submit = (records: MirrorRecord[], to: MirroredShop = shop) => recordWriter.submit({ shop: to, records });
  return { commits, recordWriter, submit };
}

test("submissions that wait at the same time share a commit, and each gets its own result", async () => {
  const { commits, submit } = writing();
  const answers = await Promise.all([1, 2, 3].map((n) => submit([customer(n), customer(n + 10)])));
  expect(commits.groups).toEqual([3]);
  expect(answers).toEqual(new Array(3).fill({ accepted: 2, changed: 0, events: 0 }));
});

test("a commit has a largest size, and a larger submission gets a commit of its own", async () => {
  const { commits, submit } = writing();
  const many = Array.from({ length: 1500 }, (_, n) => customer(n));
  await Promise.all([submit(many), submit(many), submit([...many, ...many]), submit([])]);
  expect(commits.groups).toEqual([1, 1, 1, 1]);
});

test("a redaction counts like many records, so that a commit has few redactions", async () => {
  const { commits, submit } = writing();
  const shops = Array.from({ length: 24 }, (_, n) => ({ ...shop, id: n + 1 }));
  await Promise.all(shops.map((each) => submit([redactionOf(1)], each)));
  expect(commits.groups.every((size) => size <= 10)).toBe(true);
  expect(commits.groups.reduce((sum, size) => sum + size, 0)).toBe(24);
});

test("a commit has 250 records at most, and fewer with many line items", async () => {
  const { commits, submit } = writing();
  const submitAll = (all: MirrorRecord[]) => Promise.all(all.map((record) => submit([record])));
  await submitAll(Array.from({ length: 600 }, (_, n) => customer(n)));
  await submitAll(Array.from({ length: 20 }, (_, n) => subscription(n, { lines: new Array(240).fill(line) })));
  expect(commits.groups).toEqual([250, 250, 100, 10, 10]);
});

test("a failed commit rejects all its submissions and no later ones", async () => {
  const { commits, submit } = writing();
  commits.failure = new StoreError("lost", new Error("disk full"));
  const failed = await Promise.allSettled([submit([]), submit([])]);
  expect(failed.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  expect(await submit([])).toEqual({ accepted: 0, changed: 0, events: 0 });
});

test("a submission that cannot be applied fails alone", async () => {
  const { submit } = writing();
  const broken = { ...customer(1), shopifyId: "broken" };
  const results = await Promise.allSettled([submit([customer(1)]), submit([broken]), submit([customer(2)])]);
  expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
});

test("a broken constraint fails only the submission that broke it", async () => {
  const { commits, submit } = writing();
  commits.failure = new StoreError("conflict", new Error("constraint failed"));
  const results = await Promise.allSettled([submit([]), submit([])]);
  expect(results.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled"]);
  expect(commits.groups).toEqual([2, 1, 1]);
});

test("drain waits for all submissions", async () => {
  const { recordWriter, submit } = writing();
  let answered = false;
  void submit([]).then(() => {
    answered = true;
  });
  await recordWriter.drain();
  await Promise.resolve();
  expect(answered).toBe(true);
});

describe("a redaction", () => {
  test("is committed when its search has ended, and other submissions do not wait for the search", async () => {
    const { commits, submit } = writing(true);
    const redacting = submit([redactionOf(1)]);
    await eventually(() => commits.searches.length === 1);
    await submit([customer(1)]);
    await submit([customer(1)], { ...shop, id: 2 });
    expect(commits.used).toEqual([[], []]);
    commits.searches[0]?.end.resolve();
    await redacting;
    expect(commits.used[2]).toMatchObject([{ shop, people: new Set([gid.customer(1)]) }]);
    expect(commits.open).toBe(0);
  });

  test("that waits while its shop is searched shares the next search with at most ten others", async () => {
    const { commits, submit } = writing(true);
    const order: number[] = [];
    const redact = (n: number) => submit([redactionOf(n)]).then(() => void order.push(n));
    const all = [redact(0)];
    await eventually(() => commits.searches.length === 1);
    for (let n = 1; n <= 12; n += 1) all.push(redact(n));
    for (let n = 0; n < 3; n += 1) {
      await eventually(() => commits.searches.length === n + 1);
      commits.searches[n]?.end.resolve();
    }
    await Promise.all(all);
    expect(commits.searches.map(({ people }) => people.length)).toEqual([1, 10, 2]);
    expect(order).toEqual(Array.from({ length: 13 }, (_, n) => n));
    expect(commits.open).toBe(0);
  });

  test("of a shop waits while four other shops are searched", async () => {
    const { commits, submit } = writing(true);
    const all = [1, 2, 3, 4, 5, 6].map((id) => submit([redactionOf(1)], { ...shop, id }));
    await eventually(() => commits.searches.length === 4);
    await submit([]);
    expect(commits.searches.map(({ shopId }) => shopId)).toEqual([1, 2, 3, 4]);
    for (let n = 0; n < 6; n += 1) {
      await eventually(() => commits.searches.length > n);
      commits.searches[n]?.end.resolve();
    }
    await Promise.all(all);
    expect(commits.searches.map(({ shopId }) => shopId)).toEqual([1, 2, 3, 4, 5, 6]);
  });

  test("whose search or commit fails is rejected, and the next redaction starts a new search", async () => {
    const { commits, submit } = writing(true);
    const redact = () => submit([redactionOf(1)]);
    const first = redact();
    await eventually(() => commits.searches.length === 1);
    commits.searches[0]?.end.reject(new StoreError("busy", new Error("database is locked")));
    await expect(first).rejects.toThrow("database is locked");
    commits.isSlow = false;
    commits.failure = new StoreError("lost", new Error("disk full"));
    await expect(redact()).rejects.toThrow("disk full");
    expect(await redact()).toEqual({ accepted: 1, changed: 0, events: 0 });
    expect([commits.searches.length, commits.open]).toEqual([3, 0]);
  });

  test("under way delays drain", async () => {
    const { commits, submit, recordWriter } = writing(true);
    void submit([redactionOf(1)]);
    await eventually(() => commits.searches.length === 1);
    const drained = recordWriter.drain();
    commits.searches[0]?.end.resolve();
    await drained;
    expect(commits.groups).toEqual([1]);
  });
});

test("a redaction in a shop with many texts does not delay a record of another shop", async () => {
  const { app, addShop } = await testApp();
  const [{ shop: large }, { shop: small }] = [
    await addShop("large.myshopify.com"),
    await addShop("small.myshopify.com"),
  ];
  const fields = { webhookId: null, topic: "orders/create", subject: "a", needsPlatform: true, triggeredAt: START };
  const receipts = Array.from({ length: 400 }, () => ({ ...fields, shopId: large.id, body: "{}" }));
  await app.store.inbox.receive(receipts, START);
  const recordWriter = createRecordWriter(app.store.mirror, Date.now);
  let isRedacted = false;
  const redacting = recordWriter.submit({ shop: large, records: [redactionOf(1)] }).then(() => {
    isRedacted = true;
  });
  for (let n = 0; n < 3; n += 1) await recordWriter.submit({ shop: small, records: [customer(n)] });
  expect(isRedacted).toBe(false);
  await redacting;
});

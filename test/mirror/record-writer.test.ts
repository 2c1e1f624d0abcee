import { expect, test } from "bun:test";
import type { CommitResult, Submission } from "../../src/domain/commit.ts";
import type { MirrorRecord } from "../../src/domain/platform-records.ts";
import { createRecordWriter } from "../../src/mirror/record-writer.ts";
import type { MirrorStore } from "../../src/store/mirror.ts";
import { StoreError } from "../../src/store/store-error.ts";
import { customer, line, subscription } from "../support/records.ts";

const shop = { id: 1, domain: "alpha.myshopify.com" };

/** Records which submissions share a commit. */
class Commits implements Pick<MirrorStore, "applyRecords"> {
  readonly groups: number[] = [];
  /** What the next commit fails with. */
  failure: StoreError | undefined;

  async applyRecords(submissions: readonly Submission[]): Promise<CommitResult[]> {
    this.groups.push(submissions.length);
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

test("submissions that wait at the same time share a commit, and each gets its own result", async () => {
  const commits = new Commits();
  const recordWriter = createRecordWriter(commits, Date.now);
  const answers = await Promise.all(
    [1, 2, 3].map((n) => recordWriter.submit({ shop, records: [customer(n), customer(n + 10)] })),
  );
  expect(commits.groups).toEqual([3]);
  expect(answers).toEqual(new Array(3).fill({ accepted: 2, changed: 0, events: 0 }));
});

test("a commit has a largest size, and a larger submission gets a commit of its own", async () => {
  const commits = new Commits();
  const recordWriter = createRecordWriter(commits, Date.now);
  const many = Array.from({ length: 1500 }, (_, n) => customer(n));
  await Promise.all([
    recordWriter.submit({ shop, records: many }),
    recordWriter.submit({ shop, records: many }),
    recordWriter.submit({ shop, records: [...many, ...many] }),
    recordWriter.submit({ shop, records: [] }),
  ]);
  expect(commits.groups).toEqual([1, 1, 1, 1]);
});

test("a redaction counts as many records, so that a commit has few of them", async () => {
  const commits = new Commits();
  const recordWriter = createRecordWriter(commits, Date.now);
  const redaction = { type: "redaction", shopifyId: "gid://shopify/Customer/1", asOf: 1 } as const;
  await Promise.all(Array.from({ length: 60 }, () => recordWriter.submit({ shop, records: [redaction] })));
  expect(commits.groups).toEqual([25, 25, 10]);
});

test("a commit has 250 records at most, and fewer with many line items", async () => {
  const commits = new Commits();
  const recordWriter = createRecordWriter(commits, Date.now);
  const submitAll = (all: MirrorRecord[]) =>
    Promise.all(all.map((record) => recordWriter.submit({ shop, records: [record] })));
  await submitAll(Array.from({ length: 600 }, (_, n) => customer(n)));
  await submitAll(Array.from({ length: 20 }, (_, n) => subscription(n, { lines: new Array(240).fill(line) })));
  expect(commits.groups).toEqual([250, 250, 100, 10, 10]);
});

test("a failed commit rejects all its submissions and no later ones", async () => {
  const commits = new Commits();
  const recordWriter = createRecordWriter(commits, Date.now);
  commits.failure = new StoreError("lost", new Error("disk full"));
  const failed = await Promise.allSettled([
    recordWriter.submit({ shop, records: [] }),
    recordWriter.submit({ shop, records: [] }),
  ]);
  expect(failed.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  expect(await recordWriter.submit({ shop, records: [] })).toEqual({ accepted: 0, changed: 0, events: 0 });
});

test("a submission that cannot be applied fails alone", async () => {
  const commits = new Commits();
  const recordWriter = createRecordWriter(commits, Date.now);
  const broken = { ...customer(1), shopifyId: "broken" };
  const results = await Promise.allSettled([
    recordWriter.submit({ shop, records: [customer(1)] }),
    recordWriter.submit({ shop, records: [broken] }),
    recordWriter.submit({ shop, records: [customer(2)] }),
  ]);
  expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
});

test("a broken constraint fails the submission that broke it, alone", async () => {
  const commits = new Commits();
  const writer = createRecordWriter(commits, Date.now);
  commits.failure = new StoreError("conflict", new Error("constraint failed"));
  const results = await Promise.allSettled([
    writer.submit({ shop, records: [] }),
    writer.submit({ shop, records: [] }),
  ]);
  expect(results.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled"]);
  expect(commits.groups).toEqual([2, 1, 1]);
});

test("drain waits for what was submitted", async () => {
  const recordWriter = createRecordWriter(new Commits(), Date.now);
  let answered = false;
  void recordWriter.submit({ shop, records: [] }).then(() => {
    answered = true;
  });
  await recordWriter.drain();
  await Promise.resolve();
  expect(answered).toBe(true);
});

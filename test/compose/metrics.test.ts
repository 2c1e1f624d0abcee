import { test } from "bun:test";
import { join } from "node:path";
import { createMetrics } from "../../src/compose/metrics.ts";
import { expectStored } from "../support/stored-text.ts";

test("a scrape has the stored metrics, with durations in seconds, in the buckets that they reach", async () => {
  const metrics = createMetrics({
    ...{ version: "1", engine: "sqlite", isReady: () => true, fewestPoints: () => 900, now: () => 60_000 },
    figures: () => ({
      totals: {
        deliveries: { pending: 1, retrying: 2, dead: 3 },
        inbox: { waiting: 4, failed: 5 },
        ...{ firstDueAt: 53_000, refusedShops: 8, reconciledAt: 51_000 },
      },
      database: { bytes: 10, walBytes: 11, lastBackupAt: 12_000 },
      diskFreeBytes: 13,
    }),
  });
  metrics.addRoutes([{ path: "/a", methods: {} }]);
  const context = { id: "", client: () => "", isSecure: () => true };
  const answer = { method: "GET", response: new Response(), context, address: () => "" };
  metrics.noteAnswer({ ...answer, route: "/a", tookMs: 1_500 });
  metrics.noteAttempt("trigger", true, 400);
  metrics.noteCommit(14);
  await expectStored(join(import.meta.dir, "metrics.txt"), await metrics.text());
});

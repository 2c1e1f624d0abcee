import { expect, test } from "bun:test";
import { createMetrics } from "../../src/compose/metrics.ts";

test("durations are in seconds, in the buckets that they reach", async () => {
  const metrics = createMetrics({
    ...{ version: "1", engine: "sqlite", isReady: () => true, fewestPoints: () => 1, now: () => 0 },
    figures: () => undefined,
  });
  const context = { id: "", client: () => "", isSecure: () => true };
  const response = new Response();
  metrics.noteAnswer({ route: "/a", method: "GET", response, tookMs: 1_500, context, address: () => "" });
  metrics.noteAttempt("webhook", false, 2_000);
  const text = await metrics.text();
  expect(text).toContain('sds_http_request_duration_seconds_sum{route="/a"} 1.5\n');
  expect(text).toContain('sds_http_request_duration_seconds_bucket{le="0.5",route="/a"} 0\n');
  expect(text).toContain('sds_http_request_duration_seconds_bucket{le="2.5",route="/a"} 1\n');
  expect(text).toContain("sds_delivery_attempt_duration_seconds_sum 2\n");
});

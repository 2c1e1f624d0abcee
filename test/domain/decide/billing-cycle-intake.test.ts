import { describe, expect, test } from "bun:test";
import { MapMirror } from "../../support/map-mirror.ts";
import { type AttemptText, billingCycle, order, subscription } from "../../support/records.ts";

describe("if the intake reports the same order", () => {
  const failed = order(1, 1, {
    status: "FAILED",
    shopifyId: null,
    attemptCount: 1,
    reason: "our words",
    nextRetryAt: "2026-02-09T00:00:00.000Z",
    retriesExhausted: false,
  });

  test("an attempt that the intake counted gives no second event, and its retry plan stays", () => {
    const mirror = MapMirror.of(subscription(1), failed);
    const { events } = mirror.apply(billingCycle(1, 1, ["card_declined@1"]));
    expect(events).toEqual([]);
    const [next] = mirror.apply(billingCycle(1, 1, ["card_declined@1", "card_declined@9"])).events;
    expect(next?.data).toMatchObject({
      attempt_count: 2,
      reason: "card_declined",
      next_retry_at: "2026-02-12T00:00:00.000Z",
    });
  });

  test("details without a count are not a new attempt, and the next attempt gives an event", () => {
    const { attemptCount: _count, ...uncounted } = failed;
    const mirror = MapMirror.of(subscription(1), billingCycle(1, 1, ["card_declined@1"]));
    expect(mirror.apply(uncounted).events).toEqual([]);
    const { events } = mirror.apply(billingCycle(1, 1, ["card_declined@1", "insufficient_funds@9"]));
    expect(events.map(({ data }) => [data["reason"], data["attempt_count"]])).toEqual([["insufficient_funds", 2]]);
  });

  test("an order that the intake reports as uncollectible stays so until a new attempt", () => {
    const mirror = MapMirror.of(subscription(1), { ...failed, status: "UNCOLLECTIBLE", retriesExhausted: true });
    mirror.apply(billingCycle(1, 1, ["card_declined@1"]));
    expect(mirror.theOrder(1, 1)?.status).toBe("UNCOLLECTIBLE");
  });

  test("a charge that only the platform reports gives an event, even if the intake counted the attempt", () => {
    const mirror = MapMirror.of(subscription(1), { ...failed, attemptCount: 2 });
    const { events } = mirror.apply(billingCycle(1, 1, ["card_declined@1", "charged@2"]));
    expect(events.map(({ topic }) => topic)).toEqual(["order.recovered"]);
  });
});

describe("when the contract has ended", () => {
  const declines = ["a@1", "b@2"] as const;
  const ended = { contractEnded: true };
  const told = (events: readonly { data: Record<string, unknown> }[]) =>
    events.map(({ data }) => [data["attempt_count"], data["next_retry_at"], data["retries_exhausted"]]);

  test("a declined order has no further retry, and the event of its last decline shows this", () => {
    const mirror = MapMirror.of(subscription(1));
    const { events } = mirror.apply(billingCycle(1, 1, declines, ended));
    expect(mirror.theOrder(1, 1)?.status).toBe("UNCOLLECTIBLE");
    expect(told(events)).toEqual([
      [1, "2026-02-02T00:00:00.000Z", false],
      [2, null, true],
    ]);
  });

  test("after the decline, the status changes without an event, and changes back if the contract becomes active", () => {
    const mirror = MapMirror.of(subscription(1), billingCycle(1, 1, declines));
    const fresh = mirror.theOrderRow(1, 1);
    expect(mirror.apply(billingCycle(1, 1, declines, ended)).events).toEqual([]);
    expect(mirror.theOrder(1, 1)?.status).toBe("UNCOLLECTIBLE");
    expect(mirror.apply(billingCycle(1, 1, declines)).events).toEqual([]);
    expect(mirror.theOrderRow(1, 1)).toEqual(fresh);
  });

  test("charged, waiting and skipped orders do not change", () => {
    const cycles: [AttemptText[], object, string][] = [
      [["a@1", "charged@2"], {}, "RECOVERED"],
      [["a@1", "waiting@2"], {}, "PENDING"],
      [[], { skipped: true }, "SKIPPED"],
    ];
    for (const [attempts, fields, status] of cycles) {
      const mirror = MapMirror.of(subscription(1), billingCycle(1, 1, attempts, { ...fields, ...ended }));
      expect(mirror.theOrder(1, 1)?.status).toBe(status as never);
    }
    const { events } = MapMirror.of(subscription(1)).apply(billingCycle(1, 1, ["a@1", "charged@2"], ended));
    expect(told(events)[0]).toEqual([1, "2026-02-02T00:00:00.000Z", false]);
  });

  test("a decline that only the intake reported does not change", () => {
    const given = order(1, 1, { status: "FAILED", shopifyId: null, reason: "our words" });
    const mirror = MapMirror.of(subscription(1), given, billingCycle(1, 1, [], ended));
    expect(mirror.theOrder(1, 1)?.status).toBe("FAILED");
    expect(mirror.apply(given).events).toEqual([]);
  });

  test("details of the intake stay, and count again if the contract becomes active", () => {
    const details = { attemptCount: 2, reason: "our words", nextRetryAt: "2026-02-20T00:00:00.000Z" };
    for (const retriesExhausted of [false, undefined]) {
      const given = {
        status: "FAILED" as const,
        shopifyId: null,
        ...details,
        ...(retriesExhausted === false && { retriesExhausted }),
      };
      const mirror = MapMirror.of(subscription(1), order(1, 1, given), billingCycle(1, 1, declines));
      mirror.apply(billingCycle(1, 1, declines, ended));
      expect(mirror.theOrder(1, 1)?.status).toBe("UNCOLLECTIBLE");
      mirror.apply(billingCycle(1, 1, declines));
      expect(mirror.theOrder(1, 1)?.status).toBe("FAILED");
      expect(mirror.theOrderRow(1, 1)).toMatchObject({
        reason: "our words",
        nextRetryAt: details.nextRetryAt,
        attemptCount: 2,
      });
    }
  });
});

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { MapMirror } from "../../support/map-mirror.ts";
import { type AttemptText, billingCycle, gid, subscription } from "../../support/records.ts";

describe("an order made of a cycle's attempts", () => {
  test.each<[string, AttemptText[], object]>([
    ["a charge", ["charged@1"], { status: "PAID", shopifyId: gid.order(1), totalCents: 1900 }],
    ["a decline", ["expired_card@1"], { status: "FAILED", shopifyId: null, totalCents: 2000 }],
    ["a charge after a decline", ["expired_card@1", "charged@2"], { status: "RECOVERED", shopifyId: gid.order(2) }],
    ["a decline for each attempt of the plan", ["a@1", "b@2", "c@5", "d@10"], { status: "UNCOLLECTIBLE" }],
    ["a waiting attempt", ["waiting@1"], { status: "PENDING", shopifyId: null }],
    ["a challenge after a decline", ["a@1", "waiting@2"], { status: "PENDING" }],
    // The attempts may stand in any order.
    ["a charge in front of the earlier decline", ["charged@2", "a@1"], { status: "RECOVERED" }],
    ["a decline after the charge", ["charged@1", "a@2"], { status: "PAID", shopifyId: gid.order(1), totalCents: 1900 }],
  ])("%s", (_name, attempts, expected) => {
    const mirror = MapMirror.of(subscription(1), billingCycle(1, 1, attempts));
    expect(mirror.theOrder(1, 1)).toMatchObject({ ...expected, billedAt: "2026-02-01T00:00:00.000Z" });
  });

  test("a skipped cycle is SKIPPED at its expected date, and PENDING after the skip is undone", () => {
    const mirror = MapMirror.of(
      subscription(1),
      billingCycle(1, 2, [], { skipped: true, expectedAt: "2026-03-01T00:00:00.000Z" }),
    );
    expect(mirror.theOrder(1, 2)).toMatchObject({
      status: "SKIPPED",
      billedAt: "2026-03-01T00:00:00.000Z",
      totalCents: 2000,
    });
    mirror.apply(billingCycle(1, 2, []));
    expect(mirror.theOrder(1, 2)).toMatchObject({ status: "PENDING" });
  });

  test("a cycle without attempts or a skip is not an order", () => {
    expect(MapMirror.of(subscription(1)).apply(billingCycle(1, 1, [])).rows).toEqual([]);
  });

  test("a decline after the charge is ignored", () => {
    const mirror = MapMirror.of(subscription(1));
    const attempts: AttemptText[] = ["charged@1", "a@2"];
    const { events } = mirror.apply(billingCycle(1, 1, attempts));
    expect(events.map(({ topic }) => topic)).not.toContain("order.failed");
    expect(mirror.theOrderRow(1, 1)).toMatchObject({ attemptCount: 1, declined: false });
    expect(mirror.apply(billingCycle(1, 1, attempts)).rows).toEqual([]);
  });

  test("a charged order stays charged, despite any older record", () => {
    const mirror = MapMirror.of(subscription(1), billingCycle(1, 1, ["charged@2"]));
    expect(mirror.apply(billingCycle(1, 1, ["waiting@2"])).rows).toEqual([]);
    expect(mirror.apply(billingCycle(1, 1, [])).rows).toEqual([]);
  });
});

describe("events", () => {
  test("each decline gives one event, with its own count and the plan's next retry", () => {
    const mirror = MapMirror.of(subscription(1), billingCycle(1, 1, ["a@1"]));
    const declines: AttemptText[] = ["a@1", "b@2", "c@5", "d@10"];
    const { events } = mirror.apply(billingCycle(1, 1, declines));
    const told = events.map(({ topic, data }) => [
      topic,
      data["attempt_count"],
      data["reason"],
      data["next_retry_at"],
      data["retries_exhausted"],
      data["order_id"],
    ]);
    expect(told).toEqual([
      ["order.failed", 2, "b", "2026-02-05T00:00:00.000Z", false, null],
      ["order.failed", 3, "c", "2026-02-10T00:00:00.000Z", false, null],
      ["order.failed", 4, "d", null, true, null],
    ]);
    expect(mirror.theOrderRow(1, 1)).toMatchObject({ attemptCount: 4, reason: "d", nextRetryAt: null });
    expect(mirror.apply(billingCycle(1, 1, declines)).events).toEqual([]);
  });

  test("an attempt without stock is counted, and repeats the wait of the plan", () => {
    const stock = "out_of_stock";
    const { events } = MapMirror.of(subscription(1)).apply(
      billingCycle(1, 1, [
        "out_of_stock@1",
        "out_of_stock@2",
        "a@3",
        "b@4",
        "out_of_stock@7",
        "c@10",
        "d@15",
        "out_of_stock@16",
      ]),
    );
    const told = events.map(({ data }) => [
      data["attempt_count"],
      data["reason"],
      String(data["next_retry_at"]).slice(0, 10),
      data["retries_exhausted"],
    ]);
    expect(told).toEqual([
      [1, stock, "2026-02-02", false],
      [2, stock, "2026-02-03", false],
      [3, "a", "2026-02-04", false],
      [4, "b", "2026-02-07", false],
      [5, stock, "2026-02-10", false],
      [6, "c", "2026-02-15", false],
      [7, "d", "null", true],
      [8, stock, "null", true],
    ]);
  });

  test("attempts in one record give the same events as attempts in one record each", () => {
    const cycle = fc.record({
      outcomes: fc.array(fc.constantFrom("a", "b", "out_of_stock", "charged"), { minLength: 1, maxLength: 12 }),
      knownCount: fc.nat(11),
      retryPlan: fc.constantFrom([], [1], [1, 3, 5]),
      contractEnded: fc.boolean(),
    });
    fc.assert(
      fc.property(cycle, ({ outcomes, knownCount, retryPlan, contractEnded }) => {
        // No attempt follows a charge.
        const end = outcomes.indexOf("charged");
        const tried = end === -1 ? outcomes : outcomes.slice(0, end + 1);
        const attempts = tried.map((outcome, index): AttemptText => `${outcome}@${index + 1}`);
        const told = (count: number) =>
          billingCycle(1, 1, attempts.slice(0, count), {
            retryPlan,
            contractEnded: contractEnded && count === attempts.length,
          });
        const known = Math.min(knownCount, attempts.length - 1);
        const mirrors = [MapMirror.of(subscription(1), told(known)), MapMirror.of(subscription(1), told(known))];
        const oneByOne = attempts.slice(known).flatMap((_, index) => mirrors[0]?.apply(told(known + index + 1)).events);
        expect(mirrors[1]?.apply(told(attempts.length)).events).toEqual(oneByOne as never);
      }),
    );
  });

  test("the time for many attempts grows with their number, not with its square", () => {
    let looks = 0;
    const record = billingCycle(
      1,
      1,
      Array.from({ length: 1000 }, () => "a@1"),
    );
    const attempts = record.attempts.map(({ outcome, ...rest }) => ({
      ...rest,
      get outcome() {
        looks += 1;
        return outcome;
      },
    }));
    expect(MapMirror.of(subscription(1)).apply({ ...record, attempts }).events).toHaveLength(1000);
    expect(looks).toBeLessThan(20_000);
  });

  test("a charge gives one event, order.recovered after a decline", () => {
    const mirror = MapMirror.of(subscription(1));
    const { events } = mirror.apply(billingCycle(1, 1, ["a@1", "charged@2"]));
    expect(events.map(({ topic, data }) => [topic, data["attempt_count"], data["total_cents"]])).toEqual([
      ["order.failed", 1, 2000],
      ["order.recovered", 2, 1900],
    ]);
    expect(mirror.apply(billingCycle(1, 1, ["charged@2"])).events).toEqual([]);
    expect(
      MapMirror.of(subscription(1))
        .apply(billingCycle(1, 1, ["charged@1"]))
        .events.map(({ topic }) => topic),
    ).toEqual(["order.charged"]);
  });

  test("a workflow starts for a declined renewal, and not for a declined checkout", () => {
    const mirror = MapMirror.of(subscription(1));
    const [renewal] = mirror.apply(billingCycle(1, 1, ["a@1"])).events;
    expect(renewal?.trigger).toEqual({
      handle: "billing-attempt-failed",
      customer: gid.customer(1),
      fields: { "Contract ID": gid.contract(1), Interval: "1 month", "Decline reason": "a", "Attempt count": 1 },
    });
    const [checkout] = mirror.apply(billingCycle(1, 0, ["a@1"], { source: "checkout" })).events;
    expect(checkout?.trigger).toBeUndefined();
  });
});

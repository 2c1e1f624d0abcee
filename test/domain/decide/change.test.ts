import { describe, expect, test } from "bun:test";
import { customerId } from "../../../src/domain/ids.ts";
import { START } from "../../support/app.ts";
import { MapMirror } from "../../support/map-mirror.ts";
import { cancelFlow, customer, gid, order, reward, subscription } from "../../support/records.ts";

const domain = "alpha.myshopify.com";
const mirrorOf = MapMirror.of;

describe("customer", () => {
  test("an absent field keeps the stored value, and null clears it", () => {
    const mirror = mirrorOf(
      customer(1, { email: "a@b.c", firstName: "A", marketingConsent: true, creditsCents: 5, loyaltyTier: 1 }),
    );
    mirror.apply(customer(1, { firstName: null, creditsCents: null }));
    expect(mirror.theCustomer(1)).toMatchObject({
      email: "a@b.c",
      firstName: null,
      marketingConsent: true,
      creditsCents: 0,
      loyaltyTier: 1,
    });
  });

  test("a repeated record changes nothing", () => {
    const mirror = mirrorOf(customer(1, { email: "a@b.c" }));
    expect(mirror.apply(customer(1, { email: "a@b.c" }), START + 1000).rows).toEqual([]);
    expect(mirror.apply(customer(1)).rows).toEqual([]);
  });

  test("older data of the platform does not undo newer data, and the consent has its own time", () => {
    const mirror = mirrorOf(customer(1, { email: "new@b.c", asOf: 2000 }));
    expect(mirror.apply(customer(1, { email: "old@b.c", asOf: 1000 })).rows).toEqual([]);
    mirror.apply(customer(1, { marketingConsent: true, asOf: 1500 }));
    mirror.apply(customer(1, { marketingConsent: false, asOf: 1400 }));
    expect(mirror.theCustomer(1)).toMatchObject({ email: "new@b.c", marketingConsent: true });
  });

  test("data from the far future does not block later data", () => {
    const far = Date.UTC(9999, 0, 1);
    const mirror = mirrorOf(customer(1, { email: "old@b.c", marketingConsent: false, asOf: far, consentAsOf: far }));
    const fields = { email: "new@b.c", marketingConsent: true, asOf: START + 60_000 };
    mirror.apply(customer(1, fields), START + 60_000);
    expect(mirror.theCustomer(1)).toMatchObject({ email: "new@b.c", marketingConsent: true });
    mirror.apply(customer(1, { email: "old@b.c", asOf: START + 50_000 }), START + 60_000);
    expect(mirror.theCustomer(1)).toMatchObject({ email: "new@b.c" });
  });

  test("data from a clock that is slightly ahead keeps its order", () => {
    const mirror = mirrorOf(customer(1, { email: "new@b.c", asOf: START + 40_000 }));
    mirror.apply(customer(1, { email: "old@b.c", asOf: START + 30_000 }));
    expect(mirror.theCustomer(1)).toMatchObject({ email: "new@b.c" });
  });

  test("a redaction removes the personal data for good and keeps the row", () => {
    const mirror = mirrorOf(
      customer(1, { email: "a@b.c", firstName: "A", lastName: "B", creditsCents: 7, asOf: 1000 }),
    );
    mirror.apply({ type: "redaction", shopifyId: gid.customer(1), asOf: 2000 });
    mirror.apply(customer(1, { email: "a@b.c", asOf: 1500 }));
    expect(mirror.theCustomer(1)).toMatchObject({ email: null, firstName: null, lastName: null, creditsCents: 7 });
  });

  test("a redaction of an unknown customer also blocks late data of the same time or earlier", () => {
    const mirror = mirrorOf({ type: "redaction", shopifyId: gid.customer(1), asOf: 2000 });
    for (const asOf of [1000, 2000]) mirror.apply(customer(1, { email: "a@b.c", asOf }));
    expect(mirror.theCustomer(1)?.email).toBeNull();
    mirror.apply(customer(1, { email: "a@b.c", asOf: 2001 }));
    expect(mirror.theCustomer(1)?.email).toBe("a@b.c");
  });
});

describe("subscription", () => {
  test("an unknown customer is added without data", () => {
    const mirror = mirrorOf(subscription(1));
    expect(mirror.theCustomer(1)).toEqual({
      id: customerId(domain, gid.customer(1)),
      shopifyId: gid.customer(1),
      email: null,
      firstName: null,
      lastName: null,
      marketingConsent: false,
      creditsCents: 0,
      loyaltyTier: 0,
      subscriptionCount: 1,
      createdAt: "2026-03-01T12:00:00.000Z",
    });
  });

  test("subscriptionCount counts contracts of any status, and moves with a contract", () => {
    const mirror = mirrorOf(subscription(1), subscription(2, { customer: gid.customer(1), status: "CANCELLED" }));
    expect(mirror.theCustomer(1)?.subscriptionCount).toBe(2);
    mirror.apply(subscription(2, { customer: gid.customer(9), status: "CANCELLED" }));
    expect([mirror.theCustomer(1)?.subscriptionCount, mirror.theCustomer(9)?.subscriptionCount]).toEqual([1, 1]);
  });

  test("the sort date never changes", () => {
    const mirror = mirrorOf(subscription(1));
    mirror.apply(subscription(1, { startedAt: "2020-01-01T00:00:00.000Z", status: "PAUSED" }));
    expect(mirror.theSubscription(1)).toMatchObject({ startedAt: "2026-01-01T00:00:00.000Z", status: "PAUSED" });
  });

  test.each([
    ["10", "9", "PAUSED"],
    ["9", "10", "ACTIVE"],
    ["10", "10", "ACTIVE"],
    ["99999999999999999998", "99999999999999999999", "ACTIVE"],
    ["99999999999999999999", "99999999999999999998", "PAUSED"],
    ["10", undefined, "ACTIVE"],
  ])("after revision %s, revision %s leaves %s", (stored, given, status) => {
    const mirror = mirrorOf(subscription(1, { status: "PAUSED", revision: stored }));
    mirror.apply(subscription(1, given === undefined ? {} : { revision: given }));
    expect(mirror.theSubscription(1)?.status).toBe(status as "ACTIVE");
  });

  test.each(["CANCELLED", "EXPIRED"] as const)("%s has no next billing date", (status) => {
    expect(mirrorOf(subscription(1, { status })).theSubscription(1)?.nextBillingDate).toBeNull();
  });

  test("only a cancellation that the mirror saw gets a date, which stays until the contract is active again", () => {
    const mirror = mirrorOf(subscription(1), subscription(2, { status: "CANCELLED" }));
    mirror.apply(subscription(1, { status: "CANCELLED" }), START + 1000);
    mirror.apply(subscription(1, { status: "CANCELLED", intervalCount: 2 }), START + 2000);
    expect(mirror.theSubscription(1)?.cancelledAt).toBe("2026-03-01T12:00:01.000Z");
    expect(mirror.theSubscription(2)?.cancelledAt).toBeNull();
    mirror.apply(subscription(1));
    expect(mirror.theSubscription(1)?.cancelledAt).toBeNull();
  });

  test("the source's earlier date stays", () => {
    const mirror = mirrorOf(
      subscription(1, { cancelledAt: "2026-01-05T00:00:00.000Z" }),
      subscription(1, { status: "CANCELLED" }),
    );
    expect(mirror.theSubscription(1)?.cancelledAt).toBe("2026-01-05T00:00:00.000Z");
    mirror.apply(subscription(1, { status: "EXPIRED" }));
    expect(mirror.theSubscription(1)?.cancelledAt).toBe("2026-01-05T00:00:00.000Z");
  });

  test("the source's own cancellation date counts", () => {
    expect(
      mirrorOf(subscription(1, { status: "CANCELLED", cancelledAt: "2026-01-05T00:00:00.000Z" })).theSubscription(1)
        ?.cancelledAt,
    ).toBe("2026-01-05T00:00:00.000Z");
  });
});

describe("order", () => {
  test("totalCents is subtotal minus discount minus credits", () => {
    expect(mirrorOf(subscription(1), order(1, 1)).theOrder(1, 1)).toMatchObject({
      subtotalCents: 2500,
      discountCents: 500,
      creditsCents: 100,
      totalCents: 1900,
    });
  });

  test("is refused for an unknown contract", () => {
    expect(() => mirrorOf(order(1, 1))).toThrow(
      `subscription names a contract that is not in the mirror: ${gid.contract(1)}`,
    );
  });

  test("billedAt is the first billing attempt", () => {
    const mirror = mirrorOf(subscription(1), order(1, 1, { status: "FAILED", shopifyId: null }));
    mirror.apply(order(1, 1, { status: "RECOVERED", billedAt: "2026-02-09T00:00:00.000Z" }));
    expect(mirror.theOrder(1, 1)).toMatchObject({
      status: "RECOVERED",
      billedAt: "2026-02-01T00:00:00.000Z",
      shopifyId: gid.order(1001),
    });
  });

  test("PAID and RECOVERED renewals are the cycles completed", () => {
    const mirror = mirrorOf(
      subscription(1),
      order(1, 0, { source: "checkout" }),
      order(1, 1),
      order(1, 2, { status: "RECOVERED" }),
      order(1, 3, { status: "FAILED" }),
      order(1, 4, { status: "SKIPPED" }),
    );
    expect(mirror.theSubscription(1)?.cyclesCompleted).toBe(2);
    mirror.apply(order(1, 3));
    expect(mirror.theSubscription(1)?.cyclesCompleted).toBe(3);
    mirror.apply(order(1, 3, { status: "FAILED" }));
    expect(mirror.theSubscription(1)?.cyclesCompleted).toBe(2);
  });

  test("a given cyclesCompleted stays until null lets the mirror count again", () => {
    const mirror = mirrorOf(subscription(1, { cyclesCompleted: 40 }), order(1, 1));
    expect(mirror.theSubscription(1)?.cyclesCompleted).toBe(40);
    mirror.apply(subscription(1, { cyclesCompleted: 41 }));
    mirror.apply(subscription(1));
    expect(mirror.theSubscription(1)?.cyclesCompleted).toBe(41);
    mirror.apply(subscription(1, { cyclesCompleted: null }));
    expect(mirror.theSubscription(1)?.cyclesCompleted).toBe(1);
  });
});

describe("reward and cancel_flow", () => {
  test("are stored once for each id", () => {
    const mirror = mirrorOf(subscription(1));
    expect(mirror.apply(reward("r1")).rows).toHaveLength(1);
    expect(mirror.apply(reward("r1", { milestone: 6 })).rows).toEqual([]);
    expect(mirror.apply(cancelFlow("r1")).rows).toHaveLength(1);
    expect(mirror.apply(cancelFlow("r1")).rows).toEqual([]);
  });

  test("the unknown customer of a reward is added without data", () => {
    expect(mirrorOf(reward("r", { customer: gid.customer(7) })).theCustomer(7)?.subscriptionCount).toBe(0);
  });

  test("a cancellation flow of an unknown contract is refused", () => {
    expect(() => mirrorOf(cancelFlow("c"))).toThrow("subscription names a contract that is not in the mirror");
  });
});

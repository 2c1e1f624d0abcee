import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { Submission } from "../../../src/domain/decide/commit.ts";
import type { MirrorRecord } from "../../../src/domain/records/platform-records.ts";
import { START } from "../../support/app.ts";
import { mirrorRecord } from "../../support/arbitrary-records.ts";
import { MemoryMirror } from "../../support/memory-mirror.ts";
import { cancelFlow, customer, gid, order, reward, subscription } from "../../support/records.ts";

const { shop } = new MemoryMirror();
const ADA = "ada@example.com";
const redaction: MirrorRecord = { type: "redaction", shopifyId: gid.customer(1), asOf: START };
const submit = (...records: MirrorRecord[]): Submission => ({ shop, records });

/** Waiting platform webhooks. One names customer 1 by number; the other contains the digit 1, but not the customer. */
const INBOX = [
  `{"customer":{"id":1,"email":"${ADA}"}}`,
  `{"customer":{"id":2,"email":"grace@example.com"},"count":11}`,
];

describe("a redaction", () => {
  test("redacts the reward that the same commit adds, and its event", () => {
    const mirror = new MemoryMirror();
    mirror.commit([submit(customer(1, { email: ADA })), submit(reward("r", { contact: ADA })), submit(redaction)]);
    expect(JSON.stringify(mirror.contents())).not.toContain(ADA);
    expect(mirror.deliveries.map(({ topic }) => topic)).toEqual(["loyalty.reward_earned", "streak-milestone-reached"]);
  });

  test("redacts stored rewards, queued events and the inbox", () => {
    const mirror = new MemoryMirror(INBOX);
    mirror.commit([submit(customer(1, { email: ADA }), reward("r", { contact: ADA }))]);
    expect(JSON.stringify(mirror.contents()).split(ADA)).toHaveLength(5);
    mirror.commit([submit(redaction)]);
    expect(JSON.stringify(mirror.contents())).not.toContain(ADA);
    expect(mirror.inbox.get(2)).toBe(INBOX[1] ?? "");
  });

  test("replaces a reward's id that holds the address, and still finds a repeat of the reward", () => {
    for (const grouped of [true, false]) {
      const mirror = new MemoryMirror();
      const all = [
        submit(customer(1, { email: ADA, firstName: "Reward" }), reward(`welcome-${ADA}`)),
        submit(customer(2)),
        submit(redaction),
        submit(reward(`welcome-${ADA}`)),
      ];
      const results = grouped ? mirror.commit(all) : all.flatMap((submission) => mirror.commit([submission]));
      expect(results.map((result) => "changed" in result && result.changed)).toEqual([2, 1, 1, 0]);
      expect(JSON.stringify(mirror.contents())).not.toContain(ADA);
      const [row] = [...mirror.rows.values()].filter(({ kind }) => kind === "occurrence");
      expect(row).toMatchObject({ record: { type: "reward", source: "streak", customer: gid.customer(1) } });
      expect(row).toMatchObject({ record: { id: expect.stringMatching(/^redacted_[a-z2-7]{24}$/) } });
    }
  });

  test("of a customer with an empty or invalid e-mail changes no other text", () => {
    for (const email of ["", "a"]) {
      const mirror = new MemoryMirror();
      mirror.commit([submit(customer(1, { email }), reward("r", { discount_code: "SAVE" }))]);
      const before = mirror.contents().deliveries.map(({ body }) => body);
      mirror.commit([submit(redaction)]);
      expect(mirror.contents().deliveries.map(({ body }) => body)).toEqual(before);
      expect(mirror.rows.get("reward r")).toMatchObject({ record: { discount_code: "SAVE" } });
    }
  });

  test("reaches another customer's reward that names the person, and its event", () => {
    const mirror = new MemoryMirror();
    const referred = reward("r", { customer: gid.customer(2), referred: gid.customer(1), hint: ADA, [ADA]: 1 });
    mirror.commit([submit(customer(1, { email: ADA }), referred)]);
    mirror.commit([submit(redaction)]);
    expect(JSON.stringify(mirror.contents())).not.toContain(ADA);
  });

  test("does not change another customer's reward, even with the person's number as a number", () => {
    const mirror = new MemoryMirror();
    mirror.commit([submit(reward("other", { customer: gid.customer(2), cycles: 1, given_name: "Grace" }))]);
    mirror.commit([submit(redaction)]);
    expect(JSON.stringify(mirror.rows.get("reward other"))).toContain("Grace");
  });

  test("does not change later records", () => {
    const mirror = new MemoryMirror();
    mirror.commit([submit(customer(1, { email: ADA }), redaction, reward("r", { contact: ADA }))]);
    expect(JSON.stringify(mirror.rows.get("reward r"))).toContain(ADA);
  });

  test("of a refused submission redacts nothing", () => {
    const mirror = new MemoryMirror(INBOX);
    mirror.commit([
      submit(customer(1, { email: ADA })),
      submit(reward("r", { contact: ADA })),
      submit(redaction, order(9, 1)),
    ]);
    expect(JSON.stringify(mirror.contents()).split(ADA)).toHaveLength(5);
  });
});

describe("events", () => {
  const events = (submission: Submission) => {
    const mirror = new MemoryMirror();
    const results = mirror.commit([submission]);
    return { results, topics: mirror.deliveries.map(({ topic }) => topic) };
  };

  test("before eventsSince are not queued, and the result counts the queued events", () => {
    const records = [
      subscription(1, { startedAt: new Date(START - 1).toISOString() }),
      subscription(2, { startedAt: new Date(START).toISOString() }),
    ];
    expect(events({ shop, records, eventsSince: START })).toEqual({
      results: [{ accepted: 2, changed: 2, events: 2 }],
      topics: ["subscription.created", "subscription-created"],
    });
  });

  test("are never queued if eventsSince is Infinity", () => {
    expect(
      events({ shop, records: [subscription(1), reward("r")], eventsSince: Number.POSITIVE_INFINITY }).topics,
    ).toEqual([]);
  });

  test("of a refused submission are not queued", () => {
    expect(events({ shop, records: [subscription(1), cancelFlow("c", { subscription: gid.contract(9) })] })).toEqual({
      results: [
        {
          refused: {
            index: 1,
            field: "subscription",
            reason: `names a contract that is not in the mirror: ${gid.contract(9)}`,
          },
        },
      ],
      topics: [],
    });
  });
});

test("platform webhooks leave the inbox with their submission, unless it is refused", () => {
  const mirror = new MemoryMirror(INBOX);
  mirror.commit([
    { shop, records: [customer(1)], inboxNumbers: [1] },
    { shop, records: [order(9, 1)], inboxNumbers: [2] },
  ]);
  expect([...mirror.inbox.keys()]).toEqual([2]);
});

test("counts are the rows of each resource, even after repeated or refused writes", () => {
  const mirror = new MemoryMirror();
  mirror.commit([
    submit(subscription(1), subscription(2), order(1, 1)),
    submit(order(1, 1), order(1, 2)),
    submit(customer(7), order(9, 1)),
  ]);
  mirror.commit([submit(subscription(1, { status: "PAUSED" }), subscription(3))]);
  expect(mirror.contents().state).toEqual({ changeCount: 9, counts: { customers: 3, subscriptions: 3, orders: 2 } });
});

const submissions = fc.array(fc.array(mirrorRecord, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 10 });

test("decide asks only for rows that keysOf named or that belong to loaded contracts", () => {
  fc.assert(
    fc.property(submissions, (all) => {
      const mirror = new MemoryMirror(INBOX);
      // The snapshot throws for a row that was not loaded.
      for (const records of all) mirror.commit([{ shop, records }]);
    }),
    { numRuns: 1_000 },
  );
});

test("any grouping of the same submissions into commits ends in the same mirror, events and redacted texts", () => {
  fc.assert(
    fc.property(
      submissions,
      fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 10, maxLength: 10 }),
      (all, sizes) => {
        const [apart, together] = [new MemoryMirror(INBOX), new MemoryMirror(INBOX)];
        const list = all.map(
          (records, index): Submission => ({ shop, records, ...(index === 5 && { inboxNumbers: [2] }) }),
        );
        const results = list.flatMap((submission) => apart.commit([submission]));
        const groups: Submission[][] = [];
        for (let at = 0; at < list.length; at += sizes[groups.length - 1] ?? 1)
          groups.push(list.slice(at, at + (sizes[groups.length] ?? 1)));
        expect(groups.flatMap((group) => together.commit(group))).toEqual(results);
        // A row that changes several times in one commit gets only one change number. So the test compares only the row
        // counts of the two states.
        const { state: stateApart, ...contentsApart } = apart.contents();
        const { state: stateTogether, ...contentsTogether } = together.contents();
        expect(contentsTogether).toEqual(contentsApart);
        expect(stateTogether.counts).toEqual(stateApart.counts);
      },
    ),
    { numRuns: 1_000 },
  );
});

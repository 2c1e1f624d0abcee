import { expect, test } from "bun:test";
import { createDataRequestReminder } from "../../src/compose/jobs.ts";
import { dataRequest } from "../../src/domain/people/data-request.ts";
import { createLog } from "../../src/lib/log.ts";
import { START, testApp } from "../support/app.ts";
import { gid } from "../support/records.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

test("an unanswered request for data causes a warning once a day, from a week before its deadline", async () => {
  const { app, clock, addShop } = await testApp();
  const { shop } = await addShop();
  const dataRequests = [1, 2].map((n) => dataRequest(String(n), gid.customer(n), START + n * DAY));
  await app.store.mirror.applyRecords([{ shop, records: [], dataRequests }], START, []);
  const logged: { level: string; requests: number; customer: string; dueAt: string }[] = [];
  const log = createLog("info", { write: (text) => logged.push(JSON.parse(text)) }, clock.now);
  const remind = createDataRequestReminder(app.store.dataRequests, clock.now, log);
  /** Lets days pass, and runs the reminder every hour. @returns how many warnings were logged */
  async function warningsOf(days: number): Promise<number> {
    const before = logged.length;
    for (let hour = 0; hour < days * 24; hour += 1) {
      clock.ms += HOUR;
      await remind();
    }
    return logged.length - before;
  }

  clock.ms = START;
  expect(await warningsOf(24)).toBe(0);
  expect(await warningsOf(2)).toBe(2);
  const dueAt = new Date(START + 31 * DAY).toISOString();
  expect(logged).toMatchObject([
    { level: "warn", requests: 1, customer: gid.customer(1), dueAt },
    { level: "warn", requests: 2, customer: gid.customer(1), dueAt },
  ]);
  // The warnings go on after the deadline.
  expect(await warningsOf(10)).toBe(10);
  for (const n of [1, 2]) await app.store.dataRequests.answer(shop.id, gid.customer(n), clock.now());
  expect(await warningsOf(2)).toBe(0);
});

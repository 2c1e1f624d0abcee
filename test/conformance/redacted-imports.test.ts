import { describe, expect, test } from "bun:test";
import type { RecordSource } from "../../src/domain/decide/record-source.ts";
import { addField } from "../../src/domain/fields/definition.ts";
import { customerId, redactedId } from "../../src/domain/ids.ts";
import type { MirrorRecord } from "../../src/domain/records/platform-records.ts";
import type { MirroredShop } from "../../src/domain/shop.ts";
import { START } from "../support/app.ts";
import { customer, fieldValue, gid, reward, subscription } from "../support/records.ts";
import { applySearched } from "../support/searched.ts";
import { engines, storeWithEvents, type TestStore } from "./engines.ts";
import { commit, HOUR } from "./fixtures.ts";
import { ADA, ada, redaction, tablesWith } from "./redactions.ts";

type Opened = TestStore & { shop: MirroredShop };

/** Imports records from a source, as `sds import` does. */
async function imports({ store, shop }: Opened, source: RecordSource, records: MirrorRecord[], now = START) {
  const [result] = await applySearched(store.mirror, [{ shop, records, source }], now);
  return result;
}

async function changeCount({ store, shop }: Opened): Promise<number> {
  return (await store.pages.list(shop.id, "customers", 1, null))?.changeCount ?? 0;
}

async function profile({ store, shop }: Opened) {
  const row = await store.pages.find(shop.id, "customers", { id: customerId(shop.domain, gid.customer(1)) });
  const { email, firstName, lastName, creditsCents } = JSON.parse(row?.json ?? "{}");
  return { email, firstName, lastName, creditsCents };
}

const EMPTY = { email: null, firstName: null, lastName: null };
const FULL = { email: ADA, firstName: "Ada", lastName: "Lovelace" };

describe.each(engines())("$name: an import", (engine) => {
  test("that began before a redaction leaves out the profile, keeps the rest and counts the record", async () => {
    const opened: Opened = await storeWithEvents(engine);
    await commit(opened.store, opened.shop, [ada]);
    const source = { changeCount: await changeCount(opened), changedAt: null };
    await commit(opened.store, opened.shop, [redaction]);
    expect(await imports(opened, source, [{ ...ada, creditsCents: 500 }, subscription(1)])).toEqual({
      accepted: 2,
      changed: 2,
      events: 2,
      leftOut: 1,
    });
    expect(await profile(opened)).toEqual({ ...EMPTY, creditsCents: 500 });
    expect(await imports(opened, source, [customer(1, { creditsCents: 7 })])).toMatchObject({ changed: 1 });
    expect(await tablesWith(opened, ADA)).toEqual([]);
  });

  test("that began before a redaction knows it, even if the redaction's clock is behind", async () => {
    const opened: Opened = await storeWithEvents(engine);
    const source = { changeCount: await changeCount(opened), changedAt: START };
    const late = { ...redaction, asOf: START - 24 * HOUR };
    await applySearched(opened.store.mirror, [{ shop: opened.shop, records: [late] }], START - 24 * HOUR);
    await imports(opened, source, [ada], START);
    expect(await profile(opened)).toMatchObject(EMPTY);
  });

  test("of a file that changed before the redaction leaves out the profile, of a later file it does not", async () => {
    const opened: Opened = await storeWithEvents(engine);
    // The redaction was requested a day before it was processed. A file that changed in between still has the person's
    // data.
    await commit(opened.store, opened.shop, [{ ...redaction, asOf: START - 24 * HOUR }]);
    const source = { changeCount: await changeCount(opened), changedAt: START - HOUR };
    expect(await imports(opened, source, [ada])).toEqual({ accepted: 1, changed: 0, events: 0, leftOut: 1 });
    expect(await profile(opened)).toMatchObject(EMPTY);
    expect(await imports(opened, { ...source, changedAt: START + 1 }, [ada])).not.toHaveProperty("leftOut");
    expect(await profile(opened)).toMatchObject(FULL);
  });

  test("from a pipe that began after the redaction brings new data", async () => {
    const opened: Opened = await storeWithEvents(engine);
    await commit(opened.store, opened.shop, [redaction]);
    await imports(opened, { changeCount: await changeCount(opened), changedAt: null }, [ada]);
    expect(await profile(opened)).toMatchObject(FULL);
  });

  test("of an older file does not replace what was posted after the redaction", async () => {
    const opened: Opened = await storeWithEvents(engine);
    await commit(opened.store, opened.shop, [ada, redaction]);
    await commit(opened.store, opened.shop, [customer(1, { email: "new@example.com" })]);
    const source = { changeCount: await changeCount(opened), changedAt: START - HOUR };
    expect(await imports(opened, source, [{ ...ada, firstName: null }])).toMatchObject({ leftOut: 1 });
    expect(await profile(opened)).toMatchObject({ ...EMPTY, email: "new@example.com" });
  });

  test("leaves out personal fields and texts of rewards too, and their events, although nobody knows the name", async () => {
    const opened: Opened = await storeWithEvents(engine);
    const { store, shop } = opened;
    await store.fields.update(shop.id, (fields) => {
      const withNote = addField(fields, { key: "note", label: "Note", type: "text" });
      return addField(withNote, { key: "size", label: "Size", type: "number" });
    });
    await commit(store, shop, [ada, subscription(1), reward("known"), redaction]);
    const source = { changeCount: await changeCount(opened), changedAt: START - HOUR };
    const records = [
      reward(`for ${ADA}`, { message: "Well done, Ada Lovelace", to: { email: ADA }, phone: 15550100, milestone: 7 }),
      reward("known"),
      fieldValue(1, "note", "for Ada"),
      fieldValue(1, "size", 3),
      reward("plain"),
    ];
    expect(await imports(opened, source, records)).toEqual({ accepted: 5, changed: 3, events: 4, leftOut: 3 });
    for (const text of [ADA, "Ada", "15550100"]) expect([text, await tablesWith(opened, text)]).toEqual([text, []]);
    expect((await opened.rows("subscription_fields")).map(({ json }) => json)).toEqual(['{"size":3}']);
    const rewards = (await opened.rows("occurrences")).map(({ json }) => JSON.parse(String(json)));
    expect(rewards.find(({ milestone }) => milestone === 7)).toEqual({
      ...reward(redactedId(`for ${ADA}`)),
      milestone: 7,
    });
    expect(await imports(opened, source, records)).toMatchObject({ changed: 0 });
  });

  test("leaves out nothing of other people", async () => {
    const opened: Opened = await storeWithEvents(engine);
    await commit(opened.store, opened.shop, [redaction]);
    const source = { changeCount: 0, changedAt: 0 };
    const others = [customer(2, { email: "grace@example.com" }), reward("r", { customer: gid.customer(2), name: "G" })];
    expect(await imports(opened, source, others)).not.toHaveProperty("leftOut");
    expect(await tablesWith(opened, "grace@example.com")).toEqual(["customers"]);
  });
});

import { describe, expect, test } from "bun:test";
import { addField, archiveField, type NewField, restoreField } from "../../src/domain/fields/definition.ts";
import type { FieldValues } from "../../src/domain/fields/value.ts";
import { subscriptionId } from "../../src/domain/ids.ts";
import type { MirrorRecord } from "../../src/domain/records/platform-records.ts";
import type { MirroredShop } from "../../src/domain/shop.ts";
import { MAX_PAGE_BYTES, type RowForm } from "../../src/store/port/pages.ts";
import type { Store } from "../../src/store/port/store.ts";
import { START } from "../support/app.ts";
import { customer, fieldValue, gid, subscription } from "../support/records.ts";
import { engines, storeWithShop } from "./engines.ts";
import { addShop, changedRows, chooseAllEvents, commit, parsePage, removeShop } from "./fixtures.ts";
import { redaction } from "./redactions.ts";

const FIELDS: NewField[] = [
  { key: "note", label: "Note", type: "text", subscriberEditable: true },
  { key: "status", label: "Status", type: "choice", options: ["PAUSED", "gold"] },
  { key: "constructor", label: "Builder", type: "number" },
];

async function define(store: Store, shop: MirroredShop, fields = FIELDS): Promise<void> {
  for (const field of fields) await store.fields.update(shop.id, (all) => addField(all, field));
}

/** Reads the custom fields of all subscriptions, by the number of the contract. */
async function shownFields(store: Store, shop: MirroredShop): Promise<Record<string, FieldValues>> {
  const page = await store.pages.list(shop.id, "subscriptionsWithFields", 250, null);
  const rows = parsePage(page?.rows ?? new Uint8Array()) as { shopifyId: string; customFields: FieldValues }[];
  return Object.fromEntries(rows.map((row) => [row.shopifyId.split("/").at(-1), row.customFields]));
}

const bytesOf = async (store: Store, shop: MirroredShop, form: RowForm) =>
  Buffer.from((await store.pages.list(shop.id, form, 250, null))?.rows ?? []).toString();

describe.each(engines())("$name: custom fields", (engine) => {
  async function filled(records: MirrorRecord[] = []) {
    const { shop, ...opened } = await storeWithShop(engine);
    await define(opened.store, shop);
    await commit(opened.store, shop, [subscription(1), subscription(2), ...records]);
    return { ...opened, shop };
  }

  test("end each row, in the order of the definitions; plain rows keep their bytes", async () => {
    const { store, shop } = await filled();
    const before = await bytesOf(store, shop, "subscriptions");
    await commit(store, shop, [fieldValue(1, "constructor", 1.5), fieldValue(1, "note", 'a "quote", ü')]);
    expect(await bytesOf(store, shop, "subscriptions")).toBe(before);
    expect(await bytesOf(store, shop, "subscriptionsWithFields")).toBe(
      before
        .replace(/\}(?=,\{"id)/, ',"customFields":{"note":"a \\"quote\\", ü","constructor":1.5}}')
        .replace(/\}$/, ',"customFields":{}}'),
    );
    await commit(store, shop, [fieldValue(1, "note", null), fieldValue(1, "constructor", null)]);
    expect(await shownFields(store, shop)).toEqual({ 1: {}, 2: {} });
  });

  test("are a change of the subscription without an event, and an equal value is no change", async () => {
    const { store, shop } = await filled();
    await chooseAllEvents(store, shop);
    const { changeCount = 0 } = (await store.pages.list(shop.id, "subscriptions", 1, null)) ?? {};
    expect(await commit(store, shop, [fieldValue(2, "note", "x")])).toMatchObject({ changed: 1, events: 0 });
    expect(await commit(store, shop, [fieldValue(2, "note", "x")])).toMatchObject({ changed: 0, events: 0 });
    const changed = await changedRows(store, shop, "subscriptions", { after: changeCount });
    expect(changed.map(({ shopifyId }) => shopifyId)).toEqual([gid.contract(2)]);
    const withFields = await store.pages.changes(shop.id, "subscriptionsWithFields", {}, 250, changeCount);
    expect(parsePage(withFields.rows)).toEqual([{ ...changed[0], customFields: { note: "x" } }]);
  });

  test("are not searched by filters, even with the name of a filter", async () => {
    const { store, shop } = await filled([fieldValue(1, "status", "PAUSED")]);
    const filtered = async (status: string) =>
      parsePage(
        (await store.pages.listFiltered(shop.id, "subscriptionsWithFields", { statuses: [status] }, 250, null))?.rows ??
          new Uint8Array(),
      );
    expect(await filtered("PAUSED")).toEqual([]);
    expect(await filtered("ACTIVE")).toHaveLength(2);
    const id = subscriptionId(shop.domain, gid.contract(1));
    const found = await store.pages.find(shop.id, "subscriptionsWithFields", { id });
    expect(JSON.parse(found?.json ?? "")).toMatchObject({ status: "ACTIVE", customFields: { status: "PAUSED" } });
  });

  test("that are archived are left out of pages, changes and rows, and come back with their values", async () => {
    const { store, shop } = await filled([fieldValue(1, "note", "x"), fieldValue(1, "constructor", 2)]);
    const id = subscriptionId(shop.domain, gid.contract(1));
    const isFirst = (row: Record<string, unknown>) => row["shopifyId"] === gid.contract(1);
    const forms = async () => [
      (await shownFields(store, shop))[1],
      parsePage((await store.pages.changes(shop.id, "subscriptionsWithFields", {}, 250, 0)).rows).find(isFirst)?.[
        "customFields"
      ],
      JSON.parse((await store.pages.find(shop.id, "subscriptionsWithFields", { id }))?.json ?? "").customFields,
    ];
    const counted = async () => (await store.pages.list(shop.id, "subscriptions", 1, null))?.changeCount ?? 0;
    const before = await counted();
    await store.fields.update(shop.id, (all) => archiveField(all, "note", START));
    expect(await counted()).toBe(before + 1);
    expect(JSON.stringify(await forms())).toBe(JSON.stringify(Array(3).fill({ constructor: 2 })));
    expect(await store.fields.valuesOf(shop.id, id)).toEqual({ note: "x", constructor: 2 });
    await commit(store, shop, [fieldValue(1, "constructor", 3)]);
    await store.fields.update(shop.id, (all) => restoreField(all, "note"));
    expect(JSON.stringify(await forms())).toBe(JSON.stringify(Array(3).fill({ note: "x", constructor: 3 })));
  });

  test.each([
    ["unknown contract", { ...fieldValue(9, "note", "x") }, "subscription"],
    ["unknown key", fieldValue(1, "unknown", "x"), "key"],
    ["another type", fieldValue(1, "note", 5), "value"],
    ["a missing option", fieldValue(1, "status", "silver"), "value"],
    ["a field of merchants", { ...fieldValue(1, "status", "gold"), by: "subscriber" as const }, "by"],
  ])("refuse %s, and keep nothing of the submission", async (_name, record, field) => {
    const { store, shop } = await filled();
    const [result] = await store.mirror.applyRecords(
      [{ shop, records: [fieldValue(1, "note", "a"), record] }],
      START,
      [],
    );
    expect(result).toMatchObject({ refused: { index: 1, field } });
    expect(await shownFields(store, shop)).toEqual({ 1: {}, 2: {} });
  });

  test("are refused for an archived key", async () => {
    const { store, shop } = await filled();
    await store.fields.update(shop.id, (all) => archiveField(all, "note", START));
    const [result] = await store.mirror.applyRecords([{ shop, records: [fieldValue(1, "note", "a")] }], START, []);
    expect(result).toMatchObject({ refused: { field: "key" } });
  });

  test("that are personal go with the redaction of the customer, stored ones and those of the same commit", async () => {
    const { store, shop, rows } = await filled([fieldValue(1, "note", "Ada"), fieldValue(1, "constructor", 1)]);
    const moved = subscription(4, { customer: gid.customer(2) });
    await commit(store, shop, [moved, fieldValue(4, "note", "Ada"), fieldValue(2, "note", "Grace")]);
    const { changeCount = 0 } = (await store.pages.list(shop.id, "subscriptions", 1, null)) ?? {};
    await commit(store, shop, [
      customer(1),
      subscription(3, { customer: gid.customer(1) }),
      fieldValue(3, "note", "Ada"),
      { ...moved, customer: gid.customer(1) },
      redaction,
    ]);
    expect(await shownFields(store, shop)).toEqual({ 1: { constructor: 1 }, 2: { note: "Grace" }, 3: {}, 4: {} });
    expect(JSON.stringify(await rows("subscription_fields"))).not.toContain("Ada");
    const changed = await changedRows(store, shop, "subscriptions", { after: changeCount });
    expect(changed.map(({ shopifyId }) => shopifyId).toSorted()).toEqual([1, 3, 4].map(gid.contract));
  });

  test("of an archived personal field go too", async () => {
    const { store, shop, rows } = await filled([fieldValue(1, "note", "Ada")]);
    await store.fields.update(shop.id, (all) => archiveField(all, "note", START));
    await commit(store, shop, [redaction]);
    expect(await rows("subscription_fields")).toEqual([]);
  });

  test("belong to their shop, and end with it", async () => {
    const { store, shop, rows } = await filled([fieldValue(1, "note", "x")]);
    const other = await addShop(store, "other");
    await commit(store, other, [subscription(1)]);
    expect(await store.fields.list(other.id)).toEqual([]);
    expect(await shownFields(store, other)).toEqual({ 1: {} });
    await store.styles.set(shop.id, { source: "p{}", hash: "a" });
    expect(await store.styles.shopOf(shop.domain)).toEqual({ shopId: shop.id, plan: "pro", hash: "a" });
    expect(await store.styles.shopOf(other.domain)).toEqual({ shopId: other.id, plan: "pro", hash: null });
    await removeShop(store, shop.domain);
    for (const table of ["subscription_fields", "custom_fields", "widget_styles"] as const)
      expect(await rows(table)).toEqual([]);
    expect(await store.styles.shopOf(shop.domain)).toBeUndefined();
  });

  test("count for the size of a page", async () => {
    const { store, shop } = await filled();
    const keys = Array.from({ length: 40 }, (_, index) => `text_${index}`);
    const texts = keys.map((key): NewField => ({ key, label: key, type: "text" }));
    await define(store, shop, texts);
    const numbers = Array.from({ length: 60 }, (_, index) => index + 1);
    const subscriptions = numbers.map((n) => subscription(n));
    await commit(store, shop, subscriptions);
    for (const n of numbers) {
      const values = keys.map((key) => fieldValue(n, key, "\u{1f600}".repeat(1_000)));
      await commit(store, shop, values);
    }
    const page = await store.pages.list(shop.id, "subscriptionsWithFields", 250, null);
    const rows = parsePage(page?.rows ?? new Uint8Array());
    expect(Object.keys((rows[0]?.["customFields"] ?? {}) as object)).toEqual(keys);
    const rowBytes = Buffer.byteLength(JSON.stringify(rows[0])) + 1;
    expect(rows).toHaveLength(Math.floor(MAX_PAGE_BYTES / rowBytes));
    const rest = await store.pages.list(shop.id, "subscriptionsWithFields", 250, page?.end ?? null);
    expect([parsePage(rest?.rows ?? new Uint8Array()).length, rest?.end]).toEqual([60 - rows.length, null]);
    expect((await store.pages.list(shop.id, "subscriptions", 250, null))?.end).toBeNull();
  });

  test("that have a value keep their type", async () => {
    const { store, shop } = await filled([fieldValue(1, "note", "x")]);
    expect((await store.fields.list(shop.id)).map(({ hasValues }) => hasValues)).toEqual([true, false, false]);
    expect((await store.fields.list(shop.id)).map(({ key }) => key)).toEqual(FIELDS.map(({ key }) => key));
  });
});

import { describe, expect, test } from "bun:test";
import {
  addField,
  archiveField,
  changeField,
  type FieldDefinition,
  fieldNamed,
  hiddenKeys,
  type NewField,
  restoreField,
  withValues,
} from "../../../src/domain/fields/definition.ts";
import { START } from "../../support/app.ts";

const NOTE: NewField = { key: "note", label: "Note", type: "text" };
const SIZE: NewField = { key: "size", label: "Size", type: "choice", options: ["S", "M"] };
const fieldsOf = (...fields: NewField[]) => fields.reduce<FieldDefinition[]>(addField, []);
const many = (count: number) =>
  fieldsOf(...Array.from({ length: count }, (_, n) => ({ ...NOTE, key: `f${n}` }) as NewField));

describe("a new field", () => {
  test("is personal if it is text, and comes after the others", () => {
    expect(fieldsOf(SIZE, NOTE)).toEqual([
      {
        key: "size",
        label: "Size",
        type: "choice",
        options: ["S", "M"],
        subscriberEditable: false,
        personal: false,
        archivedAt: null,
        hasValues: false,
      },
      { ...(fieldsOf(NOTE)[0] as FieldDefinition), personal: true },
    ]);
  });

  test.each([
    ["a key with a capital letter", { key: "Note" }, "the key must be"],
    ["a key that begins with a digit", { key: "1note" }, "the key must be"],
    ["a key of 41 characters", { key: "n".repeat(41) }, "the key must be"],
    ["an empty key", { key: "" }, "the key must be"],
    ["an empty label", { label: " " }, "the label must have"],
    ["a label of 81 characters", { label: "l".repeat(81) }, "the label must have"],
    ["a label with U+0000", { label: "a\0" }, "the label must have"],
    ["an unknown type", { type: "json" as "text" }, "the type must be one of text, number, boolean, date, choice"],
    ["options of a text", { options: ["a"] }, "only a field of the type choice has options"],
    ["a choice without options", { type: "choice" as const }, "1 to 50 options"],
    ["a choice with 51 options", { ...SIZE, options: Array.from({ length: 51 }, String) }, "1 to 50 options"],
    ["an option of 81 characters", { ...SIZE, options: ["o".repeat(81)] }, "an option must have"],
    ["an option twice", { ...SIZE, options: ["a", "a"] }, "two options are the same"],
  ])("is refused with %s", (_name, change, message) => {
    expect(() => addField([], { ...NOTE, ...change })).toThrow(message);
  });

  test("is refused for a key that exists, even if it is archived, and beyond 50 fields", () => {
    expect(() => fieldsOf(NOTE, NOTE)).toThrow("the field note exists already");
    expect(() => addField(archiveField(fieldsOf(NOTE), "note", START), NOTE)).toThrow(
      "exists already, and is archived",
    );
    expect(many(50)).toHaveLength(50);
    expect(() => many(51)).toThrow("at most 50 fields that are not archived");
    const archived = archiveField(many(50), "f0", START);
    expect(addField(archived, NOTE)).toHaveLength(51);
    expect(() => restoreField(addField(archived, NOTE), "f0")).toThrow("at most 50 fields");
  });

  test("is refused beyond 200 fields, archived ones included", () => {
    let fields: FieldDefinition[] = [];
    for (let n = 0; n < 200; n += 1) fields = archiveField(addField(fields, { ...NOTE, key: `f${n}` }), `f${n}`, START);
    expect(() => addField(fields, NOTE)).toThrow("at most 200 fields, archived ones included");
  });
});

describe("a change", () => {
  test("keeps what it does not name, and never the key", () => {
    const changed = changeField(fieldsOf(NOTE, SIZE), "size", { label: "T-shirt", subscriberEditable: true });
    expect(changed.map(({ key, label, options }) => [key, label, options])).toEqual([
      ["note", "Note", []],
      ["size", "T-shirt", ["S", "M"]],
    ]);
    expect(changed[1]?.subscriberEditable).toBe(true);
  });

  test("to text makes a field personal unless the change says otherwise", () => {
    const personalAfter = (change: Parameters<typeof changeField>[2], fields = fieldsOf(SIZE)) =>
      changeField(fields, fields[0]?.key ?? "", change)[0]?.personal;
    expect(personalAfter({ type: "text" })).toBe(true);
    expect(personalAfter({ type: "text", personal: false })).toBe(false);
    expect(personalAfter({ type: "number" })).toBe(false);
    expect(personalAfter({ type: "number" }, fieldsOf(NOTE))).toBe(true);
    expect(personalAfter({ type: "text" }, fieldsOf({ ...NOTE, personal: false }))).toBe(false);
  });

  test("of the type drops options, and is refused once the field has a value", () => {
    expect(fieldNamed(changeField(fieldsOf(SIZE), "size", { type: "text" }), "size").options).toEqual([]);
    const used = withValues(fieldsOf(SIZE), new Set(["size"]));
    expect(() => changeField(used, "size", { type: "text" })).toThrow("keeps its type choice");
    expect(changeField(used, "size", { type: "choice", options: ["L"] })[0]?.options).toEqual(["L"]);
  });

  test("of an unknown field is refused", () => {
    for (const change of [changeField, archiveField, restoreField] as ((...args: never[]) => unknown)[])
      expect(() => change([] as never, "x" as never, {} as never)).toThrow("there is no field x");
  });
});

test("an archived field is hidden if it has values, and keeps the time of the first archiving", () => {
  const used = withValues(fieldsOf(NOTE, SIZE), new Set(["note"]));
  const archived = archiveField(archiveField(used, "note", START), "note", START + 1);
  expect(hiddenKeys(archived)).toEqual(["note"]);
  expect(hiddenKeys(archiveField(used, "size", START))).toEqual([]);
  expect(fieldNamed(archived, "note").archivedAt).toBe(START);
  expect(hiddenKeys(restoreField(archived, "note"))).toEqual([]);
});

import { describe, expect, test } from "bun:test";
import { addFieldKeys, createRowFormat } from "../../../src/cli/pull/row-format.ts";

const CUSTOMER = {
  id: "cus_a",
  shopifyId: "gid://shopify/Customer/1",
  email: null,
  firstName: 'Ada "the first", of\nLondon',
  lastName: "",
  marketingConsent: true,
  creditsCents: -5,
  loyaltyTier: 0,
  subscriptionCount: 2,
  createdAt: "2026-01-01T00:00:00.000Z",
};
const options = { header: true, spreadsheet: false };

test("NDJSON has one row on each line, as the API gave it", () => {
  const { header, textOf } = createRowFormat("customers", "ndjson", options);
  expect(header).toBe("");
  expect(textOf(CUSTOMER)).toBe(`${JSON.stringify(CUSTOMER)}\n`);
});

describe("CSV", () => {
  test.each([
    [
      "subscriptions",
      "id,shopifyId,customerId,status,interval,intervalCount,sellingPlanId,lines,nextBillingDate,cyclesCompleted," +
        "startedAt,cancelledAt",
    ],
    [
      "customers",
      "id,shopifyId,email,firstName,lastName,marketingConsent,creditsCents,loyaltyTier,subscriptionCount,createdAt",
    ],
    [
      "orders",
      "id,shopifyId,contractId,customerId,source,cycleNumber,status,lines,subtotalCents,discountCents,creditsCents," +
        "totalCents,billedAt",
    ],
  ] as const)("has these columns for %s", (resource, columns) => {
    expect(createRowFormat(resource, "csv", options).header).toBe(`${columns}\r\n`);
    expect(createRowFormat(resource, "csv", { ...options, header: false }).header).toBe("");
  });

  test("quotes as RFC 4180 says; null is empty, and an empty text is two quotes", () => {
    expect(createRowFormat("customers", "csv", options).textOf(CUSTOMER)).toBe(
      'cus_a,gid://shopify/Customer/1,,"Ada ""the first"", of\nLondon","",true,-5,0,2,2026-01-01T00:00:00.000Z\r\n',
    );
  });

  test("has arrays as JSON, and leaves out an unknown field", () => {
    const row = { id: "ord_a", lines: [{ title: 'Half "dark"', quantity: 1 }], newField: 1 };
    expect(createRowFormat("orders", "csv", options).textOf(row)).toBe(
      'ord_a,,,,,,,"[{""title"":""Half \\""dark\\"""",""quantity"":1}]",,,,,\r\n',
    );
  });

  test.each(["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", '=HYPERLINK("https://example.com","x")'])(
    "for a spreadsheet puts ' before %j, and not for other readers",
    (firstName) => {
      const row = { id: "cus_a", firstName, creditsCents: -5 };
      const cells = (spreadsheet: boolean) =>
        createRowFormat("customers", "csv", { header: true, spreadsheet }).textOf(row);
      const quoted = (text: string) => (/[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
      expect(cells(false)).toBe(`cus_a,,,${quoted(firstName)},,,-5,,,\r\n`);
      expect(cells(true)).toBe(`cus_a,,,${quoted(`'${firstName}`)},,,-5,,,\r\n`);
    },
  );
});

describe("custom fields in CSV", () => {
  const row = (customFields: Record<string, unknown>) => ({ id: "sub_a", customFields });
  const without: string[] = [];
  const csv = { ...options, onFieldWithoutColumn: (key: string) => without.push(key) };
  const cells = (fieldKeys: string[] | undefined, customFields: Record<string, unknown>) =>
    createRowFormat("subscriptions", "csv", { ...csv, fieldKeys })
      .textOf(row(customFields))
      .replace("sub_a,,,,,,,,,,,", "");

  test("have a column each, in the order of the keys, and a last column for the others", () => {
    const keys = ["note", "constructor", "gift"];
    const { header } = createRowFormat("subscriptions", "csv", { ...csv, fieldKeys: keys });
    expect(header).toEndWith(
      ",cancelledAt,customFields.note,customFields.constructor,customFields.gift,customFields\r\n",
    );
    expect(cells(keys, { note: 'a "b"', gift: false })).toBe(',"a ""b""",,false,\r\n');
    expect(cells(keys, { constructor: 1.5 })).toBe(",,1.5,,\r\n");
    expect(cells(keys, {})).toBe(",,,,\r\n");
    expect(without).toEqual([]);
    expect(cells(keys, { late: "x", note: "y", later: 2 })).toBe(',y,,,"{""late"":""x"",""later"":2}"\r\n');
    expect(without).toEqual(["late", "later"]);
    expect(cells([], {})).toBe(",\r\n");
  });

  test("stand before _sequence", () => {
    const { header, textOf } = createRowFormat("subscriptions", "csv", { ...csv, fieldKeys: ["note"], sequence: true });
    expect(header).toEndWith(",cancelledAt,customFields.note,customFields,_sequence\r\n");
    expect(textOf({ ...row({ note: "x" }), _sequence: 7 })).toEndWith(",x,,7\r\n");
  });

  test("have no column if the rows are asked without them", () => {
    expect(cells(undefined, { note: "x" })).toBe("\r\n");
  });

  test.each([
    [[{ a: 1, b: 1, c: 1 }, { b: 1 }], "a b c"],
    [[{ b: 1 }, { a: 1, b: 1, c: 1 }], "a b c"],
    [[{ a: 1, c: 1 }, {}, { a: 1, b: 1 }, { c: 1, d: 1 }], "a b c d"],
  ])("get columns in the order that the rows show: %j", (rows, order) => {
    const keys: string[] = [];
    for (const each of rows) addFieldKeys(keys, row(each));
    expect(keys.join(" ")).toBe(order);
  });
});

import { describe, expect, test } from "bun:test";
import { testApp } from "../support/app.ts";
import { customer, gid, order, reward, subscription } from "../support/records.ts";

const kept = "Nothing of this body was kept.";

describe("POST /intake takes", () => {
  test.each([
    ["one record", JSON.stringify(customer(1)), 1],
    ["one record over several lines", JSON.stringify(customer(1), null, 2), 1],
    ["an array", JSON.stringify([customer(1), subscription(1), order(1, 1), reward("r")]), 4],
    ["NDJSON", `${JSON.stringify(customer(1))}\r\n\n${JSON.stringify(customer(2))}\n`, 2],
    ["an empty array", "[]", 0],
  ])("%s", async (_name, raw, accepted) => {
    const { addShop } = await testApp();
    const { intake, all } = await addShop();
    const response = await intake(undefined, { raw });
    expect({ status: response.status, body: await response.json() }).toEqual({ status: 202, body: { accepted } });
    expect((await all("customers")).length).toBe(Math.min(accepted, raw.includes("/2") ? 2 : 1));
  });

  test("a shop's records on any plan, for the mirror is kept all the same", async () => {
    const { addShop } = await testApp();
    const { intake } = await addShop("alpha.myshopify.com", "free");
    expect((await intake(customer(1))).status).toBe(202);
  });
});

describe("POST /intake refuses, and keeps nothing of", () => {
  test.each([
    [
      "a field of the wrong form",
      [customer(1), { ...customer(2), email: 5 }],
      `Record 1, field email: must be a string of at most 1024 characters, without U+0000, or null. ${kept}`,
    ],
    [
      "an order for no contract",
      [customer(1), order(7, 1)],
      `Record 1, field subscription: names a contract that is not in the mirror: ${gid.contract(7)}. ${kept}`,
    ],
    ["no record", [customer(1), 5], `Record 1 must be a JSON object. ${kept}`],
    ["a bare value", "text", `Record 0 must be a JSON object. ${kept}`],
  ])("%s", async (_name, body, message) => {
    const { addShop } = await testApp();
    const { intake, all } = await addShop();
    const response = await intake(body);
    expect({ status: response.status, body: await response.json() }).toEqual({ status: 400, body: { error: { code: "bad_record", message } } });
    expect(await all("customers")).toEqual([]);
  });

  test.each<[string, string | Uint8Array<ArrayBuffer>, string]>([
    ["broken JSON", '{"type":"customer"', `Record 0 is not valid JSON. ${kept}`],
    ["NDJSON with a broken line", `${JSON.stringify(customer(1))}\n{"type":`, `Record 1 is not valid JSON. ${kept}`],
    ["nothing", "", "The body is empty."],
    ["blank lines", "\n \n", "The body is empty."],
    ["bytes that are no UTF-8", Uint8Array.of(0x22, 0xff, 0x22), "The body is not UTF-8."],
  ])("%s", async (_name, raw, message) => {
    const { addShop } = await testApp();
    const { intake, all } = await addShop();
    const response = await intake(undefined, { raw });
    expect({ status: response.status, body: await response.json() }).toEqual({ status: 400, body: { error: { code: "bad_record", message } } });
    expect(await all("customers")).toEqual([]);
  });

  test("a body with a wrong signature, none, another shop's, or of an unknown shop", async () => {
    const { addShop } = await testApp();
    const alpha = await addShop("alpha.myshopify.com");
    await addShop("beta.myshopify.com");
    for (const headers of [
      { "X-Service-Signature": "" },
      { "X-Service-Signature": "sha256=" },
      { "X-Service-Signature": `sha256=${"0".repeat(64)}` },
      { "X-Service-Signature": `sha256=${"z".repeat(64)}` },
      { "X-Service-Shop": "beta.myshopify.com" },
      { "X-Service-Shop": "gamma.myshopify.com" },
      { "X-Service-Shop": "" },
      { "X-Service-Shop": "ALPHA.myshopify.com" },
    ]) {
      const response = await alpha.intake(customer(1), { headers });
      expect({ status: response.status, code: ((await response.json()) as { error: { code: string } }).error.code }).toEqual({
        status: 401,
        code: "unauthorized",
      });
    }
    expect(await alpha.all("customers")).toEqual([]);
  });

  test("a body above 5 MiB, announced or streamed", async () => {
    const { addShop, request } = await testApp();
    const { intake } = await addShop();
    const raw = " ".repeat(5 * 1024 * 1024 + 1);
    expect((await intake(undefined, { raw, headers: { "Content-Length": String(raw.length) } })).status).toBe(413);
    const streamed = new Blob([raw]).stream();
    const response = await request("/intake", { method: "POST", body: streamed });
    expect({ status: response.status, body: await response.json() }).toEqual({
      status: 413,
      body: { error: { code: "too_large", message: "The body may have 5242880 bytes at most." } },
    });
  });
});

test("personal data of a refused record is in no log", async () => {
  const { addShop, logged } = await testApp();
  const { intake } = await addShop();
  await intake(undefined, { raw: '{"type":"customer","email":"bob@example.com' });
  await intake({ ...customer(1), email: 5, firstName: "Bob" });
  expect(logged.join("")).not.toMatch(/bob/i);
});

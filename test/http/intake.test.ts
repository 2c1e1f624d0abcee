import { describe, expect, test } from "bun:test";
import { answerOf, refusal, success } from "../support/answer.ts";
import { START, testApp, testShop } from "../support/app.ts";
import { customer, gid, order, reward, subscription } from "../support/records.ts";

const MAX_BYTES = 1024 * 1024;
const MAX_RECORDS = 250;
const NOTHING_KEPT = "Nothing of this body was kept.";
const IMPORT_MORE = "Send more in several bodies, or with `sds import`.";
const TOO_LARGE = refusal(413, "too_large", `The body may have 1048576 bytes at most. ${IMPORT_MORE}`);
const TOO_MANY = refusal(413, "too_large", `The body may have 250 records at most. ${IMPORT_MORE}`);
const UNAUTHORIZED = refusal(
  401,
  "unauthorized",
  "Send X-Service-Shop, and X-Service-Signature: sha256= and the hex HMAC-SHA256 of the raw body with that shop's intake secret.",
  { "www-authenticate": "Bearer" },
);

/** Well-formed headers of an unknown shop. */
const SIGNED_BY_SOMEBODY = {
  "X-Service-Shop": "nobody.myshopify.com",
  "X-Service-Signature": `sha256=${"0".repeat(64)}`,
};

function badRecord(message: string) {
  return refusal(400, "bad_record", message);
}

describe("POST /intake takes", () => {
  test.each([
    ["one record", JSON.stringify(customer(1)), 1, 1],
    ["one record over several lines", JSON.stringify(customer(1), null, 2), 1, 1],
    ["an array", JSON.stringify([customer(1), subscription(1), order(1, 1), reward("r")]), 4, 1],
    ["NDJSON with empty lines", `${JSON.stringify(customer(1))}\r\n\n${JSON.stringify(customer(2))}\n`, 2, 2],
    ["an empty array", "[]", 0, 0],
  ])("%s", async (_name, raw, accepted, customers) => {
    const { intake, all } = await testShop();
    expect(await answerOf(await intake(undefined, { raw }))).toEqual(success(202, { accepted }));
    expect(await all("customers")).toHaveLength(customers);
  });

  test("records of a shop on a plan without access, because its mirror stays up to date", async () => {
    const { app, shop, intake, all } = await testShop({}, "free");
    expect(await answerOf(await intake(customer(1)))).toEqual(success(202, { accepted: 1 }));
    await app.store.shops.set(shop.domain, { plan: "pro" });
    expect(await all("customers")).toHaveLength(1);
  });

  test.each<[string, Record<string, string>]>([
    ["announced", { "Content-Length": String(MAX_BYTES) }],
    ["streamed", {}],
  ])("a body of exactly 1 MiB, %s", async (_name, headers) => {
    const { intake } = await testShop();
    const raw = JSON.stringify(customer(1)).padEnd(MAX_BYTES);
    expect(await answerOf(await intake(undefined, { raw, headers }))).toEqual(success(202, { accepted: 1 }));
  });
});

describe("POST /intake refuses, and does not store, a body with", () => {
  test.each<[string, string | Uint8Array<ArrayBuffer>, string]>([
    [
      "a field of the wrong form",
      JSON.stringify([customer(1), { ...customer(2), email: 5 }]),
      `Record 1, field email: must be a well-formed string of at most 1024 characters, without U+0000, or null. ${NOTHING_KEPT}`,
    ],
    [
      "an order for an unknown contract",
      JSON.stringify([customer(1), order(7, 1)]),
      `Record 1, field subscription: names a contract that is not in the mirror: ${gid.contract(7)}. ${NOTHING_KEPT}`,
    ],
    ["a number among the records", JSON.stringify([customer(1), 5]), `Record 1 must be a JSON object. ${NOTHING_KEPT}`],
    ["a string", '"text"', `Record 0 must be a JSON object. ${NOTHING_KEPT}`],
    ["broken JSON", '{"type":"customer"', `Record 0 is not valid JSON. ${NOTHING_KEPT}`],
    [
      "NDJSON with a broken line",
      `${JSON.stringify(customer(1))}\n{"type":`,
      `Record 1 is not valid JSON. ${NOTHING_KEPT}`,
    ],
    ["nothing in it", "", "The body is empty."],
    ["blank lines only", "\n \n", "The body is empty."],
    ["bytes that are not UTF-8", Uint8Array.of(0x22, 0xff, 0x22), "The body is not UTF-8."],
  ])("%s", async (_name, raw, message) => {
    const { intake, all } = await testShop();
    expect(await answerOf(await intake(undefined, { raw }))).toEqual(badRecord(message));
    expect(await all("customers")).toEqual([]);
  });

  test("a wrong signature, no signature, another shop's signature, or an unknown shop", async () => {
    const alpha = await testShop();
    await alpha.addShop("beta.myshopify.com");
    const rows: Record<string, string>[] = [
      { "X-Service-Signature": "" },
      { "X-Service-Signature": "sha256=" },
      { "X-Service-Signature": `sha256=${"0".repeat(64)}` },
      { "X-Service-Signature": `sha256=${"z".repeat(64)}` },
      { "X-Service-Shop": "beta.myshopify.com" },
      { "X-Service-Shop": "gamma.myshopify.com" },
      { "X-Service-Shop": "" },
      { "X-Service-Shop": "ALPHA.myshopify.com" },
    ];
    for (const headers of rows)
      expect([headers, await answerOf(await alpha.intake(customer(1), { headers }))]).toEqual([headers, UNAUTHORIZED]);
    expect(await alpha.all("customers")).toEqual([]);
  });

  test("more than 1 MiB, announced or streamed", async () => {
    const { request, intake } = await testShop();
    const raw = " ".repeat(MAX_BYTES + 1);
    expect(await answerOf(await intake(undefined, { raw, headers: { "Content-Length": String(raw.length) } }))).toEqual(
      TOO_LARGE,
    );
    const streamed = { method: "POST", body: new Blob([raw]).stream(), headers: SIGNED_BY_SOMEBODY };
    expect(await answerOf(await request("/intake", streamed))).toEqual(TOO_LARGE);
  });

  test("more than 1 MiB announced, without waiting for it", async () => {
    const { request } = await testApp();
    const endless = new ReadableStream({ pull: () => new Promise(() => undefined) });
    const headers = { "Content-Length": String(MAX_BYTES + 1) };
    expect(await answerOf(await request("/intake", { method: "POST", body: endless, headers }))).toEqual(TOO_LARGE);
  });

  test.each<[string, string, Record<string, string>, number]>([
    ["announced", "/intake", { ...SIGNED_BY_SOMEBODY, "Content-Length": String(MAX_BYTES + 5) }, 413],
    ["streamed", "/intake", SIGNED_BY_SOMEBODY, 413],
    ["unsigned", "/intake", {}, 401],
    ["to another path", "/intakes", {}, 404],
    ["to a path of other methods", "/readyz", {}, 405],
  ])(
    "more than 1 MiB, after reading all of it if the connection ends with the answer: %s",
    async (_, path, headers, status) => {
      const { request } = await testApp();
      const pieces = [MAX_BYTES, 1, 1, 1, 1, 1].map((size) => new Uint8Array(size));
      const body = new ReadableStream({
        pull(controller) {
          const piece = pieces.shift();
          return piece === undefined ? controller.close() : controller.enqueue(piece);
        },
      });
      const sent = { method: "POST", body, headers: { ...headers, Connection: "close" } };
      expect((await request(path, sent)).status).toBe(status);
      expect(pieces).toEqual([]);
    },
  );
});

describe("a body with as many records as one commit takes", () => {
  const many = Array.from({ length: MAX_RECORDS }, (_, n) => subscription(n + 1));

  test.each([
    ["an array", JSON.stringify(many)],
    ["NDJSON", many.map((record) => JSON.stringify(record)).join("\r\n")],
  ])("is accepted as %s, and its records and events are there when it is answered", async (_name, raw) => {
    const { app, shop, intake } = await testShop();
    const webhook = { url: "https://hooks.example.com/", topics: ["subscription.created" as const] };
    await app.store.webhooks.set(shop.id, webhook, START);
    for (let time = 0; time < 2; time += 1) {
      expect(await answerOf(await intake(undefined, { raw }))).toEqual(success(202, { accepted: MAX_RECORDS }));
      const counts = await app.store.shops.rowCounts(shop.id);
      expect(counts).toEqual({ customers: MAX_RECORDS, subscriptions: MAX_RECORDS, orders: 0 });
      expect(await app.store.deliveries.list(shop.id, { limit: 1_000 })).toHaveLength(MAX_RECORDS);
    }
  });

  test.each([
    ["an array", (records: object[]) => JSON.stringify(records)],
    ["NDJSON", (records: object[]) => records.map((record) => JSON.stringify(record)).join("\n")],
  ])("and one more is refused as %s, whatever the last one is", async (_name, textOf) => {
    const { app, shop, intake } = await testShop();
    for (const last of [customer(1), { type: "nonsense" }])
      expect(await answerOf(await intake(undefined, { raw: textOf([...many, last]) }))).toEqual(TOO_MANY);
    expect(await app.store.shops.rowCounts(shop.id)).toEqual({ customers: 0, subscriptions: 0, orders: 0 });
  });
});

test("POST /intake without headers of the right form is refused without waiting for its body", async () => {
  const { request, shop } = await testShop();
  const rows: Record<string, string>[] = [
    {},
    { ...SIGNED_BY_SOMEBODY, "X-Service-Shop": "" },
    { "X-Service-Shop": shop.domain },
    { ...SIGNED_BY_SOMEBODY, "X-Service-Signature": `sha256=${"0".repeat(63)}` },
    { ...SIGNED_BY_SOMEBODY, "X-Service-Signature": "0".repeat(64) },
  ];
  for (const headers of rows) {
    const body = new ReadableStream({ pull: () => new Promise(() => undefined) });
    const answer = await answerOf(await request("/intake", { method: "POST", body, headers }));
    expect([headers, answer]).toEqual([headers, UNAUTHORIZED]);
  }
});

test("no log has personal data of a refused record", async () => {
  const { logged, intake } = await testShop();
  expect((await intake(undefined, { raw: '{"type":"customer","email":"bob@example.com' })).status).toBe(400);
  expect((await intake({ ...customer(1), email: 5, firstName: "Bob" })).status).toBe(400);
  expect(logged.join("")).not.toMatch(/bob/i);
});

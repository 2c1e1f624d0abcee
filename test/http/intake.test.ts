import { describe, expect, test } from "bun:test";
import { answerOf, refusal, success } from "../support/answer.ts";
import { START, testApp } from "../support/app.ts";
import { eventually } from "../support/eventually.ts";
import { customer, gid, order, reward, subscription } from "../support/records.ts";

const MAX_BYTES = 5 * 1024 * 1024;
const NOTHING_KEPT = "Nothing of this body was kept.";
const TOO_LARGE = refusal(413, "too_large", "The body may have 5242880 bytes at most.");
const UNAUTHORIZED = refusal(
  401,
  "unauthorized",
  "Send X-Service-Shop, and X-Service-Signature: sha256= and the hex HMAC-SHA256 of the raw body with that shop's intake secret.",
  { "www-authenticate": "Bearer" },
);

/** Headers of the right form, of an unknown shop. */
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
    const { addShop } = await testApp();
    const { intake, all } = await addShop();
    expect(await answerOf(await intake(undefined, { raw }))).toEqual(success(202, { accepted }));
    expect(await all("customers")).toHaveLength(customers);
  });

  test("records of a shop on a plan without access, because its mirror is still kept up to date", async () => {
    const { app, addShop } = await testApp();
    const { shop, intake, all } = await addShop("alpha.myshopify.com", "free");
    expect(await answerOf(await intake(customer(1)))).toEqual(success(202, { accepted: 1 }));
    await app.store.shops.set(shop.domain, { plan: "pro" });
    expect(await all("customers")).toHaveLength(1);
  });

  test.each<[string, Record<string, string>]>([
    ["announced", { "Content-Length": String(MAX_BYTES) }],
    ["streamed", {}],
  ])("a body of exactly 5 MiB, %s", async (_name, headers) => {
    const { addShop } = await testApp();
    const { intake } = await addShop();
    const raw = JSON.stringify(customer(1)).padEnd(MAX_BYTES);
    expect(await answerOf(await intake(undefined, { raw, headers }))).toEqual(success(202, { accepted: 1 }));
  });
});

describe("POST /intake refuses, and keeps nothing of, a body with", () => {
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
    const { addShop } = await testApp();
    const { intake, all } = await addShop();
    expect(await answerOf(await intake(undefined, { raw }))).toEqual(badRecord(message));
    expect(await all("customers")).toEqual([]);
  });

  test("a wrong signature, none, another shop's, or of an unknown shop", async () => {
    const { addShop } = await testApp();
    const alpha = await addShop("alpha.myshopify.com");
    await addShop("beta.myshopify.com");
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

  test("more than 5 MiB, announced or streamed", async () => {
    const { addShop, request } = await testApp();
    const { intake } = await addShop();
    const raw = " ".repeat(MAX_BYTES + 1);
    expect(await answerOf(await intake(undefined, { raw, headers: { "Content-Length": String(raw.length) } }))).toEqual(
      TOO_LARGE,
    );
    const streamed = { method: "POST", body: new Blob([raw]).stream(), headers: SIGNED_BY_SOMEBODY };
    expect(await answerOf(await request("/intake", streamed))).toEqual(TOO_LARGE);
  });

  test("more than 5 MiB announced, without waiting for it", async () => {
    const { request } = await testApp();
    const endless = new ReadableStream({ pull: () => new Promise(() => undefined) });
    const headers = { "Content-Length": String(MAX_BYTES + 1) };
    expect(await answerOf(await request("/intake", { method: "POST", body: endless, headers }))).toEqual(TOO_LARGE);
  });
});

describe("a body with more records than one commit takes", () => {
  const many = Array.from({ length: 2_000 }, (_, n) => [customer(n + 1), subscription(n + 1), order(n + 1, 1)]).flat();

  test.each([
    ["an array", JSON.stringify(many)],
    ["NDJSON", many.map((record) => JSON.stringify(record)).join("\r\n")],
  ])("is accepted as %s, and its records and events are there when it is answered", async (_name, raw) => {
    const { app, addShop } = await testApp();
    const { shop, intake, all } = await addShop();
    await app.store.webhooks.set(shop.id, { url: "https://hooks.example.com/", topics: ["order.charged"] }, START);
    expect(await answerOf(await intake(undefined, { raw }))).toEqual(success(202, { accepted: 6_000 }));
    expect(await app.store.shops.rowCounts(shop.id)).toEqual({ customers: 2_000, subscriptions: 2_000, orders: 2_000 });
    expect(await all("orders")).toHaveLength(2_000);
    expect(await app.store.deliveries.list(shop.id, { limit: 5_000 })).toHaveLength(2_000);
    expect(await answerOf(await intake(undefined, { raw }))).toEqual(success(202, { accepted: 6_000 }));
    expect(await app.store.deliveries.list(shop.id, { limit: 5_000 })).toHaveLength(2_000);
  });

  test.each<[string, unknown, string]>([
    ["a bad record", { ...customer(1), email: 5 }, "Record 6000, field email: must be"],
    [
      "an order for an unknown contract",
      order(7_777, 1),
      "Record 6000, field subscription: names a contract that is not",
    ],
  ])("is refused whole for %s at its end", async (_name, record, message) => {
    const { app, addShop } = await testApp();
    const { shop, intake } = await addShop();
    const response = await intake([...many, record]);
    expect([response.status, await response.text()]).toEqual([400, expect.stringContaining(message)]);
    expect(await app.store.shops.rowCounts(shop.id)).toEqual({ customers: 0, subscriptions: 0, orders: 0 });
  });

  test("is answered with 503 if 20 MiB of its shop are under way, and other bodies are accepted", async () => {
    const { addShop } = await testApp();
    const { intake } = await addShop();
    const other = await addShop("beta.myshopify.com");
    const raw = JSON.stringify(many.slice(0, 300)).padEnd(MAX_BYTES);
    const large = Array.from({ length: 6 }, () => intake(undefined, { raw }));
    const others = [other.intake(undefined, { raw }), intake(customer(1))];
    const statuses = (await Promise.all(large)).map(({ status }) => status);
    expect(statuses.toSorted()).toEqual([202, 202, 202, 202, 503, 503]);
    expect((await Promise.all(others)).map(({ status }) => status)).toEqual([202, 202]);
    expect((await intake(undefined, { raw })).status).toBe(202);
  });
});

test("POST /intake without headers of the right form is refused without waiting for its body", async () => {
  const { addShop, request } = await testApp();
  const { shop } = await addShop();
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
  const { addShop, logged } = await testApp();
  const { intake } = await addShop();
  expect((await intake(undefined, { raw: '{"type":"customer","email":"bob@example.com' })).status).toBe(400);
  expect((await intake({ ...customer(1), email: 5, firstName: "Bob" })).status).toBe(400);
  expect(logged.join("")).not.toMatch(/bob/i);
});

test("a shop with a body that a restart interrupted gets 503 until it is applied, and others are served", async () => {
  const { app, addShop } = await testApp();
  const [alpha, beta] = [await addShop(), await addShop("beta.myshopify.com")];
  const { intakeBodies } = app.store;
  const number = (await intakeBodies.begin(alpha.shop.id)) ?? 0;
  const parts = Array.from({ length: 200 }, (_, n) => JSON.stringify([customer(n + 1, { creditsCents: 1 })]));
  await intakeBodies.add(alpha.shop.id, number, parts);
  await intakeBodies.complete(alpha.shop.id, number, parts.length);
  // In tests, pauses and limits of time are over at once.
  await app.start();
  expect((await beta.intake(customer(1))).status).toBe(202);
  const newer = customer(200, { creditsCents: 2 });
  const first = await alpha.intake(newer);
  expect([first.status, await first.text()]).toEqual([503, expect.stringContaining("interrupted by a restart")]);
  await eventually(async () => (await alpha.intake(newer)).status === 202);
  expect(await alpha.all("customers")).toHaveLength(200);
  expect((await alpha.all("customers")).find(({ shopifyId }) => shopifyId === newer.shopifyId)).toMatchObject({
    creditsCents: 2,
  });
});

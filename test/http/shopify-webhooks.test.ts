import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { importSecret } from "../../src/client/signature.ts";
import { LONGEST_BURST_MS } from "../../src/shopify/api/topics.ts";
import { answerOf, refusal, success } from "../support/answer.ts";
import { apply, START, type TestApp, temporaryFolder, testShop } from "../support/app.ts";
import { eventually } from "../support/eventually.ts";
import { customer, gid } from "../support/records.ts";

const SECRET = "the-app-client-secret";
const BOB = "gid://shopify/Customer/706405506930370084";
const TAKEN = success(200, {});
const WRONG_HMAC = "X-Shopify-Hmac-Sha256 is not the HMAC of this body with the app's client secret.";
const UNAUTHORIZED = refusal(401, "unauthorized", WRONG_HMAC, { "www-authenticate": "Bearer" });

async function platformShop(secrets = SECRET) {
  const file = join(temporaryFolder(), "secret");
  writeFileSync(file, secrets);
  const test = await testShop({ SDS_PLATFORM_SECRET_FILE: file });
  return { ...test, file, send: (webhook: Sent) => send(test, webhook) };
}

function sample(name: string): Promise<string> {
  return Bun.file(join(import.meta.dir, "../support/platform-webhooks", `${name}.json`)).text();
}

/** The platform's sample of `customers/update`, with another first name and another time of the change. */
async function renamed(firstName: string, at: string): Promise<string> {
  const text = (await sample("customers__update")).replaceAll("Bob", firstName);
  return text.replace('"updated_at": "2021-12-31T19:00:00-05:00"', `"updated_at": "${at}"`);
}

/** A change of Bob's consent. */
async function consent(state: "subscribed" | "unsubscribed"): Promise<Pick<Sent, "topic" | "body">> {
  const text = await sample("customers_email_marketing_consent__update");
  const body = text.replace("706405506930370000", "706405506930370084").replace("not_subscribed", state);
  return { topic: "customers_email_marketing_consent/update", body };
}

interface Sent {
  topic: string;
  /** The platform's sample of the topic by default. */
  body?: string | undefined;
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
  const bytes = Uint8Array.from(Buffer.from(body ?? (await sample(topic.replace("/", "__")))));
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
  const { all, send } = await platformShop();
  for (const topic of ["customers/create", "customers/update"])
    expect(await answerOf(await send({ topic }))).toEqual(TAKEN);
  expect(await all("customers")).toMatchObject([
    { shopifyId: BOB, email: "bob@biller.com", firstName: "Bob", lastName: "Biller", marketingConsent: false },
  ]);
});

test("consent is stored for the exact id, although the id is larger than a JavaScript number can be", async () => {
  const { app, shop, all, send } = await platformShop();
  await apply(app, shop, [customer(1, { shopifyId: BOB })]);
  await send(await consent("subscribed"));
  expect(await all("customers")).toMatchObject([{ shopifyId: BOB, marketingConsent: true }]);
  await send(await consent("unsubscribed"));
  expect(await all("customers")).toMatchObject([{ shopifyId: BOB, marketingConsent: false }]);
});

test("a webhook that comes again is recognized by its id, and an older webhook does not undo a newer one", async () => {
  const { all, send } = await platformShop();
  const topic = "customers/update";
  await send({ topic, body: await renamed("Second", "2026-01-02T00:00:00-05:00"), id: "a" });
  await send({ topic, body: await renamed("Third", "2026-01-03T00:00:00-05:00"), id: "a" });
  await send({ topic, body: await renamed("First", "2026-01-01T00:00:00-05:00"), id: "b" });
  expect(await all("customers")).toMatchObject([{ firstName: "Second" }]);
});

test.each<[string, string, string]>([
  ["of 200 characters is recognized when it comes again", "i".repeat(200), "First"],
  ["of 201 characters is not kept, and each webhook counts", "i".repeat(201), "Second"],
  ["that is missing is not kept, and each webhook counts", "", "Second"],
])("an id %s", async (_name, id, firstName) => {
  const { all, send } = await platformShop();
  const topic = "customers/update";
  await send({ topic, body: await renamed("First", "2026-01-01T00:00:00-05:00"), id });
  await send({ topic, body: await renamed("Second", "2026-01-02T00:00:00-05:00"), id });
  expect(await all("customers")).toMatchObject([{ firstName }]);
});

test.each(["", "yesterday"])("a webhook with the time %p counts as sent when it arrived", async (sentAt) => {
  const { app, shop, all, send } = await platformShop();
  await apply(app, shop, [customer(1, { shopifyId: BOB })]);
  await send({ ...(await consent("subscribed")), headers: { "X-Shopify-Triggered-At": sentAt } });
  const earlier = new Date(START - 1).toISOString();
  await send({ ...(await consent("unsubscribed")), headers: { "X-Shopify-Triggered-At": earlier } });
  expect(await all("customers")).toMatchObject([{ marketingConsent: true }]);
});

test("the log has at most 100 characters of a topic, 253 of a shop and 200 of an id", async () => {
  const { logged, send } = await platformShop();
  const [topic, domain, id] = ["t".repeat(1000), "d".repeat(1000), "i".repeat(1000)];
  expect(await answerOf(await send({ topic, body: "{}", domain, id }))).toEqual(TAKEN);
  const [line] = logged.filter((text) => text.includes("platform webhook"));
  const webhookId = "i".repeat(200);
  expect(JSON.parse(line ?? "")).toMatchObject({ topic: "t".repeat(100), shop: "d".repeat(253), webhookId });
});

test("customers/redact removes the e-mail address and the names, and keeps the row", async () => {
  const { app, shop, all, send } = await platformShop();
  const person = customer(191167, { email: "john@example.com", firstName: "John", lastName: "Doe", creditsCents: 5 });
  await apply(app, shop, [person]);
  expect((await send({ topic: "customers/redact" })).status).toBe(200);
  expect(await all("customers")).toMatchObject([
    { shopifyId: gid.customer(191167), email: null, firstName: null, lastName: null, creditsCents: 5 },
  ]);
});

test("customers/data_request is logged with the number of the person and no other personal data", async () => {
  const { logged, send } = await platformShop();
  expect((await send({ topic: "customers/data_request" })).status).toBe(200);
  expect(logged.join("")).toContain(gid.customer(191167));
  expect(logged.join("")).not.toContain("john");
});

test("shop/redact removes the shop that both its header and its body name, and no other", async () => {
  const { app, addShop, send } = await platformShop();
  await addShop("beta.myshopify.com");
  /** @returns the shops that are left after the webhook */
  const domainsAfter = async (webhook: Omit<Sent, "topic">) => {
    expect((await send({ topic: "shop/redact", ...webhook })).status).toBe(200);
    return (await app.store.shops.list()).map(({ domain }) => domain);
  };
  const text = await sample("shop__redact");
  const domain = "beta.myshopify.com";
  expect(await domainsAfter({ body: text.replace("{shop}", "beta") })).toEqual(["alpha.myshopify.com", domain]);
  expect(await domainsAfter({ body: text.replace("{shop}", "alpha") })).toEqual([domain]);
  // The body of another topic removes nothing, even if the headers say shop/redact.
  expect(await domainsAfter({ body: await sample("customers__update"), domain })).toEqual([domain]);
  // The platform's own test tool does not replace `{shop}` in the sample. Then the header names the shop.
  expect(await domainsAfter({ body: text, domain })).toEqual([]);
});

test("a name that is too long is cut, and the rest of the profile is stored", async () => {
  const { all, send } = await platformShop();
  const body = (await sample("customers__update")).replace('"Biller"', `"${"b".repeat(2000)}"`);
  await send({ topic: "customers/update", body });
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
  const { all, app, clock, logged, send } = await platformShop();
  const domain = name === "a webhook for an unknown shop" ? "gamma.myshopify.com" : "alpha.myshopify.com";
  expect(await answerOf(await send({ topic, body, domain }))).toEqual(TAKEN);
  clock.ms += LONGEST_BURST_MS;
  app.processor.wake();
  await processed(app);
  expect(await all("customers")).toEqual([]);
  expect(logged.filter((line) => line.includes("platform webhook"))).toHaveLength(1);
  expect(logged.join("")).not.toContain("bob");
});

test("a signature with either of two secrets is genuine, and the file is read again when it changes", async () => {
  const { file, send } = await platformShop("new-secret\nold-secret\n");
  const status = async (secret: string) => (await send({ topic: "customers/update", secret })).status;
  expect([await status("new-secret"), await status("old-secret"), await status("newer-secret")]).toEqual([
    200, 200, 401,
  ]);
  writeFileSync(file, "newer-secret");
  expect([await status("newer-secret"), await status("old-secret")]).toEqual([200, 401]);
});

test.each([
  ["is missing", ""],
  ["is hex", "0".repeat(64)],
  ["is not base64", "!".repeat(44)],
  ["is short", "AAAA"],
])("a webhook whose signature %s is 401 and changes nothing", async (_name, hmac) => {
  const { all, send } = await platformShop();
  const response = await send({ topic: "customers/update", headers: { "X-Shopify-Hmac-Sha256": hmac } });
  expect(await answerOf(response)).toEqual(UNAUTHORIZED);
  expect(await all("customers")).toEqual([]);
});

test("without SDS_PLATFORM_SECRET_FILE every webhook is 401", async () => {
  const response = await send(await testShop(), { topic: "customers/update", secret: "anything" });
  expect(await answerOf(response)).toEqual(UNAUTHORIZED);
});

test("a body above 5 MiB is 413", async () => {
  const { send } = await platformShop();
  const response = await send({ topic: "customers/update", body: " ".repeat(5 * 1024 * 1024 + 1) });
  expect(await answerOf(response)).toEqual(refusal(413, "too_large", "The body may have 5242880 bytes at most."));
});

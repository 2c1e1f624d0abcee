import { describe, expect, test } from "bun:test";
import { WEBHOOK_TOPICS } from "../../../src/shopify/api/topics.ts";
import type { Evidence } from "../../../src/shopify/contracts/evidence.ts";
import { changeTime, changeWebhook, type Intent, orderingOf, readWebhook } from "../../../src/shopify/inbox/payload.ts";

const SENT_AT = Date.UTC(2026, 0, 3);
const CONTRACT = "gid://shopify/SubscriptionContract/9007199254740993";
const CUSTOMER = "gid://shopify/Customer/9007199254740993";
const ORDER = "gid://shopify/Order/7";

function read(topic: string, text: string): Intent {
  return readWebhook({ topic, text, triggeredAt: SENT_AT });
}

function merge(gone: string): string {
  const [kept, deleted] = ["admin_graphql_api_customer_kept_id", "admin_graphql_api_customer_deleted_id"];
  return `{"${kept}":"${CUSTOMER}","${deleted}":"${gone}"}`;
}

function ignored(reason: string): Intent {
  return { do: "ignore", reason };
}

function readContract(contract: string, orders: string[] = [], evidence: Evidence = {}): Intent {
  return { do: "read_contract", contract, orders, evidence };
}

function redaction(shopifyId: string): Intent {
  return { do: "apply", record: { type: "redaction", shopifyId, asOf: SENT_AT } };
}

function dataRequest(request: string | null): Intent {
  return { do: "note_data_request", customer: CUSTOMER, request };
}

const NO_CONTRACT = ignored("the payload names no SubscriptionContract");
const NO_CUSTOMER = ignored("the payload names no Customer");
const NO_PLAN = ignored("the payload names no plan");
const NO_CURRENCY = ignored("the payload names no currency");
const NO_SHOP = ignored("the payload names no shop");
const CONTRACT_7_GID = "gid://shopify/SubscriptionContract/7";
const CONTRACT_7 = readContract(CONTRACT_7_GID);
const CONTRACT_FIELD = `"admin_graphql_api_subscription_contract_id":"${CONTRACT}"`;
const CUSTOMER_FIELD = '"customer":{"id":9007199254740993}';
const PLAN = { name: "Pro", handle: null, status: "ACTIVE" };

test.each<[string, string, Intent]>([
  ["subscription_contracts/create", `{"admin_graphql_api_id":"${CONTRACT}","id":1}`, readContract(CONTRACT)],
  ["subscription_contracts/update", '{"id":7}', CONTRACT_7],
  ["subscription_contracts/update", '{"id":"7"}', CONTRACT_7],
  ["subscription_contracts/update", '{"id":9007199254740993}', NO_CONTRACT],
  ["subscription_contracts/update", '{"id":7.5}', NO_CONTRACT],
  ["subscription_contracts/update", '{"id":0}', NO_CONTRACT],
  ["subscription_contracts/update", `{"admin_graphql_api_id":"${CUSTOMER}"}`, NO_CONTRACT],
  ["subscription_contracts/update", "{}", NO_CONTRACT],
  ["subscription_billing_attempts/failure", `{${CONTRACT_FIELD},"subscription_contract_id":1}`, readContract(CONTRACT)],
  ["subscription_billing_attempts/success", '{"subscription_contract_id":7}', CONTRACT_7],
  [
    "subscription_billing_attempts/success",
    `{${CONTRACT_FIELD},"admin_graphql_api_order_id":"${ORDER}"}`,
    readContract(CONTRACT, [ORDER], { charges: [ORDER] }),
  ],
  [
    "subscription_billing_attempts/failure",
    `{${CONTRACT_FIELD},"admin_graphql_api_order_id":"${CUSTOMER}"}`,
    readContract(CONTRACT),
  ],
  ["subscription_billing_cycles/skip", '{"subscription_contract_id":9007199254740993}', readContract(CONTRACT)],
  ["orders/paid", `{"admin_graphql_api_id":"${ORDER}"}`, { do: "read_order", order: ORDER, evidence: {} }],
  [
    "orders/paid",
    '{"id":7,"updated_at":"2026-03-01T00:00:00-05:00"}',
    { do: "read_order", order: ORDER, evidence: { orders: { [ORDER]: Date.parse("2026-03-01T05:00:00Z") } } },
  ],
  [
    "subscription_contracts/update",
    '{"id":7,"revision_id":"12"}',
    readContract(CONTRACT_7_GID, [], { revision: "12" }),
  ],
  ["subscription_contracts/update", '{"id":7,"revision_id":"x"}', CONTRACT_7],
  [
    "subscription_billing_attempts/failure",
    '{"subscription_contract_id":7,"admin_graphql_api_id":null,"idempotency_key":"k"}',
    readContract(CONTRACT_7_GID, [], { attempts: ["k"] }),
  ],
  [
    "subscription_billing_cycles/skip",
    '{"subscription_contract_id":7,"cycle_index":2,"skipped":true,"billing_attempt_expected_date":"2026-03-01T00:00:00Z"}',
    readContract(CONTRACT_7_GID, [], {
      cycles: { 2: { skipped: true, expectedAt: Date.parse("2026-03-01T00:00:00Z") } },
    }),
  ],
  ["orders/paid", '{"id":7}', { do: "read_order", order: ORDER, evidence: {} }],
  ["app/uninstalled", "{}", { do: "note_uninstallation" }],
  ["shop/update", '{"currency":"EUR"}', { do: "set_currency", currency: "EUR" }],
  ["shop/update", '{"currency":"eur"}', NO_CURRENCY],
  ["shop/update", "{}", NO_CURRENCY],
  [
    "app_subscriptions/update",
    '{"app_subscription":{"name":"Pro","status":"ACTIVE"}}',
    { do: "read_plan", subscription: PLAN },
  ],
  ["app_subscriptions/update", '{"app_subscription":{"name":"Pro"}}', NO_PLAN],
  ["app_subscriptions/update", '{"app_subscription":{"status":"ACTIVE"}}', NO_PLAN],
  ["app_subscriptions/update", "{}", NO_PLAN],
  [
    "customers/merge",
    merge("gid://shopify/Customer/2"),
    { do: "merge_customers", kept: CUSTOMER, gone: "gid://shopify/Customer/2" },
  ],
  ["customers/merge", merge("gid://shopify/Order/2"), { do: "merge_customers", kept: CUSTOMER, gone: undefined }],
  [
    "customers/merge",
    `{"admin_graphql_api_customer_kept_id":"${CUSTOMER}","status":"failed"}`,
    ignored("the merge failed"),
  ],
  ["customers/merge", "{}", NO_CUSTOMER],
  ["customers/delete", '{"id":7}', redaction("gid://shopify/Customer/7")],
  ["customers/redact", `{${CUSTOMER_FIELD}}`, redaction(CUSTOMER)],
  ["customers/redact", '{"id":7}', NO_CUSTOMER],
  ["customers/data_request", `{${CUSTOMER_FIELD}}`, dataRequest(null)],
  ["customers/data_request", `{${CUSTOMER_FIELD},"data_request":{"id":"7 or 8"}}`, dataRequest(null)],
  [
    "customers/data_request",
    `{${CUSTOMER_FIELD},"data_request":{"id":9007199254740995}}`,
    dataRequest("9007199254740995"),
  ],
  ["customers/data_request", `{${CUSTOMER_FIELD},"data_request":{"id":{"toString":1}}}`, dataRequest(null)],
  ["shop/redact", '{"shop_domain":"alpha.myshopify.com"}', { do: "remove_shop", domain: "alpha.myshopify.com" }],
  ["shop/redact", '{"shop_domain":"{shop}.myshopify.com"}', { do: "remove_shop", domain: null }],
  ["shop/redact", '{"shop_domain":"Alpha"}', NO_SHOP],
  ["shop/redact", "{}", NO_SHOP],
  ["products/update", "{}", ignored("the topic is not used")],
  ["constructor", "{}", ignored("the topic is not used")],
  ["orders/paid", "[]", ignored("the payload is not a JSON object")],
])("%s with %s is read", (topic, text, intent) => {
  expect(read(topic, text)).toEqual(intent);
});

describe("a customer", () => {
  const full = {
    admin_graphql_api_id: CUSTOMER,
    email: "ada@example.com",
    first_name: "Ada",
    last_name: null,
    updated_at: "2026-01-02T03:04:05-05:00",
  };
  const names = { email: "ada@example.com", firstName: "Ada", lastName: null };

  test("is read with the time of the change", () => {
    const record = { type: "customer" as const, shopifyId: CUSTOMER, ...names, asOf: Date.UTC(2026, 0, 2, 8, 4, 5) };
    expect(read("customers/update", JSON.stringify(full))).toEqual({ do: "apply", record });
    // The platform's clocks may differ a little. So a change can be dated after its webhook was sent.
    const later = { ...full, updated_at: new Date(SENT_AT + 60_000).toISOString() };
    expect(read("customers/update", JSON.stringify(later))).toMatchObject({ record: { asOf: SENT_AT + 60_000 } });
  });

  test.each([undefined, null, "soon", 7, "9999-12-31T23:59:59Z", "+275760-09-13T00:00:00Z"])(
    "has the time of the webhook if the date in the payload is %p",
    (updated_at) => {
      expect(read("customers/create", JSON.stringify({ ...full, updated_at }))).toMatchObject({
        record: { asOf: SENT_AT },
      });
    },
  );

  test("has only the fields of the payload", () => {
    const record = { type: "customer" as const, shopifyId: CUSTOMER, asOf: SENT_AT };
    expect(read("customers/enable", JSON.stringify({ admin_graphql_api_id: CUSTOMER }))).toEqual({
      do: "apply",
      record,
    });
  });

  test("has texts of bounded length, with whole characters", () => {
    const long = { ...full, first_name: `${"x".repeat(1023)}😀`, last_name: "y".repeat(2000) };
    expect(read("customers/update", JSON.stringify(long))).toMatchObject({
      record: { firstName: `${"x".repeat(1023)}\ufffd`, lastName: "y".repeat(1024) },
    });
  });

  test("is ignored with field and reason if it is not valid", () => {
    const intent = read("customers/update", JSON.stringify({ ...full, email: 7 }));
    expect(intent).toMatchObject({ do: "ignore", reason: expect.stringMatching(/^email must be /) });
  });
});

test.each([
  ["subscribed", true],
  ["unsubscribed", false],
  ["pending", false],
  [undefined, false],
])("consent %p is %p", (state, marketingConsent) => {
  const consent = { state, consent_updated_at: "2026-01-02T00:00:00Z" };
  const text = `{"customer_id":9007199254740993,"email_marketing_consent":${JSON.stringify(consent)}}`;
  expect(read("customers_email_marketing_consent/update", text)).toEqual({
    do: "apply",
    record: { type: "customer", shopifyId: CUSTOMER, marketingConsent, asOf: Date.UTC(2026, 0, 2) },
  });
});

describe("the subject", () => {
  test.each<[Intent, string, boolean]>([
    [redaction(CUSTOMER), CUSTOMER, false],
    [dataRequest("1"), CUSTOMER, false],
    [readContract(CONTRACT), CONTRACT, true],
    [{ do: "read_order", order: ORDER, evidence: {} }, ORDER, true],
    [{ do: "merge_customers", kept: CUSTOMER, gone: undefined }, `merge of ${CUSTOMER}`, true],
    [{ do: "read_plan", subscription: PLAN }, "installation", true],
    [{ do: "set_currency", currency: "EUR" }, "shop", false],
    [{ do: "note_uninstallation" }, "shop", false],
    [{ do: "remove_shop", domain: null }, "removal", true],
  ])("of %j is %s", (intent, subject, needsPlatform) => {
    expect(orderingOf(intent)).toEqual({ subject, needsPlatform });
  });
});

test("a contract that waits in the inbox is read like the platform's webhook about it", () => {
  const { topic, body } = changeWebhook("contract", CONTRACT);
  expect(Object.keys(WEBHOOK_TOPICS)).toContain(topic);
  expect(read(topic, body)).toEqual(readContract(CONTRACT));
});

test("the time of a change is the one of the payload, unless that is missing or more than a day ahead", () => {
  const day = 86_400_000;
  for (const at of [SENT_AT - 30 * day, SENT_AT, SENT_AT + day])
    expect(changeTime(new Date(at).toJSON(), SENT_AT)).toBe(at);
  for (const text of [new Date(SENT_AT + day + 1).toJSON(), "soon", null, SENT_AT])
    expect(changeTime(text, SENT_AT)).toBe(SENT_AT);
});

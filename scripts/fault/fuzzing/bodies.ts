import { createHmac } from "node:crypto";
import { signedWith } from "../../../test/support/platform/webhook.ts";
import { mutatedText, ODD_TEXTS, type Random } from "./random.ts";
import { type FuzzedRequest, headerText } from "./request.ts";
import { type FuzzedShop, numberOf, PLATFORM_SECRET, recordsAbout, type World } from "./world.ts";

/** Records use this many gids. The shop has fewer rows at the start, so some gids are new. */
const NUMBERS = 400;
const TOPICS = `
  customers/create customers/update customers/delete customers/redact customers/data_request customers/merge
  customers_email_marketing_consent/update shop/update app/uninstalled subscription_contracts/update
  subscription_billing_attempts/failure orders/paid app_subscriptions/update
`
  .trim()
  .split(/\s+/);

type Json = string | number | boolean | null | Json[] | { [name: string]: Json };

function oddValue(random: Random): Json {
  const nested = (depth: number): Json => (depth === 0 ? 0 : [nested(depth - 1)]);
  const numbers = [0, -1, 0.5, 1e21, -0, Number.MAX_SAFE_INTEGER, 2 ** 53, 1e308];
  const others = [null, true, false, [], {}, [[]], { toString: 1 }, nested(60)];
  if (random.chance(0.5)) return random.pick(ODD_TEXTS);
  return random.chance(0.5) ? random.pick(numbers) : random.pick<Json>(others);
}

/** Returns a copy of a JSON value in which one value, at any depth, is replaced, removed or added. */
function mutated(random: Random, value: Json): Json {
  if (typeof value === "string" && random.chance(0.5)) return mutatedText(random, value);
  if (value === null || typeof value !== "object" || random.chance(0.05)) return oddValue(random);
  if (Array.isArray(value)) {
    if (value.length === 0 || random.chance(0.2)) return [...value, oddValue(random)];
    const at = random.below(value.length);
    return value.map((each, index) => (index === at ? mutated(random, each) : each));
  }
  const entries = Object.entries(value);
  const at = random.below(entries.length + 1);
  const [name] = entries[at] ?? [];
  if (name === undefined) return { ...value, [random.pick([...ODD_TEXTS, "email", "given_name"])]: oddValue(random) };
  if (random.chance(0.15)) return Object.fromEntries(entries.filter((_, index) => index !== at));
  return Object.fromEntries(entries.map(([key, each]) => [key, key === name ? mutated(random, each) : each]));
}

/** Changes, cuts or inserts bytes. The result may be invalid JSON or UTF-8. */
function damaged(random: Random, body: Buffer): Buffer {
  const at = random.below(body.length + 1);
  const odd = Buffer.from(
    random.pick([[0], [0xff], [0xed, 0xa0, 0x80], [0xef, 0xbb, 0xbf], [0x0a], [0x5b], [0x22], [0x2c]]),
  );
  return Buffer.concat([body.subarray(0, at), odd, body.subarray(at + random.below(3))]);
}

function recordBody(random: Random, digits: string): Buffer {
  const records = Array.from({ length: 1 + random.below(4) }, () => {
    const record = random.pick(recordsAbout(digits, random.below(NUMBERS))) as Json;
    return random.chance(0.6) ? mutated(random, record) : record;
  });
  const form = random.pick(["one", "array", "lines", "crlf"]);
  if (form === "one") return Buffer.from(JSON.stringify(records[0]));
  if (form === "array") return Buffer.from(JSON.stringify(records));
  return Buffer.from(records.map((record) => JSON.stringify(record)).join(form === "crlf" ? "\r\n" : "\n"));
}

function withBody(random: Random, body: Buffer): { body: Buffer; chunkBytes?: number } {
  return random.chance(0.2) ? { body, chunkBytes: 1 + random.below(2_000) } : { body };
}

/** Makes a post of records: mostly with a right signature, often with wrong content. */
export function intakeRequest(random: Random, { shops }: World): FuzzedRequest {
  const shop = random.pick(shops);
  const right = recordBody(random, shop.digits);
  const body = random.chance(0.15) ? damaged(random, right) : right;
  const secret = random.chance(0.9) ? shop.intakeSecret : random.pick(shops).intakeSecret;
  const signature = `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`;
  const headers: [string, string][] = [
    ["X-Service-Shop", random.chance(0.95) ? shop.domain : headerText(mutatedText(random, shop.domain))],
    ["X-Service-Signature", random.chance(0.95) ? signature : headerText(mutatedText(random, signature))],
  ];
  if (random.chance(0.1)) headers.push(["Content-Encoding", random.pick(["gzip", "zstd", "br", "x"])]);
  if (random.chance(0.1)) headers.push(["Content-Type", headerText(random.pick(ODD_TEXTS))]);
  return { kind: "intake", method: "POST", target: "/intake", headers, as: shop, ...withBody(random, body) };
}

function payload(random: Random, { digits, domain }: FuzzedShop): Json {
  const number = numberOf(digits, random.below(NUMBERS));
  const customer = { id: Number(number), email: `${number}@example.com`, phone: null };
  const contract = `gid://shopify/SubscriptionContract/${number}`;
  return random.pick<Json>([
    {
      ...customer,
      first_name: "Ada",
      last_name: random.pick(ODD_TEXTS),
      admin_graphql_api_id: `gid://shopify/Customer/${number}`,
    },
    { shop_id: 1, shop_domain: domain, customer, orders_to_redact: [] },
    { customer_id: Number(number), email_address: customer.email, email_marketing_consent: { state: "subscribed" } },
    {
      admin_graphql_api_id: contract,
      id: Number(number),
      admin_graphql_api_customer_id: `gid://shopify/Customer/${number}`,
    },
    {
      admin_graphql_api_customer_kept_id: `gid://shopify/Customer/${number}`,
      admin_graphql_api_customer_deleted_id: "x",
    },
    { currency: random.pick(["USD", "JPY", "XXX", "usd", ""]), domain },
  ]);
}

/** Makes a platform webhook: mostly with a right signature, often with wrong content. */
export function platformRequest(random: Random, { shops }: World): FuzzedRequest {
  const shop = random.pick(shops);
  const sent = payload(random, shop);
  const text = JSON.stringify(random.chance(0.4) ? mutated(random, sent) : sent);
  const topic = random.chance(0.95) ? random.pick(TOPICS) : headerText(random.pick(ODD_TEXTS));
  // Some webhooks ask to redact a shop. They name a shop that was never added, because the real shops are needed until
  // the end.
  const gone = random.chance(0.05);
  const signed = signedWith(random.chance(0.9) ? PLATFORM_SECRET : "wrong", {
    shop: gone ? "delta.myshopify.com" : shop.domain,
    topic: gone ? "shop/redact" : topic,
    body: text,
    id: random.hex(random.chance(0.2) ? 2 : 16),
    eventId: random.hex(16),
    triggeredAt: random.chance(0.9) ? new Date(1_700_000_000_000 + random.below(1e9)).toISOString() : "yesterday",
  });
  const all = Object.entries(signed.headers);
  const left = random.chance(0.05) ? random.below(all.length) : -1;
  const headers = all
    .filter((_, index) => index !== left)
    .map(([name, value]): [string, string] => [name, headerText(value)]);
  const body = random.chance(0.05) ? damaged(random, Buffer.from(text)) : Buffer.from(text);
  return {
    kind: "platform",
    method: "POST",
    target: "/platform/webhooks",
    headers,
    as: shop,
    ...withBody(random, body),
  };
}

import { mutatedText, ODD_TEXTS, type Random } from "./random.ts";
import { type FuzzedRequest, headerText } from "./request.ts";
import type { FuzzedShop, World } from "./world.ts";

const RESOURCES = ["subscriptions", "customers", "orders"];
const PARAMETERS = [
  ...["limit", "cursor", "since", "updatedSince", "shopifyId", "customerId", "contractId", "status", "include"],
  ...["Limit", "cursor[]", "limit[]", "unknown", "__proto__", ""],
];
const METHODS = ["POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];
const PATHS = `
  / /api /api/ /api/v1 /api/v1/ /api/v2/orders /api/v1/Orders /api/v1/orders/ //api/v1/orders
  /api/v1/orders/../customers /api/v1/%6frders /api/v1/orders%00 /api/v1/orders%2f /api/v1/orders;x=1
  /healthz /readyz /openapi.json /docs /docs/../.. /metrics /app /favicon.ico /robots.txt
  /storefront/alpha.myshopify.com/widget.css /intake /platform/webhooks /admin%2fkeys /Admin /admin/../api
`
  .trim()
  .split(/\s+/);

/** Picks a known value of this shop or of another shop. Sometimes changes it, or takes an odd text instead. */
function valueFor(random: Random, own: readonly string[], foreign: readonly string[]): string {
  const list = random.chance(0.3) ? foreign : own;
  const value = list.length === 0 ? "" : random.pick(list);
  if (random.chance(0.4)) return mutatedText(random, value);
  return random.chance(0.15) ? random.pick(ODD_TEXTS) : value;
}

function queryOf(random: Random, shop: FuzzedShop, other: FuzzedShop): string {
  const pairs = Array.from({ length: random.below(4) }, () => {
    const name = random.pick(PARAMETERS);
    const kind = /cursor|since/i.test(name) ? "cursors" : random.chance(0.5) ? "ids" : "gids";
    const value = valueFor(random, shop.known[kind], other.known[kind]);
    const number = random.pick(["1", "5", "250", "251", "0", "-5", "12abc", "1e3", "1.5", "", "99999999999999999999"]);
    const chosen = /limit/i.test(name) && random.chance(0.8) ? number : value;
    return `${encoded(random, name)}=${encoded(random, chosen)}`;
  });
  return pairs.length === 0 ? "" : `?${pairs.join(random.pick(["&", "&", "&", ";", "&&"]))}`;
}

/**
 * Encodes a text for an address, mostly correctly. Sometimes encodes percent signs twice, or adds a lone percent sign,
 * bytes that are not UTF-8, or `+`.
 */
function encoded(random: Random, text: string): string {
  const right = encodeURIComponent(text.toWellFormed());
  if (random.chance(0.9)) return right;
  return random.pick([right.replaceAll("%", "%25"), `${right}%`, `${right}%ff%fe`, `${right}%c0%80`, `+${right}`]);
}

/** Makes an Authorization header: mostly with the shop's key, sometimes with a wrong key or another text. */
function authorization(random: Random, shop: FuzzedShop): { headers: [string, string][]; as?: FuzzedShop } {
  if (random.chance(0.85)) return { headers: [["Authorization", `Bearer ${shop.key}`]], as: shop };
  const wrong = [
    `Bearer  ${shop.key}`,
    `Basic ${shop.key}`,
    `Bearer ${shop.key}0`,
    `Bearer ${shop.key.toUpperCase()}`,
    `Bearer cad_pk_${random.hex(48)}`,
    `Bearer ${shop.key.slice(0, -1)}`,
    headerText(random.pick(ODD_TEXTS)),
    shop.key,
  ];
  return random.chance(0.2) ? { headers: [] } : { headers: [["Authorization", random.pick(wrong)]] };
}

/** Makes a read of a list or of one row, with keys, cursors and ids of this shop and of another shop. */
export function readRequest(random: Random, { shops }: World): FuzzedRequest {
  const shop = random.pick(shops);
  const other = random.pick(shops);
  const { headers, ...sender } = authorization(random, shop);
  if (random.chance(0.1)) headers.push(["If-None-Match", headerText(random.pick(["*", 'W/"x"', '"', ...ODD_TEXTS]))]);
  if (random.chance(0.1))
    headers.push(["Accept-Encoding", random.pick(["gzip", "zstd", "br;q=1, *", "identity;q=0", ";;"])]);
  if (random.chance(0.05)) headers.push(["Prefer", "handling=strict"]);
  const row = `/${encoded(random, valueFor(random, shop.known.ids, other.known.ids))}`;
  const path = `/api/v1/${random.pick(RESOURCES)}${random.chance(0.15) ? row : ""}`;
  const method = random.chance(0.03) ? random.pick(METHODS) : "GET";
  return { kind: "read", method, target: path + queryOf(random, shop, other), headers, ...sender };
}

/** Makes a request with a right, nearly right or odd path, and any method. */
export function pathRequest(random: Random, { shops }: World): FuzzedRequest {
  const shop = random.pick(shops);
  const { headers, ...sender } = authorization(random, shop);
  const path = random.pick(PATHS);
  const changed = mutatedText(random, path).replace(/[^\x21-\x7e]/g, (odd) => encodeURIComponent(odd.toWellFormed()));
  const target = random.chance(0.5) ? `/${changed.replace(/^\//, "")}` : path;
  const method = random.chance(0.3) ? random.pick(METHODS) : "GET";
  const body = method === "GET" || method === "HEAD" ? {} : { body: Buffer.from(random.pick(ODD_TEXTS)) };
  return { kind: "path", method, target: target + queryOf(random, shop, shop), headers, ...body, ...sender };
}

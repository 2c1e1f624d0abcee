import { mutatedText, ODD_TEXTS, type Random } from "./random.ts";
import { type FuzzedRequest, headerText } from "./request.ts";
import type { FuzzedShop, World } from "./world.ts";

const PAGES = `
  /admin /admin/keys /admin/webhooks /admin/webhooks/secret /admin/webhooks/rotate /admin/webhooks/clear
  /admin/webhooks/test /admin/deliveries /admin/deliveries/retry-dead /admin/triggers
  /admin/deliveries/workflows /admin/deliveries/workflows/retry-dead /admin/data /admin/data/browse
  /admin/data/inbox /admin/data/inbox/retry /admin/data/requests /admin/data/requests/7/export /admin/plan /admin/sign-in /assets/page.js
`
  .trim()
  .split(/\s+/);
const FIELDS = ["label", "url", "topics", "all", "triggers", "topic", "once", "csrf", "id", "confirm"];
const PARAMETERS = [
  "token",
  "status",
  "topic",
  "from",
  "to",
  "subject",
  "before",
  "after",
  "rows",
  "resource",
  "find",
  "cursor",
  "contractId",
];
const VALUES = [
  "subscription.created",
  "order.failed",
  "on",
  "https://example.com/hook",
  "http://127.0.0.1/",
  "Warehouse",
];

/** Makes a path. The path never signs out or revokes a real key, because the shops are needed until the end. */
function path(random: Random, { known }: FuzzedShop, other: FuzzedShop): string {
  const list = random.chance(0.3) ? other.known.deliveries : known.deliveries;
  const id = list.length === 0 || random.chance(0.3) ? random.pick(ODD_TEXTS) : random.pick(list);
  const encoded = encodeURIComponent((random.chance(0.2) ? mutatedText(random, id) : id).toWellFormed());
  const row = random.pick([
    `/deliveries/${encoded}`,
    `/deliveries/${encoded}/curl`,
    `/deliveries/${encoded}/retry`,
    `/keys/key_${random.hex(8)}/revoke`,
  ]);
  return random.chance(0.3) ? `/admin${row}` : random.pick(PAGES);
}

/** Makes a query with parameters of the delivery log and of sign-in links. */
function searchOf(random: Random, { known }: FuzzedShop): string {
  const values = [...ODD_TEXTS, ...VALUES, ...known.deliveries, "dead", "2026-01-31", "1", "#1042"];
  const pairs = Array.from({ length: 1 + random.below(3) }, () => {
    const value = random.pick(values);
    return `${random.pick(PARAMETERS)}=${random.chance(0.1) ? "%ff" : encodeURIComponent(value.toWellFormed())}`;
  });
  return `?${pairs.join("&")}`;
}

function form(random: Random, csrf: string): string {
  const pairs = Array.from({ length: 1 + random.below(4) }, () => {
    const value = random.chance(0.5) ? random.pick(ODD_TEXTS) : random.pick(VALUES);
    return `${random.pick(FIELDS.slice(0, -1))}=${encodeURIComponent(value.toWellFormed())}`;
  });
  if (random.chance(0.85)) pairs.unshift(`csrf=${csrf}`);
  return pairs.join("&") + (random.chance(0.05) ? "&%=%zz&&=&%ff" : "");
}

/** Makes a request for a page or form of the settings page, with or without a shop's session. */
export function adminRequest(random: Random, { shops }: World): FuzzedRequest {
  const shop = random.pick(shops);
  const signedIn = random.chance(0.9);
  const cookie = signedIn ? shop.cookie : headerText(mutatedText(random, shop.cookie));
  const headers: [string, string][] = [["Cookie", cookie]];
  if (random.chance(0.1)) headers.push(["X-Part", random.pick(["live", "x"])]);
  if (random.chance(0.1)) headers.push(["X-Forwarded-For", headerText(random.pick(ODD_TEXTS))]);
  if (random.chance(0.05)) headers.push(["Origin", random.pick(["null", "https://evil.example", "http://fuzz"])]);
  const target = path(random, shop, random.pick(shops));
  if (random.chance(0.5)) {
    const query = random.chance(0.5) ? searchOf(random, shop) : "";
    return { kind: "admin", method: "GET", target: target + query, headers, as: shop };
  }
  const types = [
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "application/json",
    "text/plain",
    "",
  ];
  headers.push(["Content-Type", random.chance(0.9) ? (types[0] ?? "") : random.pick(types)]);
  const csrf = random.chance(0.95) ? shop.csrf : random.pick(shops).csrf;
  return { kind: "admin", method: "POST", target, headers, body: Buffer.from(form(random, csrf)), as: shop };
}

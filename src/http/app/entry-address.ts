import { isShopOfPlatform } from "../../shopify/install/id-token.ts";

/** Where the app runs: the app's id on the platform, and our own origin as browsers see it. */
export interface AppPlace {
  clientId: string;
  origin: string;
}

/** Values from the address of a document below /app. Anyone can forge the values, except a valid `idToken`. */
export interface FramedEntry {
  shop: string;
  /** The ID token that the platform's admin appended; null without one. */
  idToken: string | null;
  /** The address of the same page without the ID token. */
  reload: string;
  /** When a new ID token was last requested through the bounce page, in epoch milliseconds; null if never. */
  bouncedAt: number | null;
}

/** What the address of a document below /app asks for. */
export type DocumentEntry =
  | { framed: FramedEntry }
  /** The address names no shop, because the frame was reloaded. */
  | { framed: null }
  /** The page was opened outside of the platform's admin. The value is the app's address in that admin. */
  | { outside: string }
  | { refused: "shop" | "host" };

/** The page that only asks App Bridge for a new ID token. */
const BOUNCE_PATH = "/app/bounce";
/** The parameter with the address that App Bridge loads with a new ID token. */
const RELOAD = "shopify-reload";
const BOUNCED_AT = "bounced_at";
/** Parameters that are left out of `reload`. */
const DROPPED = ["id_token", "hmac", "timestamp", "session", RELOAD, BOUNCED_AT];
/** Parameters that App Bridge reads on every page. */
const KEPT = ["shop", "host", "embedded", "locale"];
const ADMIN = "admin.shopify.com";

/** Reads the address of a document. @param target path and query of the request */
export function readEntry(target: string, { clientId, origin }: AppPlace): DocumentEntry {
  const { pathname, searchParams } = new URL(target, origin);
  const shop = readShop(searchParams);
  if (shop === undefined) return { framed: null };
  if (shop === null) return { refused: "shop" };
  const host = readHost(searchParams, shop);
  if (host === undefined) return { refused: "host" };
  if (searchParams.get("embedded") !== "1") return { outside: `https://${host}/apps/${encodeURIComponent(clientId)}` };
  const bouncedAt = Number(searchParams.get(BOUNCED_AT));
  const idToken = searchParams.get("id_token");
  for (const name of DROPPED) searchParams.delete(name);
  const reload = `${origin}${pathname}?${searchParams}`;
  return { framed: { shop, idToken, reload, bouncedAt: bouncedAt > 0 ? bouncedAt : null } };
}

/** Returns the address of the bounce page. The bounce page then loads the requested page with a new ID token. */
export function bounceAddress({ reload }: FramedEntry, now: number): string {
  const back = new URL(reload);
  const kept = KEPT.flatMap((name) => back.searchParams.getAll(name).map((value): [string, string] => [name, value]));
  back.searchParams.set(BOUNCED_AT, String(now));
  return `${BOUNCE_PATH}?${new URLSearchParams([...kept, [RELOAD, back.href]])}`;
}

/**
 * Checks the address of the bounce page. App Bridge loads the address in RELOAD, so RELOAD must name a page of ours.
 * @returns the shop that may frame the page; undefined if the address is refused
 */
export function readBounce(target: string, { origin }: Pick<AppPlace, "origin">): string | undefined {
  const { searchParams } = new URL(target, origin);
  const shop = readShop(searchParams);
  const [reload, ...others] = searchParams.getAll(RELOAD);
  if (typeof shop !== "string" || readHost(searchParams, shop) === undefined) return undefined;
  if (reload === undefined || others.length > 0) return undefined;
  // Parses the text as browsers do. A comparison of its first characters would accept https://ours@elsewhere.
  const back = URL.parse(reload);
  const isOurs = back !== null && back.origin === origin && back.username === "" && back.password === "";
  if (!isOurs || !/^\/app(\/|$)/.test(back.pathname) || back.pathname === BOUNCE_PATH) return undefined;
  return readShop(back.searchParams) === shop ? shop : undefined;
}

/** Reads the parameter `shop`. @returns undefined if it is missing; null if it is not exactly one domain of a shop */
function readShop(query: URLSearchParams): string | null | undefined {
  const [shop, ...others] = query.getAll("shop");
  if (shop === undefined) return undefined;
  return others.length === 0 && isShopOfPlatform(shop) ? shop : null;
}

/** Reads the parameter `host`. @returns the address of the shop's admin, without protocol; undefined if refused */
function readHost(query: URLSearchParams, shop: string): string | undefined {
  const [host, ...others] = query.getAll("host");
  const [name] = shop.split(".");
  const allowed = [`${ADMIN}/store/${name}`, `${shop}/admin`];
  if (host === undefined) return allowed[0];
  const decoded = Buffer.from(host, "base64").toString();
  return others.length === 0 && allowed.includes(decoded) ? decoded : undefined;
}

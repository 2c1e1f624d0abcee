import { afterTest } from "../support/cleanup.ts";
import type { PlatformShop } from "../support/platform/shop.ts";
import { StandIn, type StandInOptions } from "../support/platform/stand-in.ts";

export const DOMAIN = "alpha.myshopify.com";
export const PATH = "admin/api/2026-07/graphql.json";

interface Answer {
  data: Record<string, unknown> | null;
  errors?: { message: string; extensions?: { code?: string } }[];
  extensions?: {
    cost: {
      requestedQueryCost: number;
      actualQueryCost: number | null;
      throttleStatus: { currentlyAvailable: number };
    };
  };
}

/** Starts a stand-in with one shop and a stopped clock. Also returns functions that send requests. */
export async function started(options: StandInOptions = {}) {
  const clock = { ms: Date.parse("2026-03-01T12:00:00.700Z") };
  const standIn = await StandIn.start({ now: () => clock.ms, ...options });
  afterTest(() => standIn.stop());
  const shop = standIn.addShop(DOMAIN, { subscription: { name: "Pro", status: "ACTIVE" } });
  const token = shop.issueToken();
  const base = standIn.url.replace("{shop}", DOMAIN);
  const headers = { "Content-Type": "application/json", "X-Shopify-Access-Token": token };
  const post = (path: string, body: unknown, withToken = token) =>
    fetch(`${base}/${path}`, {
      method: "POST",
      headers: { ...headers, "X-Shopify-Access-Token": withToken },
      body: JSON.stringify(body),
    });
  const postText = (body: string) => fetch(`${base}/${PATH}`, { method: "POST", headers, body });
  const query = async (text: string, variables: Record<string, unknown> = {}) =>
    (await (await post(PATH, { query: text, variables })).json()) as Answer;
  /** Sends a query. @returns the first field of its data */
  const read = async (text: string, variables: Record<string, unknown> = {}): Promise<unknown> =>
    Object.values((await query(text, variables)).data ?? {})[0];
  const grant = async (body: Record<string, string>): Promise<Record<string, unknown>> => {
    const response = await post("admin/oauth/access_token", { client_id: "client", client_secret: "secret", ...body });
    return { status: response.status, ...((await response.json()) as Record<string, unknown>) };
  };
  return { clock, standIn, shop, post, postText, query, read, grant };
}

export function oneContract(shop: PlatformShop): string {
  const customer = shop.createCustomer({
    email: "ada@example.com",
    firstName: "Ada",
    lastName: "L",
    marketing: "subscribed",
  });
  const variant = "gid://shopify/ProductVariant/1";
  return shop.createContract({ customer, lines: [{ title: "House blend", price: "12.50", quantity: 2, variant }] });
}

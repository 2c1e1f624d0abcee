import { createHmac } from "node:crypto";
import { isoUtc } from "../../lib/time.ts";
import { API_VERSION } from "../../shopify/api/address.ts";
import { type PlatformEvent, PlatformShop } from "./platform-shop.ts";
import type { PlatformRecord } from "./sample-records.ts";

interface PlatformOptions {
  /** The shop's domain. */
  domain: string;
  /** The access token of the shop. */
  token: string;
  /** Signs the webhooks. */
  clientSecret: string;
}

/** A platform for the demo: the part of the Admin API that this program reads, for one shop, and its webhooks. */
export interface DemoPlatform {
  /** The value for SDS_PLATFORM_URL. */
  url: string;
  /** Applies records of the simulation. Sends webhooks only after `webhooksTo` is set. */
  apply(records: readonly PlatformRecord[]): Promise<void>;
  webhooksTo: string | undefined;
  stop(): Promise<void>;
}

/** Listens on a free port of 127.0.0.1. */
export function startPlatform(options: PlatformOptions): DemoPlatform {
  const shop = new PlatformShop();
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    development: false,
    fetch: (request) => answer(request, shop, options),
  });
  const platform: DemoPlatform = {
    url: `http://127.0.0.1:${server.port}/{shop}`,
    webhooksTo: undefined,
    async apply(records) {
      const events = records.flatMap((record) => shop.apply(record, Date.now()) ?? []);
      if (platform.webhooksTo !== undefined)
        for (const event of events) await send(platform.webhooksTo, event, options);
    },
    stop: () => server.stop(true),
  };
  return platform;
}

/**
 * Posts a webhook with the platform's headers. If the webhook is lost, the program finds the change when it reconciles
 * the shop.
 */
async function send(url: string, { topic, payload }: PlatformEvent, { domain, clientSecret }: PlatformOptions) {
  const body = JSON.stringify(payload);
  const headers = {
    "Content-Type": "application/json",
    "X-Shopify-Topic": topic,
    "X-Shopify-Hmac-Sha256": createHmac("sha256", clientSecret).update(body).digest("base64"),
    "X-Shopify-Shop-Domain": domain,
    "X-Shopify-API-Version": API_VERSION,
    "X-Shopify-Webhook-Id": crypto.randomUUID(),
    "X-Shopify-Triggered-At": isoUtc(Date.now()),
  };
  await fetch(url, { method: "POST", headers, body, proxy: false }).catch(() => undefined);
}

const POINTS = { maximumAvailable: 2000, currentlyAvailable: 2000, restoreRate: 100 };
const COST = { requestedQueryCost: 10, actualQueryCost: 10, throttleStatus: POINTS };

async function answer(request: Request, shop: PlatformShop, { domain, token }: PlatformOptions): Promise<Response> {
  if (new URL(request.url).pathname !== `/${domain}/admin/api/${API_VERSION}/graphql.json`)
    return respond({ errors: "Not Found" }, 404);
  if (request.headers.get("X-Shopify-Access-Token") !== token)
    return respond({ errors: "Invalid API key or access token" }, 401);
  const { query, variables } = (await request.json()) as { query: string; variables?: Variables };
  const [, name = ""] = /(?:query|mutation) (\w+)/.exec(query) ?? [];
  const data = ANSWERS[name]?.(shop, variables ?? {}, domain);
  const body = data === undefined ? { errors: [{ message: `the demo's platform has no ${name}` }] } : { data };
  return respond({ ...body, extensions: { cost: COST } });
}

function respond(body: object, status = 200): Response {
  const headers = { Date: new Date().toUTCString(), "X-Shopify-API-Version": API_VERSION };
  return Response.json(body, { status, headers });
}

interface Variables {
  [name: string]: unknown;
  first?: number;
  after?: string | null;
  query?: string | null;
  id?: string;
  ids?: string[];
}

type Answer = (shop: PlatformShop, variables: Variables, domain: string) => object;

interface SortedNode {
  id: string;
  createdAt?: string;
  updatedAt?: string;
}

const SCOPES = ["read_own_subscription_contracts", "read_customers", "read_orders", "read_all_orders"];

/** The data for each query of the program, by its name (`shopify/api/operations`). */
const ANSWERS: Record<string, Answer> = {
  Installation: (_, __, domain) => ({
    currentAppInstallation: { accessScopes: SCOPES.map((handle) => ({ handle })), allSubscriptions: { nodes: [] } },
    shop: { myshopifyDomain: domain, currencyCode: "USD" },
  }),
  ProtectedData: () => ({ customers: { nodes: [] }, orders: { nodes: [] } }),
  FlowTrigger: () => ({ flowTriggerReceive: { userErrors: [] } }),
  AllContracts: (shop, variables) => list("subscriptionContracts", shop.contractNodes(), "createdAt", variables),
  ContractIds: (shop, variables) => list("subscriptionContracts", shop.contractNodes(), "createdAt", variables),
  ChangedContracts: (shop, variables) => list("subscriptionContracts", shop.contractNodes(), "updatedAt", variables),
  OldestContract: (shop) => list("subscriptionContracts", shop.contractNodes(), "createdAt", { first: 1 }),
  NewestContract: (shop) => {
    const nodes = shop.contractNodes().toSorted((a, b) => (a.createdAt < b.createdAt ? 1 : -1));
    return { subscriptionContracts: { nodes: nodes.slice(0, 1) } };
  },
  AllCustomers: (shop, variables) => list("customers", shop.customerNodes(), "id", variables),
  Customers: (shop, variables) => list("customers", shop.customerNodes(), "updatedAt", variables),
  Customer: (shop, { id }) => ({ customer: shop.customerNodes().find((node) => node.id === id) ?? null }),
  CustomersCount: (shop) => ({ customersCount: { count: shop.customerNodes().length } }),
  ChangedOrders: (shop, variables) => list("orders", shop.orderNodes(), "updatedAt", variables),
  OrdersCount: (shop) => ({ ordersCount: { count: shop.orderNodes().length } }),
  Attempts: (shop, variables) => list("subscriptionBillingAttempts", shop.attemptNodes(), "createdAt", variables),
  Nodes(shop, { ids = [] }) {
    const nodes = new Map([...shop.contractNodes(), ...shop.orderNodes()].map((node) => [node.id, node]));
    return { nodes: ids.map((id) => nodes.get(id) ?? null) };
  },
  BillingCycles: (shop, { id = "", ...range }) => ({
    subscriptionBillingCycles: { nodes: shop.cycleNodes(id, Number(range["from"]), Number(range["to"])) },
  }),
  BillingCyclesByDate(shop, { id = "", ...range }) {
    const [from, to] = shop.cycleRange(id, Date.parse(String(range["start"])), Date.parse(String(range["end"])));
    return { subscriptionBillingCycles: { nodes: shop.cycleNodes(id, from, to) } };
  },
  CycleLookup: (shop, variables) =>
    Object.fromEntries(
      Array.from({ length: Object.keys(variables).length / 2 }, (_, n) => {
        const index = Number(variables[`n${n}`]);
        return [`c${n}`, shop.cycleNodes(String(variables[`i${n}`]), index, index)[0] ?? null];
      }),
    ),
};

/** Returns a page of nodes. The cursor is the number of nodes before the next page. */
function list<Node extends SortedNode>(
  field: string,
  nodes: readonly Node[],
  key: keyof SortedNode,
  { first = 250, after, query }: Variables,
): object {
  const sortValue = (node: Node) => (key === "id" ? numberOf(node.id) : Date.parse(node[key] ?? ""));
  const [, from] = /:>='?([^']+)'?$/.exec(query ?? "") ?? [];
  const least = from === undefined ? 0 : key === "id" ? Number(from) : Date.parse(from);
  const sorted = nodes
    .filter((node) => sortValue(node) >= least)
    .toSorted((a, b) => sortValue(a) - sortValue(b) || numberOf(a.id) - numberOf(b.id));
  const end = Number(after ?? 0) + first;
  const pageInfo = { hasNextPage: sorted.length > end, endCursor: String(end) };
  return { [field]: { pageInfo, nodes: sorted.slice(end - first, end) } };
}

function numberOf(gid: string): number {
  return Number(gid.slice(gid.lastIndexOf("/") + 1));
}

import type { Priority } from "./rate-limits.ts";

/** The priorities of readings for platform webhooks. */
export type WebhookPriority = Extract<Priority, "attempt" | "contract" | "order">;

/** The kinds of platform webhooks. The kind decides how a payload is read and processed. */
export type TopicUse = (typeof WEBHOOK_TOPICS)[keyof typeof WEBHOOK_TOPICS];

/** The platform webhooks that the app subscribes to. `sds platform files` writes them for the platform's tool. */
export const WEBHOOK_TOPICS = {
  "subscription_contracts/create": "contract",
  "subscription_contracts/update": "contract",
  "subscription_contracts/activate": "contract",
  "subscription_contracts/pause": "contract",
  "subscription_contracts/cancel": "contract",
  "subscription_contracts/expire": "contract",
  "subscription_contracts/fail": "contract",
  "subscription_billing_attempts/success": "attempt",
  "subscription_billing_attempts/failure": "attempt",
  "subscription_billing_attempts/challenged": "attempt",
  "subscription_billing_cycles/skip": "cycle",
  "subscription_billing_cycles/unskip": "cycle",
  "subscription_billing_cycle_edits/create": "cycle",
  "subscription_billing_cycle_edits/update": "cycle",
  "subscription_billing_cycle_edits/delete": "cycle",
  "customers/create": "customer",
  "customers/update": "customer",
  "customers/enable": "customer",
  "customers/disable": "customer",
  "customers/delete": "customer_gone",
  "customers/merge": "customers_merged",
  "customers_email_marketing_consent/update": "consent",
  "orders/create": "order",
  "orders/paid": "order",
  "orders/updated": "order",
  "orders/cancelled": "order",
  "app/uninstalled": "uninstalled",
  "app/scopes_update": "scopes",
  "app_subscriptions/update": "plan",
  "shop/update": "shop",
} as const;
const USES: ReadonlyMap<string, TopicUse> = new Map(Object.entries(WEBHOOK_TOPICS));

/** The scope that each kind needs. The platform refuses an app file that has a topic without its scope. */
const SCOPES: Partial<Record<TopicUse, string>> = {
  contract: "read_own_subscription_contracts",
  attempt: "read_own_subscription_contracts",
  cycle: "read_own_subscription_contracts",
  customer: "read_customers",
  customer_gone: "read_customers",
  customers_merged: "read_customer_merge",
  consent: "read_customers",
  order: "read_orders",
};

/** Topics that share a subscription, because the platform sends the same fields for them. */
interface TopicSubscription {
  topics: string[];
  /** The payload fields that the platform sends. Without this list, it sends all fields. */
  fields?: readonly string[];
}

/**
 * `payload.ts` reads only the ids of an order. The other fields are large, and hold personal data. `updated_at` makes
 * each webhook of an order different: the platform drops equal webhooks as duplicates.
 */
const ORDER_FIELDS = ["id", "admin_graphql_api_id", "updated_at"] as const;

/** Returns the subscriptions to the topics that an app with these scopes may use. */
export function topicSubscriptions(scopes: readonly string[]): TopicSubscription[] {
  const allowed = Object.entries(WEBHOOK_TOPICS).filter(([, use]) => {
    const scope = SCOPES[use];
    return scope === undefined || scopes.includes(scope);
  });
  const topicsOf = (isOrder: boolean) =>
    allowed.flatMap(([topic, use]) => ((use === "order") === isOrder ? [topic] : []));
  const subscriptions = [{ topics: topicsOf(false) }, { topics: topicsOf(true), fields: ORDER_FIELDS }];
  return subscriptions.filter(({ topics }) => topics.length > 0);
}

const SECOND_MS = 1_000;
/**
 * How long the first platform webhook about a subject waits for further webhooks. The platform sends up to six webhooks
 * for one change, and they need only one reading. Orders wait longer, because most orders are read with their contract.
 * A failed payment, and webhooks that need no reading, are processed at once.
 */
const BURSTS_MS: Partial<Record<TopicUse, number>> = {
  contract: 3 * SECOND_MS,
  attempt: 3 * SECOND_MS,
  cycle: 3 * SECOND_MS,
  order: 30 * SECOND_MS,
};
export const LONGEST_BURST_MS = Math.max(...Object.values(BURSTS_MS));
/** Topics of failed payments. They are urgent, because somebody may wait for the e-mail about the failure. */
const URGENT_TOPICS = ["subscription_billing_attempts/failure", "subscription_billing_attempts/challenged"];

/** Returns the kind of a topic's webhooks; undefined if the topic is not used. */
export function useOf(topic: string): TopicUse | undefined {
  return USES.get(topic);
}

/** Returns how long a webhook waits for further webhooks about its subject. Urgent webhooks go first. */
export function waitOf(topic: string): { waitMs: number; isUrgent: boolean } {
  const isUrgent = URGENT_TOPICS.includes(topic);
  const use = useOf(topic);
  return { waitMs: use === undefined || isUrgent ? 0 : (BURSTS_MS[use] ?? 0), isUrgent };
}

/** Returns the priority of webhooks about one subject: the priority of the most urgent webhook. */
export function priorityOf(topics: readonly string[]): WebhookPriority {
  const uses = topics.map(useOf);
  if (uses.includes("attempt")) return "attempt";
  return uses.every((use) => use === "order") ? "order" : "contract";
}

/** The compliance topics, which every app must accept. The app file lists them separately from the other topics. */
export const COMPLIANCE_TOPICS = ["customers/data_request", "customers/redact", "shop/redact"] as const;

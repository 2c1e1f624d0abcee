/** The kinds of platform webhooks. The kind decides how a payload is read, and what is done for it. */
export type TopicUse =
  | "contract"
  | "attempt"
  | "cycle"
  | "customer"
  | "customer_gone"
  | "customers_merged"
  | "consent"
  | "order"
  | "uninstalled"
  | "scopes"
  | "plan"
  | "shop";

/**
 * The platform webhooks that the app subscribes to. `sds platform files` writes this table into the file for the
 * platform's command-line tool.
 */
export const WEBHOOK_TOPICS: Record<string, TopicUse> = {
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
};

/** The scope that each kind needs. The platform refuses a file with a topic whose scope it does not ask for. */
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

/** The topics that an app with these scopes may subscribe to. */
export function allowedTopics(scopes: readonly string[]): string[] {
  return Object.entries(WEBHOOK_TOPICS).flatMap(([topic, use]) => {
    const scope = SCOPES[use];
    return scope === undefined || scopes.includes(scope) ? [topic] : [];
  });
}

/** The topics that every app must accept. The platform lists them separately. */
export const COMPLIANCE_TOPICS = ["customers/data_request", "customers/redact", "shop/redact"] as const;

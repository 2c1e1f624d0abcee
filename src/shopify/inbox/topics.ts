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
  "app_subscriptions/update": "plan",
  "shop/update": "shop",
};

/** The topics that every app must accept. The platform lists them separately. */
export const COMPLIANCE_TOPICS = ["customers/data_request", "customers/redact", "shop/redact"] as const;

import type { BulkBehaviour } from "./bulk-operations.ts";
import type { Exact } from "./exact-json.ts";
import type { Webhook } from "./webhook.ts";

export interface ShopOptions {
  name?: string;
  currency?: string;
  timezone?: string;
  scopes?: string[];
  /** The subscription of the shop to the app. */
  subscription?: AppSubscriptionInput;
  /** The first id of the shop. By default it is above 2^53. */
  firstId?: bigint;
  /** Whether webhooks about billing attempts have the id of the attempt. The platform sometimes leaves it out. */
  attemptIds?: boolean;
  /** How bulk operations run. */
  bulk?: Partial<BulkBehaviour>;
}

export type FieldFaultCode = "INTERNAL_SERVER_ERROR" | "ACCESS_DENIED";

export interface ShopDependencies {
  now: () => number;
  tokenLife: number | undefined;
  firstId: bigint;
  shopNumber: number;
  /**
   * The payload with only the fields that the app's webhook subscriptions name; undefined if the platform does not send
   * the webhook.
   */
  payloadFor: (topic: string, payload: Exact) => Exact | undefined;
  onWebhook: (webhook: Webhook) => void;
}

export interface AppSubscriptionInput {
  name: string;
  status: string;
  /** Made from the name by default. null for a subscription with manual pricing. */
  planHandle?: string | null;
}

export interface AppSubscription {
  readonly n: number;
  name: string;
  status: string;
  planHandle: string | null;
  readonly createdAt: number;
}

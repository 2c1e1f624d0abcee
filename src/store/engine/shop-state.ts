import type { ShopState } from "../../domain/decide/commit.ts";
import type { Topic } from "../../domain/events/event.ts";
import type { TriggerHandle } from "../../domain/events/trigger.ts";
import type { Plan } from "../../domain/shop.ts";

/** What a commit needs to know of a shop, as it is stored. */
export interface StoredState {
  plan: Plan;
  url: string | null;
  /** JSON array; null without an endpoint. */
  topics: string | null;
  /** JSON array. */
  triggers: string;
  secretVersion: number | null;
  /** SQLite returns 0 or 1 for booleans. */
  isConnected: number | boolean;
  changeCount: number;
  spanNumber: number;
  previousSpanCount: number;
  customers: number;
  subscriptions: number;
  orders: number;
}

export function stateOf(stored: StoredState): ShopState {
  const { plan, url, topics, triggers, secretVersion, isConnected, changeCount, spanNumber, previousSpanCount } =
    stored;
  const { customers, subscriptions, orders } = stored;
  return {
    plan,
    url,
    topics: topics === null ? [] : (JSON.parse(topics) as Topic[]),
    secretVersion,
    triggers: JSON.parse(triggers) as TriggerHandle[],
    isConnected: Boolean(isConnected),
    changeCount,
    spanNumber,
    previousSpanCount,
    counts: { customers, subscriptions, orders },
  };
}

import { createShopIds, redactedId, type ShopIds } from "../ids.ts";
import type { MirrorRecord } from "../records/platform-records.ts";
import type { OccurrenceType } from "../rows.ts";
import type { MirroredShop } from "../shop.ts";

/** Internal ids of the rows of one shop that a commit loads before it decides. */
export interface CommitKeys {
  shop: MirroredShop;
  ids: ShopIds;
  customers: Set<string>;
  subscriptions: Set<string>;
  orders: Set<string>;
  /** For each type of occurrence, the ids that the senders gave. */
  occurrences: Record<OccurrenceType, Set<string>>;
  /** Subscriptions whose custom fields are loaded. */
  customFields: Set<string>;
  /**
   * Gids of people to redact. The commit also loads the stored texts that mention these people. Engines add the keys of
   * these people's subscriptions, custom fields and orders.
   */
  redactedPeople: Set<string>;
}

/** Whether a commit needs the shop's definitions of custom fields. */
export function needsFields({ customFields, redactedPeople }: CommitKeys): boolean {
  return customFields.size > 0 || redactedPeople.size > 0;
}

/**
 * Returns the keys of all records, one entry for each shop. Records do not name the customer of a stored contract. So
 * engines load the customers of loaded contracts in a second step.
 */
export function keysOf(submissions: readonly { shop: MirroredShop; records: readonly MirrorRecord[] }[]): CommitKeys[] {
  const byShop = new Map<number, CommitKeys>();
  for (const { shop, records } of submissions) {
    const keys = byShop.get(shop.id) ?? noKeys(shop);
    byShop.set(shop.id, keys);
    for (const record of records) addKeys(keys, record);
  }
  // A commit can move a contract to a customer whom it then redacts. So the custom fields of all contracts in the
  // commit are loaded.
  for (const { redactedPeople, subscriptions, customFields } of byShop.values())
    if (redactedPeople.size > 0) for (const id of subscriptions) customFields.add(id);
  return [...byShop.values()];
}

function noKeys(shop: MirroredShop): CommitKeys {
  return {
    shop,
    ids: createShopIds(shop.firstDomain),
    customers: new Set(),
    subscriptions: new Set(),
    orders: new Set(),
    occurrences: { reward: new Set(), cancel_flow: new Set() },
    customFields: new Set(),
    redactedPeople: new Set(),
  };
}

function addKeys(keys: CommitKeys, record: MirrorRecord): void {
  const { ids } = keys;
  switch (record.type) {
    case "customer":
      keys.customers.add(ids.customer(record.shopifyId));
      return;
    case "subscription":
      keys.subscriptions.add(ids.subscription(record.shopifyId));
      keys.customers.add(ids.customer(record.customer));
      return;
    case "order":
    case "billing_cycle":
      keys.subscriptions.add(ids.subscription(record.subscription));
      keys.orders.add(ids.order(record.subscription, record.source, record.cycleNumber));
      return;
    case "reward":
      keys.occurrences.reward.add(record.id);
      keys.occurrences.reward.add(redactedId(record.id));
      keys.customers.add(ids.customer(record.customer));
      return;
    case "cancel_flow":
      keys.occurrences.cancel_flow.add(record.id);
      keys.subscriptions.add(ids.subscription(record.subscription));
      return;
    case "custom_field":
      keys.subscriptions.add(ids.subscription(record.subscription));
      keys.customFields.add(ids.subscription(record.subscription));
      return;
    case "redaction":
      keys.customers.add(ids.customer(record.shopifyId));
      keys.redactedPeople.add(record.shopifyId);
  }
}

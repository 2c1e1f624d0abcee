import type { AuditEntry } from "../../domain/audit.ts";
import type { Vault } from "../files/vault.ts";
import type { AuditedStores } from "../port/store.ts";
import { alertStore } from "./alerts.ts";
import { auditStore, withEntry } from "./audit.ts";
import { connectionStore } from "./connections.ts";
import { dataRequestStore } from "./data-requests.ts";
import { deliveryLog } from "./delivery-log.ts";
import { fieldStore } from "./fields.ts";
import { inboxItems } from "./inbox-items.ts";
import { keyStore } from "./keys.ts";
import { orderStageStore } from "./order-stages.ts";
import { personStore } from "./people.ts";
import type { QuietDatabase } from "./quiet-database.ts";
import { rowHistoryStore } from "./row-history.ts";
import { sessionStore } from "./sessions.ts";
import { settingsPageStore } from "./settings-page.ts";
import { shopMoves } from "./shop-moves.ts";
import { shopRemoval } from "./shop-removal.ts";
import { shopStore } from "./shops.ts";
import { styleStore } from "./styles.ts";
import { syncStore } from "./syncs.ts";
import { totalsStore } from "./totals.ts";
import { webhookStore } from "./webhooks.ts";

export interface QuietResources {
  db: QuietDatabase;
  /** The same database with a longer timeout, for reads of all rows of a shop. */
  slow: QuietDatabase;
  vault: Vault;
  random: (bytes: number) => Uint8Array;
}

/** Makes the stores whose code serves both engines. */
export function quietStores({ db, slow, vault, random }: QuietResources) {
  return {
    shops: { ...shopStore(db, vault, random), ...shopRemoval(db) },
    deliveryLog: deliveryLog(db, random),
    inboxItems: inboxItems(db),
    keys: keyStore(db),
    webhooks: webhookStore(db, vault, random),
    connections: connectionStore(db, vault, random),
    syncs: syncStore(db),
    orderStages: orderStageStore(db),
    people: personStore(slow),
    history: rowHistoryStore(slow),
    dataRequests: dataRequestStore(db),
    sessions: sessionStore(db),
    fields: fieldStore(db),
    styles: styleStore(db),
    alerts: alertStore(db, vault, random),
    settingsPage: settingsPageStore(db, vault),
    moves: shopMoves(db, vault),
    audit: auditStore(db),
    totals: totalsStore(db),
  };
}

/** Makes the stores whose changes write an entry of the audit list. */
export function auditedStores(resources: QuietResources, shopId: number, entry: AuditEntry): AuditedStores {
  const { deliveryLog, inboxItems, ...stores } = quietStores({
    ...resources,
    db: withEntry(resources.db, shopId, entry),
  });
  return { ...stores, deliveries: deliveryLog, inbox: inboxItems };
}

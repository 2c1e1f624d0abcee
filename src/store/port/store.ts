import type { ConnectionStore } from "./connections.ts";
import type { DataRequestStore } from "./data-requests.ts";
import type { DeliveryStore } from "./deliveries.ts";
import type { InboxStore } from "./inbox.ts";
import type { KeyStore } from "./keys.ts";
import type { MirrorStore } from "./mirror.ts";
import type { NodeStore } from "./nodes.ts";
import type { OrderStageStore } from "./order-stages.ts";
import type { PageStore } from "./pages.ts";
import type { PersonStore } from "./people.ts";
import type { SessionStore } from "./sessions.ts";
import type { SettingsPageStore } from "./settings-page.ts";
import type { ShopStore } from "./shops.ts";
import type { SyncStore } from "./syncs.ts";
import type { WebhookStore } from "./webhooks.ts";

/** The length of an epoch. */
export const EPOCH_BYTES = 32;

/**
 * The port to the database: what the program asks of it, as whole operations. Nearly all of it is asynchronous, though
 * SQLite is not, and it never hands out a transaction, so that another engine can stand behind it. Every method can
 * throw StoreError, and SdsError where it says so.
 */
export interface Store {
  shops: ShopStore;
  keys: KeyStore;
  mirror: MirrorStore;
  webhooks: WebhookStore;
  deliveries: DeliveryStore;
  pages: PageStore;
  connections: ConnectionStore;
  inbox: InboxStore;
  syncs: SyncStore;
  orderStages: OrderStageStore;
  people: PersonStore;
  dataRequests: DataRequestStore;
  sessions: SessionStore;
  settingsPage: SettingsPageStore;
  /** The nodes that share the database; null for an engine that belongs to one machine. */
  nodes: NodeStore | null;
  /**
   * Random bytes that checkpoints are authenticated with. They stay while the numbers of changes only grow, and a
   * restore replaces them.
   */
  epoch: Uint8Array;
  /** Rejects if the database cannot be read and written. */
  check(): Promise<void>;
  /** Keeps the write-ahead log short, where the engine has one of its own. */
  checkpoint(): Promise<void>;
  close(): Promise<void>;
}

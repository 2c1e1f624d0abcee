import type { AuditEntry } from "../../domain/audit.ts";
import type { AlertStore } from "./alerts.ts";
import type { AuditStore } from "./audit.ts";
import type { ConnectionStore } from "./connections.ts";
import type { DataRequestStore } from "./data-requests.ts";
import type { DeliveryStore } from "./deliveries.ts";
import type { FieldStore } from "./fields.ts";
import type { InboxStore } from "./inbox.ts";
import type { KeyStore } from "./keys.ts";
import type { MirrorStore } from "./mirror.ts";
import type { NodeStore } from "./nodes.ts";
import type { OrderStageStore } from "./order-stages.ts";
import type { ChangeState, PageStore } from "./pages.ts";
import type { PersonStore } from "./people.ts";
import type { RowHistoryStore } from "./row-history.ts";
import type { SessionStore } from "./sessions.ts";
import type { SettingsPageStore } from "./settings-page.ts";
import type { ShopMoves } from "./shop-moves.ts";
import type { ShopStore } from "./shops.ts";
import type { StyleStore } from "./styles.ts";
import type { SyncStore } from "./syncs.ts";
import type { TotalsStore } from "./totals.ts";
import type { WebhookStore } from "./webhooks.ts";

export const EPOCH_BYTES = 32;
/** Row of `meta` with the former epochs: hexadecimal, separated by commas, newest first. */
export const FORMER_EPOCHS = "former_epochs";
const MAX_FORMER_EPOCHS = 20;

/**
 * Returns the value of FORMER_EPOCHS.
 * @param lists hexadecimal epochs, newest first. Each item has one epoch, or several epochs separated by commas
 */
export function formerEpochsText(...lists: readonly (string | undefined | null)[]): string {
  const epochs = lists.flatMap((list) => list?.split(",") ?? []).filter((epoch) => epoch !== "");
  return [...new Set(epochs)].slice(0, MAX_FORMER_EPOCHS).join(",");
}

export function readFormerEpochs(text: string | undefined | null): Uint8Array[] {
  return formerEpochsText(text)
    .split(",")
    .filter(Boolean)
    .map((epoch) => Uint8Array.fromHex(epoch));
}

/** Row of `meta` with the time of the last complete `sds backup`, in epoch milliseconds. */
export const LAST_BACKUP = "last_backup";

/** A schema upgrade that ran when the database was opened. */
export interface SchemaUpgrade {
  from: number;
  to: number;
  /** The file with a copy of the older database; undefined without a copy. */
  copy?: string | undefined;
}

/** Figures of the whole database. */
export interface DatabaseFigures {
  bytes: number;
  /** Bytes of SQLite's write-ahead log; null for PostgreSQL. */
  walBytes: number | null;
  /** When the last complete `sds backup` began, epoch milliseconds; null for PostgreSQL, which has its own tools. */
  lastBackupAt: number | null;
}

/** The stores for changes that people make. These changes get entries in the audit list. */
export type AuditedStores = Pick<
  Store,
  "alerts" | "connections" | "dataRequests" | "fields" | "keys" | "sessions" | "shops" | "styles" | "webhooks"
> & {
  deliveries: Pick<DeliveryStore, "retry" | "queueTest">;
  inbox: Pick<InboxStore, "retry">;
};

/**
 * The port to the database. Each method is a whole operation, and asynchronous. The port never hands out a transaction,
 * so that both engines can implement it. Every method may throw StoreError, and SdsError where documented.
 */
export interface Store {
  shops: ShopStore;
  keys: KeyStore;
  mirror: MirrorStore;
  webhooks: WebhookStore;
  deliveries: DeliveryStore;
  pages: PageStore;
  /**
   * Returns the pages for one request. A standby can serve these pages.
   * @param state the state of the shop at the time of the request. No page shows an earlier state
   */
  pagesFor(state: ChangeState): PageStore;
  connections: ConnectionStore;
  inbox: InboxStore;
  syncs: SyncStore;
  orderStages: OrderStageStore;
  people: PersonStore;
  history: RowHistoryStore;
  dataRequests: DataRequestStore;
  sessions: SessionStore;
  fields: FieldStore;
  styles: StyleStore;
  alerts: AlertStore;
  settingsPage: SettingsPageStore;
  /** Moves of shops to other databases. */
  moves: ShopMoves;
  audit: AuditStore;
  totals: TotalsStore;
  /**
   * Returns the stores for one change. The transaction of the change also adds `entry` to the shop's audit list. If the
   * change throws or changes nothing, no entry is added.
   */
  audited(shopId: number, entry: AuditEntry): AuditedStores;
  /** Nodes that share the database; null for an engine that runs on one machine. */
  nodes: NodeStore | null;
  /** Random bytes that authenticate checkpoints. A restore replaces them, because it sets change numbers back. */
  epoch: Uint8Array;
  /** The epochs of the database before its restores, newest first. They show whether a checkpoint is old or forged. */
  formerEpochs: readonly Uint8Array[];
  figures(): Promise<DatabaseFigures>;
  /** Rejects if the database cannot be read or written. */
  check(): Promise<void>;
  /** Truncates SQLite's write-ahead log. Does nothing for PostgreSQL. */
  checkpoint(): Promise<void>;
  close(): Promise<void>;
}

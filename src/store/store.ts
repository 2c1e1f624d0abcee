import { mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { drizzle } from "drizzle-orm/bun-sqlite";
import { messageOf, SdsError } from "../domain/error.ts";
import { type ConnectionStore, connectionStore } from "./sqlite/connections.ts";
import { type CountStore, countStore } from "./sqlite/counts.ts";
import { type BusyTimeout, checkpoint, openDatabase } from "./sqlite/database.ts";
import { type DeliveryStore, deliveryStore } from "./sqlite/deliveries.ts";
import { type InboxStore, inboxStore } from "./sqlite/inbox.ts";
import { type KeyStore, keyStore } from "./sqlite/keys.ts";
import { type MirrorStore, mirrorStore } from "./sqlite/mirror.ts";
import { type PageStore, pageStore } from "./sqlite/pages.ts";
import { type PersonStore, personStore } from "./sqlite/person.ts";
import { type SessionStore, sessionStore } from "./sqlite/sessions.ts";
import { type ShopStore, shopStore } from "./sqlite/shops.ts";
import { type SyncStore, syncStore } from "./sqlite/syncs.ts";
import { type WebhookStore, webhookStore } from "./sqlite/webhooks.ts";
import { openVault } from "./vault.ts";

export interface StoreOptions {
  /** Folder of the database; made if it is missing. */
  folder: string;
  masterKeyFile: string;
  busyTimeout: BusyTimeout;
  random: (bytes: number) => Uint8Array;
}

/**
 * Everything that is kept, as whole operations: asynchronous at this edge, though SQLite is not, and never a transaction
 * handed out, so that another engine can stand behind the same functions.
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
  people: PersonStore;
  sessions: SessionStore;
  counts: CountStore;
  /** Rejects if the database cannot be read and written. */
  check(): Promise<void>;
  /** Keeps the write-ahead log short. */
  checkpoint(): Promise<void>;
  close(): Promise<void>;
}

/** @throws SdsError `failed` with what is wrong with the folder, the database or the master key */
export async function openStore({ folder, masterKeyFile, busyTimeout, random }: StoreOptions): Promise<Store> {
  makeFolder(folder);
  const db = openDatabase(join(folder, "sds.db"), busyTimeout);
  try {
    const sealedWith = db.query<{ value: string }, []>("SELECT value FROM facts WHERE name = 'master_key'").get()?.value;
    const vault = await openVault(masterKeyFile, sealedWith, random);
    if (sealedWith === undefined) db.query("INSERT OR IGNORE INTO facts (name, value) VALUES ('master_key', ?)").run(vault.fingerprint);
    const typed = drizzle(db);
    return {
      shops: shopStore(db, typed, vault, random),
      keys: keyStore(db, typed),
      mirror: mirrorStore(db, random),
      webhooks: webhookStore(typed, vault, random),
      deliveries: deliveryStore(db, random),
      pages: pageStore(db),
      connections: connectionStore(typed, vault),
      inbox: inboxStore(db),
      syncs: syncStore(typed),
      people: personStore(db),
      sessions: sessionStore(typed),
      counts: countStore(db),
      async check() {
        db.transaction(() => db.run("UPDATE facts SET value = value WHERE name = 'master_key'")).immediate();
      },
      async checkpoint() {
        checkpoint(db, busyTimeout);
      },
      async close() {
        db.close();
      },
    };
  } catch (thrown) {
    db.close();
    throw thrown;
  }
}

function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    if (!statSync(folder).isDirectory()) throw new Error("it is not a folder");
  } catch (thrown) {
    throw new SdsError("failed", `cannot use the data folder ${folder}: ${messageOf(thrown)}`, { cause: thrown });
  }
}

import { join } from "node:path";
import { drizzle } from "drizzle-orm/bun-sqlite";
import type { Store } from "../store.ts";
import { openVault } from "../vault.ts";
import { connectionStore } from "./connections.ts";
import { type BusyTimeoutMs, checkpoint, openDatabase } from "./database.ts";
import { deliveryStore } from "./deliveries.ts";
import { withStoreErrors } from "./errors.ts";
import { inboxStore } from "./inbox.ts";
import { intakeBodyStore } from "./intake-bodies.ts";
import { keyStore } from "./keys.ts";
import { mirrorStore } from "./mirror.ts";
import { pageStore } from "./pages.ts";
import { personStore } from "./people.ts";
import { sessionStore } from "./sessions.ts";
import { shopStore } from "./shops.ts";
import { syncStore } from "./syncs.ts";
import { webhookStore } from "./webhooks.ts";

export interface SqliteOptions {
  /** Folder of the database file sds.db. */
  folder: string;
  masterKeyFile: string;
  busyTimeoutMs: BusyTimeoutMs;
  random: (bytes: number) => Uint8Array;
}

/**
 * The default engine: one SQLite file.
 * @throws SdsError `failed` with what is wrong with the database or the master key
 */
export async function openSqliteStore({ folder, masterKeyFile, busyTimeoutMs, random }: SqliteOptions): Promise<Store> {
  const db = openDatabase(join(folder, "sds.db"), busyTimeoutMs);
  try {
    const sealedWith = db.query<{ value: string }, []>("SELECT value FROM meta WHERE name = 'master_key'").get()?.value;
    const vault = await openVault(masterKeyFile, sealedWith, random);
    if (sealedWith === undefined)
      db.query("INSERT OR IGNORE INTO meta (name, value) VALUES ('master_key', ?)").run(vault.fingerprint);
    const typed = drizzle(db);
    return {
      shops: withStoreErrors(shopStore(db, typed, vault, random)),
      keys: withStoreErrors(keyStore(db, typed)),
      mirror: withStoreErrors(mirrorStore(db, random)),
      intakeBodies: withStoreErrors(intakeBodyStore(db)),
      webhooks: withStoreErrors(webhookStore(typed, vault, random)),
      deliveries: withStoreErrors(deliveryStore(db, random)),
      pages: withStoreErrors(pageStore(db)),
      connections: withStoreErrors(connectionStore(typed, vault)),
      inbox: withStoreErrors(inboxStore(db)),
      syncs: withStoreErrors(syncStore(typed)),
      people: withStoreErrors(personStore(db)),
      sessions: withStoreErrors(sessionStore(typed)),
      ...withStoreErrors({
        async check() {
          db.transaction(() => db.run("UPDATE meta SET value = value WHERE name = 'master_key'")).immediate();
        },
        async checkpoint() {
          checkpoint(db, busyTimeoutMs);
        },
      }),
      async close() {
        db.close();
      },
    };
  } catch (thrown) {
    db.close();
    throw thrown;
  }
}

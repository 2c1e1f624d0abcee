import { join } from "node:path";
import type { Store } from "../../src/store/port/store.ts";
import { parseServerAddress } from "../../src/store/postgres/address.ts";
import { openPostgresStore, type PostgresOptions } from "../../src/store/postgres/postgres-store.ts";
import { randomBytes, temporaryFolder } from "./app.ts";
import { afterTest } from "./cleanup.ts";

/** Opens the store of a database, with a master key of its own. It is closed after the test. */
export async function openStoreAt(url: string, options: Partial<PostgresOptions> = {}): Promise<Store> {
  const store = await openPostgresStore({
    address: parseServerAddress(url, null),
    masterKeyFile: join(temporaryFolder(), "master.key"),
    random: randomBytes,
    now: Date.now,
    sleep: Bun.sleep,
    ...options,
  });
  afterTest(() => store.close());
  return store;
}

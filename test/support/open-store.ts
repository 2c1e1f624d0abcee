import { join } from "node:path";
import { openStore } from "../../src/store/open-store.ts";
import type { Store } from "../../src/store/port/store.ts";
import { randomBytes } from "./app.ts";

/** The clock and the random bytes for deliveries that an upgrade queues. */
export const UPGRADE = { now: Date.now, random: randomBytes };

/** Opens the store of a data folder, whose master key is beside the database. The caller closes the store. */
export function openStoreIn(folder: string, random = randomBytes): Promise<Store> {
  return openStore({ folder, masterKeyFile: join(folder, "master.key"), busyTimeoutMs: 2_000, now: Date.now, random });
}

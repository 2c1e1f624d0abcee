import { Database } from "bun:sqlite";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { TOPIC_NAMES } from "../../src/domain/events/event.ts";
import type { SubscriptionRecord } from "../../src/domain/records/record-schemas.ts";
import { openStore } from "../../src/store/open-store.ts";
import type { Store } from "../../src/store/port/store.ts";
import { UPGRADE } from "../../test/support/open-store.ts";
import { subscriptionRecords } from "./records.ts";
import { type Server, serveCommand, startPinnedServer } from "./servers.ts";
import { type SignedPost, signedPosts } from "./signed-posts.ts";

/** Git ignores this folder. */
export const FOLDER = "dist/bench/deliver";
/** The executable that `deliver.ts` builds and measures. */
export const SDS = join(FOLDER, "sds");
const RECORDS_PER_COMMIT = 1_000;

/** Shops of one data folder whose webhooks go to the same endpoint. `events` are queued for each shop. */
export interface ShopGroup {
  name: string;
  count: number;
  endpoint: string;
  events: number;
}

/** One line of `sentFile`: a delivery for the programs that are compared with sds. */
export interface Sent {
  topic: string;
  body: string;
  secret: string;
}

/** Makes a data folder as `sds shop add`, `sds webhook set` and `sds import --events` would. @returns its path */
export async function makeFolder(name: string, groups: ShopGroup[]): Promise<string> {
  const folder = join(FOLDER, name);
  rmSync(folder, { recursive: true, force: true });
  await withStore(folder, async (store) => {
    for (const group of groups) {
      for (let index = 0; index < group.count; index += 1)
        await addShop(store, `${group.name}${index}.myshopify.com`, group);
    }
  });
  return folder;
}

async function addShop(
  { shops, webhooks, mirror }: Store,
  domain: string,
  { endpoint, events }: ShopGroup,
): Promise<void> {
  const shop = await shops.add({ domain, plan: "pro", currency: "USD" }, Date.now());
  await webhooks.set(shop.id, { url: endpoint, topics: TOPIC_NAMES }, Date.now());
  let records: SubscriptionRecord[] = [];
  for (const record of subscriptionRecords(events, "random")) {
    records.push(record);
    if (records.length < RECORDS_PER_COMMIT) continue;
    await mirror.applyRecords([{ shop, records }], Date.now(), []);
    records = [];
  }
  await mirror.applyRecords([{ shop, records }], Date.now(), []);
}

/** Adds shops without rows. @returns their domains and the secrets of their intakes */
export function addEmptyShops(
  folder: string,
  count: number,
  endpoint: string,
): Promise<{ domain: string; secret: string }[]> {
  return withStore(folder, async (store) => {
    const added: { domain: string; secret: string }[] = [];
    for (let index = 0; index < count; index += 1) {
      const domain = `empty${index}.myshopify.com`;
      await addShop(store, domain, { name: "empty", count, endpoint, events: 0 });
      added.push({ domain, secret: (await store.shops.intakeSecret(domain))?.secret ?? "" });
    }
    return added;
  });
}

/** Runs a function on a folder's store, and closes the store, so that the whole database is in one file. */
async function withStore<T>(folder: string, run: (store: Store) => Promise<T>): Promise<T> {
  const store = await openStore({
    folder,
    masterKeyFile: join(folder, "master.key"),
    busyTimeoutMs: 30_000,
    ...UPGRADE,
  });
  try {
    return await run(store);
  } finally {
    await store.close();
  }
}

/** Runs `serve` of the measured executable on the first core. */
export function startSds(folder: string): Promise<Server> {
  return startPinnedServer(serveCommand(SDS, folder));
}

export function databaseOf(folder: string): string {
  return join(folder, "sds.db");
}

/**
 * Writes the queued deliveries as NDJSON, one of each shop in turn, as the sender takes them.
 * @returns the file's path
 */
export async function sentFile(folder: string): Promise<string> {
  const file = join(FOLDER, "deliveries.ndjson");
  await withStore(folder, async ({ webhooks }) => {
    const db = new Database(databaseOf(folder), { readonly: true });
    const queued = db.query<Omit<Sent, "secret"> & { shopId: number }, []>(
      "SELECT topic, body, shop_id AS shopId FROM deliveries ORDER BY row_number() OVER (PARTITION BY shop_id ORDER BY number), shop_id",
    );
    const deliveries: Sent[] = [];
    for (const { topic, body, shopId } of queued.all())
      deliveries.push({ topic, body, secret: await webhooks.secret(shopId, Date.now()) });
    db.close();
    await Bun.write(file, `${deliveries.map((sent) => JSON.stringify(sent)).join("\n")}\n`);
  });
  return file;
}

/** Whether a query on a folder's database finds a row. */
export function hasRow(folder: string, query: string): boolean {
  using db = new Database(databaseOf(folder), { readonly: true });
  return db.query(query).get() !== null;
}

/** The secret that `sds intake secret` prints. */
function intakeSecretOf(folder: string, domain: string): Promise<string> {
  return withStore(folder, async ({ shops }) => (await shops.intakeSecret(domain))?.secret ?? "");
}

/** Signs posts with one event each, for the intake of a shop. */
export async function postsTo(folder: string, domain: string, count: number): Promise<SignedPost[]> {
  return signedPosts(domain, await intakeSecretOf(folder, domain), count);
}

mkdirSync(FOLDER, { recursive: true });

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { signedWith } from "./platform/webhook.ts";
import { cancelFlow, customer, gid, order, reward, subscription } from "./records.ts";
import { readRows } from "./rows.ts";
import { type Row, SHOP_TABLES, type Table } from "./tables.ts";

const SECRET = "the-app-client-secret";

/**
 * Writes the platform's secret into a folder.
 * @returns environment variables with which the program accepts signed platform webhooks, and delivers to this machine
 */
export function platformSecretEnv(folder: string): Record<string, string> {
  const file = join(folder, "secret");
  writeFileSync(file, SECRET, { mode: 0o600 });
  return { SDS_PLATFORM_SECRET_FILE: file, SDS_EGRESS_ALLOW: "127.0.0.0/8" };
}

/** Runs a command that has to succeed. */
type Run = (args: string[], stdin?: string) => Promise<unknown>;

/** Adds a shop with many rows. Every row names a person, and every event has a queued webhook. */
export async function addBigShop(run: Run, domain: string, person: string, rows: number): Promise<void> {
  await run(["shop", "add", domain]);
  await run(["key", "create", "--label", person, "--shop", domain]);
  // Nothing listens there: the deliveries stay in the queue.
  await run(["webhook", "set", "--url", "https://127.0.0.1/", "--all-topics", "--shop", domain]);
  const records = Array.from({ length: rows }, (_, index) => {
    const n = index + 1;
    const fields = { email: `${person}-${n}@example.com`, firstName: person };
    return [
      customer(n, fields),
      subscription(n, { customer: gid.customer(n) }),
      order(n, 1, { subscription: gid.contract(n) }),
      reward(`${person}-${n}`, { source: "loyalty", customer: gid.customer(n), given_name: person }),
      cancelFlow(`${person}-${n}`, { subscription: gid.contract(n) }),
    ];
  }).flat();
  const lines = records.map((record) => JSON.stringify(record)).join("\n");
  await run(["import", "-", "--events", "--shop", domain], lines);
}

/** Posts a signed platform webhook. One of its headers names the shop. */
export function postPlatformWebhook(
  url: string,
  { shop, topic, id, payload }: { shop: string; topic: string; id: string; payload: object },
): Promise<Response> {
  const triggeredAt = new Date().toISOString();
  const webhook = { shop, topic, id, eventId: id, triggeredAt, body: JSON.stringify(payload) };
  return fetch(`${url}/platform/webhooks`, { method: "POST", ...signedWith(SECRET, webhook) });
}

/** Asks for the removal of a shop, as the platform does. */
export function postRemoval(url: string, shop: string, id: string): Promise<Response> {
  return postPlatformWebhook(url, { shop, topic: "shop/redact", id, payload: { shop_id: 7, shop_domain: shop } });
}

/** A source of table rows: a program or a data folder. */
interface Readable {
  rows(table: Table): Row[] | Promise<Row[]>;
}

/** Reads the database of a data folder directly, without the program. */
export function inFolder(data: string): Readable {
  return { rows: (table) => readRows(data, table) };
}

/** Counts a shop's rows in each table. Attempts are left out, because the program may add some at any time. */
export async function rowsOfShop(database: Readable, shopId: number): Promise<Partial<Record<Table, number>>> {
  const counts: [Table, number][] = [];
  for (const table of SHOP_TABLES.filter((each) => each !== "attempts")) {
    const rows = await database.rows(table);
    counts.push([table, rows.filter((row) => row["shop_id"] === shopId).length]);
  }
  return Object.fromEntries(counts.filter(([, count]) => count > 0));
}

/** The row of the table `shops` with this domain. */
export async function shopRow(database: Readable, domain: string): Promise<Row | undefined> {
  return (await database.rows("shops")).find((row) => row["domain"] === domain);
}

/**
 * Whether a text is anywhere in the database's file. The program must have stopped, so that the write-ahead log is
 * empty.
 */
export function fileHas(data: string, text: string): boolean {
  return readFileSync(join(data, "sds.db")).includes(text);
}

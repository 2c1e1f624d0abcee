import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "./app.ts";
import { Program, type Server } from "./program.ts";
import { customer, order, subscription } from "./records.ts";

type Row = Record<string, unknown> & { id: string };

/** A served shop, as users of its API see it. */
export interface ApiShop {
  program: Program;
  server: Server;
  key: string;
  /** A file that holds the key. */
  keyFile: string;
  load(records: unknown[]): Promise<void>;
  /** All rows of a resource, by their ids, read page by page. */
  mirror(resource: string): Promise<Record<string, Row>>;
}

/** A shop with customers who each have a subscription and an order. @param more further records of the shop */
export async function apiShop(customers = 3, more: readonly unknown[] = []): Promise<ApiShop> {
  const program = new Program(undefined, { SDS_EGRESS_ALLOW: "127.0.0.0/8" });
  await program.json(["shop", "add", "alpha.myshopify.com"]);
  const { key } = await program.json<{ key: string }>(["key", "create", "--label", "Warehouse"]);
  const keyFile = join(temporaryFolder(), "key.txt");
  writeFileSync(keyFile, `${key}\n`, { mode: 0o600 });

  const load = (records: unknown[]) => loadRecords(program, records);
  const numbers = Array.from({ length: customers }, (_, index) => index + 1);
  await load([
    ...numbers.map((n) => customer(n)),
    ...numbers.map((n) => subscription(n)),
    ...numbers.map((n) => order(n, 1)),
    ...more,
  ]);
  const server = await program.serve();

  const mirror = async (resource: string) => byId(await readRows(server.url, key, resource));
  return { program, server, key, keyFile, load, mirror };
}

/** Puts records into the mirror. */
export async function loadRecords(program: Program, records: readonly unknown[]): Promise<void> {
  await program.json(["import", "-"], { stdin: records.map((record) => JSON.stringify(record)).join("\n") });
}

/** All rows of a resource, newest first, read page by page. */
export async function readRows(url: string, key: string, resource: string): Promise<Row[]> {
  const rows: Row[] = [];
  for (let query = "limit=250"; query !== ""; ) {
    const headers = { Authorization: `Bearer ${key}` };
    const response = await fetch(`${url}/api/v1/${resource}?${query}`, { headers });
    if (!response.ok) throw new Error(await response.text());
    const { data, page } = (await response.json()) as { data: Row[]; page: { nextCursor: string | null } };
    rows.push(...data);
    query = page.nextCursor === null ? "" : `limit=250&cursor=${encodeURIComponent(page.nextCursor)}`;
  }
  return rows;
}

/** Maps each id to its row. A later row replaces an earlier row with the same id. */
export function byId(rows: Iterable<unknown>): Record<string, Row> {
  return Object.fromEntries([...rows].map((row) => [(row as Row).id, row as Row]));
}

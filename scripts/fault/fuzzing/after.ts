import { Database } from "bun:sqlite";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { FuzzedShop, World } from "./world.ts";

/** Resident memory of a process, in MiB. */
export function memoryMib(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1_024;
}

/** Finds errors and secrets in the log. */
export function wrongInLog(log: string, { secrets }: World): string[] {
  const errors = log
    .split("\n")
    .filter((line) => line.includes('"level":"error"') || /^\s+at |panic|Error:/.test(line));
  const told = secrets.filter((secret) => log.includes(secret));
  return [
    ...errors.slice(0, 5).map((line) => `the log has an error: ${line.slice(0, 500)}`),
    ...told.map((secret) => `the log has a secret, which begins with ${secret.slice(0, 8)}`),
  ];
}

/** Walks all pages of a shop, and compares them with the rows in the database. */
export async function wrongInPages(url: string, data: string, { domain, digits, key }: FuzzedShop): Promise<string[]> {
  const wrong: string[] = [];
  for (const resource of ["subscriptions", "customers", "orders"]) {
    const ids = new Set<string>();
    let cursor: string | null = null;
    do {
      const query: string = cursor === null ? "limit=250" : `limit=250&cursor=${encodeURIComponent(cursor)}`;
      const answer = await fetch(`${url}/api/v1/${resource}?${query}`, { headers: { Authorization: `Bearer ${key}` } });
      const text = await answer.text();
      if (answer.status !== 200) return [...wrong, `the pages of ${resource} of ${domain} end with ${answer.status}`];
      const { data, page } = JSON.parse(text) as { data: { id: string }[]; page: { nextCursor: string | null } };
      for (const { id } of data) ids.add(id);
      const gids = text.match(/gid:\/\/shopify\/(?:Customer|SubscriptionContract)\/\d+/g) ?? [];
      const foreign = gids.find((gid) => /\/([123])\1{4}\d{5}$/.test(gid) && !gid.includes(`/${digits}`));
      if (foreign !== undefined) wrong.push(`the ${resource} of ${domain} have ${foreign} of another shop`);
      cursor = page.nextCursor;
    } while (cursor !== null);
    const rows = countRows(data, resource, domain);
    if (rows !== ids.size)
      wrong.push(`the pages of ${resource} of ${domain} have ${ids.size} rows, the database ${rows}`);
  }
  return wrong;
}

function countRows(data: string, resource: string, domain: string): number {
  const db = new Database(join(data, "sds.db"), { readonly: true });
  const sql = `SELECT count(*) AS n FROM ${resource} WHERE shop_id = (SELECT id FROM shops WHERE domain = ?)`;
  const { n = -1 } = db.query<{ n: number }, [string]>(sql).get(domain) ?? {};
  db.close();
  return n;
}

/** Checks the database of a stopped program with SQLite. @returns what is wrong */
export function wrongInDatabase(data: string): string[] {
  const db = new Database(join(data, "sds.db"), { readonly: true });
  const check = db.query<{ integrity_check: string }, []>("PRAGMA integrity_check").all();
  const foreign = db.query("PRAGMA foreign_key_check").all().length;
  db.close();
  const found = check.map((row) => row.integrity_check).filter((text) => text !== "ok");
  return [...found, ...(foreign > 0 ? [`${foreign} rows refer to rows that are not there`] : [])];
}

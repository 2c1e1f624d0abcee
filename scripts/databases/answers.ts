import type { StoredCommand, StoredRequest } from "../../test/support/stored-database.ts";
import type { OldProgram, Server } from "./program.ts";

const RESOURCES = ["customers", "subscriptions", "orders"];
/** Queries of first pages. Later pages have the same limit. */
const LIMITS = ["", "limit=250", "limit=7", "limit=1"];
/** A query of changes. Later pages are read with the checkpoint of the previous page, as a copy does. */
const CHANGES = "limit=7&updatedSince=2026-02-02T09:00:00Z";
/** A walk ends after this many pages, because a walk with `limit=1` would be long. */
const MAX_PAGES = 12;
const SHOWN_PER_STATUS = 2;

interface Listed {
  id: string;
  kind: string;
  topic: string;
  status: string;
}

/** Runs commands about each shop. @returns their output */
export async function askCommands(program: OldProgram, domains: string[]): Promise<StoredCommand[]> {
  const answers: StoredCommand[] = [];
  async function ask(...args: string[]): Promise<string> {
    const stdout = await program.run([...args, "--json"]);
    answers.push({ args: [...args, "--json"], stdout });
    return stdout;
  }

  await ask("shop", "list");
  for (const domain of domains) {
    const shop = ["--shop", domain];
    await ask("shop", "show", domain);
    await ask("key", "list", ...shop);
    await ask("intake", "secret", ...shop);
    await ask("webhook", "show", ...shop);
    await ask("webhook", "secret", ...shop);
    await ask("inbox", "list", "--limit", "1000", ...shop);
    await ask("inbox", "list", "--status", "failed", ...shop);
    for (const kind of ["webhook", "trigger"]) await ask("delivery", "list", "--kind", kind, ...shop);
    const deliveries = JSON.parse(await ask("delivery", "list", "--limit", "1000", ...shop)) as Listed[];
    const alike = Map.groupBy(deliveries, ({ kind, status }) => `${kind} ${status}`);
    // Shows some deliveries of each kind and status. Also shows all deliveries of rewards, because the redaction of a
    // person changes their bodies.
    const shown = [...alike.values()].flatMap((group) => group.slice(0, SHOWN_PER_STATUS));
    const rewards = deliveries.filter(({ topic }) => topic === "loyalty.reward_earned");
    for (const { id } of new Set([...shown, ...rewards])) await ask("delivery", "show", id, ...shop);
    for (const number of ["1", "100", "103"])
      await ask("customer", "export", `gid://shopify/Customer/${number}`, ...shop);
  }
  return answers;
}

/**
 * Reads lists of every resource, up to MAX_PAGES pages of each list. Each request has the API key. If the server
 * refuses a request, the result has the refusal.
 */
export async function askPages(server: Server, key: string): Promise<StoredRequest[]> {
  const walks = RESOURCES.flatMap((resource) => {
    const path = `/api/v1/${resource}`;
    const lists = LIMITS.map((limit) => {
      const first = limit === "" ? path : `${path}?${limit}`;
      return walk(server, key, first, (cursor) => `${first}${limit === "" ? "?" : "&"}cursor=${cursor}`);
    });
    return [...lists, walk(server, key, `${path}?${CHANGES}`, (checkpoint) => `${path}?limit=7&since=${checkpoint}`)];
  });
  return (await Promise.all(walks)).flat();
}

/** @param nextPath makes the path of the next page from a page's `nextCursor` */
async function walk(
  server: Server,
  key: string,
  first: string,
  nextPath: (cursor: string) => string,
): Promise<StoredRequest[]> {
  const answers: StoredRequest[] = [];
  let next: string | null = first;
  while (next !== null && answers.length < MAX_PAGES) {
    const path: string = next;
    const response = await fetch(server.url + path, { headers: { Authorization: `Bearer ${key}` } });
    const body = await response.text();
    answers.push({ key, path, status: response.status, body });
    const cursor = response.ok ? (JSON.parse(body) as { page: { nextCursor: string | null } }).page.nextCursor : null;
    next = cursor === null ? null : nextPath(encodeURIComponent(cursor));
  }
  return answers;
}

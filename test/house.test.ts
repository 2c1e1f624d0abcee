import { expect, test } from "bun:test";
import { join } from "node:path";
import { Glob } from "bun";

const SRC = join(import.meta.dir, "../src");

/**
 * Imports go down: a file may import from its own folder and from lower floors, never from a neighbour on its own
 * floor.
 */
const FLOORS: Record<string, number> = {
  client: 0,
  lib: 0,
  docs: 0,
  domain: 1,
  store: 2,
  mirror: 3,
  cluster: 3,
  shopify: 4,
  delivery: 4,
  actions: 5,
  http: 6,
  compose: 7,
  cli: 8,
};
/** The floor of each file that lies directly in `src/`. */
const FILES: Record<string, number> = { "setting-names.ts": 1, "config.ts": 2, "main.ts": 9 };

interface SourceFile {
  path: string;
  text: string;
  imports: { from: string; typeOnly: boolean }[];
}

const sources: SourceFile[] = await Promise.all(
  [...new Glob("**/*.{ts,tsx}").scanSync(SRC)].sort().map(async (path) => {
    const text = await Bun.file(join(SRC, path)).text();
    const imports = [
      ...text.matchAll(/(?:^(?:import|export)\b(?<type> type)?[^;]*?from |\bimport\()"(?<from>[^"]+)"/gm),
    ].map(({ groups }) => ({ from: groups?.["from"] ?? "", typeOnly: groups?.["type"] !== undefined }));
    return { path, text, imports };
  }),
);

function part(path: string): string {
  return path.split("/")[0] ?? "";
}

function floor(name: string): number {
  const found = FLOORS[name] ?? FILES[name];
  if (found === undefined) throw new Error(`${name} has no floor: give it one in house.test.ts and README.md`);
  return found;
}

/** Finds siblings that import each other in a circle. Siblings are the files and folders directly in `folder`. */
function circlesIn(folder: string): string[] {
  const imported = new Map<string, Set<string>>();
  for (const { path, imports } of sources.filter((source) => source.path.startsWith(folder))) {
    const targets = imports.map(({ from }) => join(path, "..", from)).filter((target) => target.startsWith(folder));
    const sibling = part(path.slice(folder.length));
    const others = targets.map((target) => part(target.slice(folder.length))).filter((other) => other !== sibling);
    imported.set(sibling, new Set([...(imported.get(sibling) ?? []), ...others]));
  }
  return [...imported.keys()]
    .filter((sibling) => reachable(sibling, imported).has(sibling))
    .map((each) => folder + each);
}

/** Returns the siblings that `start` imports, directly or through others. In a circle, `start` is one of them. */
function reachable(start: string, imported: ReadonlyMap<string, ReadonlySet<string>>): Set<string> {
  const reached = new Set<string>();
  const waiting = [...(imported.get(start) ?? [])];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (reached.has(next)) continue;
    reached.add(next);
    waiting.push(...(imported.get(next) ?? []));
  }
  return reached;
}

test("imports only go down", () => {
  const upward = sources.flatMap(({ path, imports }) =>
    imports
      .filter(({ from }) => from.startsWith("."))
      .map(({ from }) => join(path, "..", from))
      .filter((target) => !target.startsWith("..") && part(target) !== part(path))
      .filter((target) => floor(part(target)) >= floor(part(path)))
      .map((target) => `${path} -> ${target}`),
  );
  expect(upward).toEqual([]);
});

test("inside a folder, siblings do not import each other in a circle", () => {
  const foldersOf = (path: string) =>
    path
      .split("/")
      .slice(0, -1)
      .map((_, depth, parts) => parts.slice(0, depth + 1));
  const folders = new Set(sources.flatMap(({ path }) => foldersOf(path).map((parts) => `${parts.join("/")}/`)));
  expect([...folders].flatMap(circlesIn)).toEqual([]);
});

test("client/ is a package of its own: it imports nothing else, and only its file store needs Node's modules", () => {
  const outside = sources
    .filter(({ path }) => part(path) === "client")
    .flatMap(({ path, imports }) => imports.map(({ from }) => ({ path, from })))
    .filter(({ from }) => !from.startsWith("./"));
  expect(outside).toEqual([
    { path: "client/file-store.ts", from: "node:fs/promises" },
    { path: "client/file-store.ts", from: "node:path" },
  ]);
});

test("the parts that write and send know no HTTP", () => {
  const work = sources.find(({ path }) => path === "compose/work.ts");
  expect(work?.imports.filter(({ from }) => from.startsWith("../http/"))).toEqual([]);
});

test("the database stays in store/", () => {
  const outside = sources.filter(
    ({ path, imports }) =>
      part(path) !== "store" && imports.some(({ from }) => from === "bun:sqlite" || from.startsWith("drizzle-orm")),
  );
  // The command `version` opens SQLite only in memory, to show its version.
  expect(outside.map(({ path }) => path)).toEqual(["cli/version.ts"]);
});

test.each(["sqlite", "postgres"])("only open-store.ts and copy-store.ts choose an engine: %s", (engine) => {
  const folder = `store/${engine}/`;
  const choosing = sources.filter(
    ({ path, imports }) =>
      !path.startsWith(folder) && imports.some(({ from }) => join(path, "..", from).startsWith(folder)),
  );
  expect(choosing.map(({ path }) => path)).toEqual(["store/copy-store.ts", "store/open-store.ts"]);
});

test("only mirror/ applies records", () => {
  const callers = sources.filter(({ path, text }) => /\.applyRecords\(/.test(text) && part(path) !== "mirror");
  expect(callers.map(({ path }) => path)).toEqual([]);
});

test("domain/ has no clock, no randomness and no input or output", () => {
  const forbidden =
    /\bDate\.now\(|\bnew Date\(\)|Math\.random\(|getRandomValues|randomUUID|\bfetch\(|process\.|node:|setTimeout|console\./;
  expect(
    sources.filter(({ path, text }) => part(path) === "domain" && forbidden.test(text)).map(({ path }) => path),
  ).toEqual([]);
});

test("SQL never reads the clock, except for heartbeats and leases of nodes and the comparison of clocks", async () => {
  const sql = [...new Glob("**/*.sql").scanSync(SRC)].sort();
  const migrations = await Promise.all(
    sql.map(async (path) => ({ path, text: await Bun.file(join(SRC, path)).text() })),
  );
  const clock =
    /CURRENT_TIMESTAMP|strftime\(|unixepoch\(|datetime\('now|(?:clock|statement|transaction)_timestamp|\bnow\(\)::/i;
  expect([...sources, ...migrations].filter(({ text }) => clock.test(text)).map(({ path }) => path)).toEqual([
    "store/postgres/nodes.ts",
    "store/postgres/server-check.ts",
  ]);
});

test("files are short, their lines too, and their names say something", () => {
  const wide = sources.flatMap(({ path, text }) =>
    text.split("\n").flatMap((line, index) => (line.length > 120 ? [`${path}:${index + 1}`] : [])),
  );
  expect(wide).toEqual([]);
  expect(sources.filter(({ text }) => text.split("\n").length > 300).map(({ path }) => path)).toEqual([]);
  expect(
    sources
      .filter(({ path }) => /(^|\/)(utils?|helpers?|common|types?|manager|service|misc)(\.tsx?|\/)/.test(path))
      .map(({ path }) => path),
  ).toEqual([]);
});

test("files of tests and scripts are short too", async () => {
  const root = join(SRC, "..");
  const long: string[] = [];
  for (const path of new Glob("{test,scripts}/**/*.{ts,tsx}").scanSync(root)) {
    if (path.includes("node_modules/")) continue;
    if ((await Bun.file(join(root, path)).text()).trimEnd().split("\n").length > 300) long.push(path);
  }
  expect(long).toEqual([]);
});

test("the settings page escapes all values", () => {
  // Each file names its JSX library. Otherwise Bun would take it from the tsconfig.json of the current folder.
  expect(
    sources
      .filter(({ path, text }) => path.endsWith(".tsx") && !text.startsWith("/** @jsxImportSource preact */\n"))
      .map(({ path }) => path),
  ).toEqual([]);
  expect(sources.filter(({ text }) => /dangerouslySetInnerHTML|innerHTML/.test(text)).map(({ path }) => path)).toEqual(
    [],
  );
});

test("pages of the settings page know neither /admin nor /app, so both have the same pages", () => {
  const roots = /["'`]\/(admin|app)\b/;
  const knowing = sources.filter(({ path, text }) => path.startsWith("http/admin/") && roots.test(text));
  expect(knowing.map(({ path }) => path).sort()).toEqual([
    "http/admin/components.tsx",
    "http/admin/layout.tsx",
    "http/admin/messages.tsx",
    "http/admin/routes.ts",
    "http/admin/sessions.ts",
    "http/admin/visitor.ts",
  ]);
});

test("no to-do, lint switch or console output is left", () => {
  const marks =
    /\bTODO\b|\bFIXME\b|\bXXX\b|@ts-ignore|@ts-expect-error|@ts-nocheck|biome-ignore|\bas any\b|console\.log/;
  // Only the file with the sample programs for readers matches: these programs print with console.log.
  expect(sources.filter(({ text }) => marks.test(text)).map(({ path }) => path)).toEqual([
    "http/docs/reference-samples.ts",
  ]);
});

import { Database } from "bun:sqlite";
import { expect, spyOn, test } from "bun:test";
import type { Store } from "../../src/store/port/store.ts";
import { MIGRATIONS } from "../../src/store/sqlite/migrations.ts";
import { everyOperation } from "../conformance/every-operation.ts";
import { temporaryFolder } from "../support/app.ts";
import { openStoreIn } from "../support/open-store.ts";

/** Tables that can hold millions of rows. Each condition names the shop, so that the tables can be divided by shop. */
const GROWING = [
  "customers",
  "subscriptions",
  "orders",
  "occurrences",
  "contract_reads",
  "platform_webhooks",
  "deliveries",
  "attempts",
  "inbox",
  "staged_orders",
  "staged_order_lines",
];

/**
 * Parts of statements that need not name the shop, each with its reason. "…" stands for a SELECT in parentheses, which
 * is a part of its own.
 */
const EXCEPTIONS: [part: RegExp, reason: string][] = [
  [
    /^(UPDATE deliveries SET .*|DELETE FROM deliveries) WHERE number IN …/,
    "a number is one row's alone, and the SELECT that gives it names the shop",
  ],
  [
    /^SELECT shop_id FROM api_keys WHERE .* UNION SELECT shop_id FROM deliveries WHERE id = \+\?$/,
    "it finds the shop of an id for a command, by the unique index of the id",
  ],
  [
    /^SELECT shop_id, kind FROM deliveries INDEXED BY deliveries_planned WHERE .* ORDER BY claimable_at LIMIT \+\? ?$/,
    "it searches the due deliveries of all shops by their time",
  ],
  [/^SELECT shop_id, .*count\(\*\) AS .* GROUP BY shop_id$/, "it counts what waits, is dead or failed in each shop"],
];

/** Notes which methods of the port are called. */
function noting(store: Store, called: Set<string>): Store {
  const parts = presentParts(store).map(([name, part]) => [
    name,
    typeof part === "function" ? noted(name, part, called) : notingPart(name, part, called),
  ]);
  return Object.fromEntries(parts) as Store;
}

/** Lists the parts of the store's interface that this engine has. */
function presentParts(store: Store): [string, Method | Record<string, Method>][] {
  return Object.entries(store).filter(([, part]) => part !== null);
}

type Method = (...args: unknown[]) => unknown;

function notingPart(part: string, methods: Record<string, Method>, called: Set<string>): Record<string, Method> {
  return Object.fromEntries(
    Object.entries(methods).map(([name, method]) => [name, noted(`${part}.${name}`, method, called)]),
  );
}

function noted(name: string, method: Method, called: Set<string>): Method {
  return (...args) => {
    called.add(name);
    return method(...args);
  };
}

function functionsOf(part: object): string[] {
  return Object.entries(part).flatMap(([name, value]) => (typeof value === "function" ? [name] : []));
}

function namesOf(store: Store): string[] {
  return presentParts(store).flatMap(([name, part]) =>
    typeof part === "function" ? [name] : functionsOf(part).map((method) => `${name}.${method}`),
  );
}

/** Records the kind of each transaction that writes, from now on. */
function noteTransactions(kinds: Set<string>) {
  const original = Database.prototype.transaction;
  const written = (db: Database) => db.query<{ n: number }, []>("SELECT total_changes() AS n").get()?.n;
  return spyOn(Database.prototype, "transaction").mockImplementation(function (this: Database, inside: Method) {
    const transaction = original.call(this, inside);
    const begin = (kind: "deferred" | "immediate" | "exclusive") => {
      return (...args: unknown[]) => {
        const before = written(this);
        const result: unknown = transaction[kind](...args);
        if (written(this) !== before) kinds.add(kind);
        return result;
      };
    };
    return Object.assign(begin("deferred"), {
      deferred: begin("deferred"),
      immediate: begin("immediate"),
      exclusive: begin("exclusive"),
    });
  } as typeof original);
}

/**
 * All statements that SQLite gets from the store while it opens and while every operation runs. Includes unprepared
 * statements.
 */
async function statementsOfEveryOperation(): Promise<{ statements: string[]; kinds: Set<string>; uncalled: string[] }> {
  const kinds = new Set<string>();
  const transactions = noteTransactions(kinds);
  const spies = (["prepare", "query", "run", "exec"] as const).map((name) => spyOn(Database.prototype, name));
  try {
    const folder = temporaryFolder();
    const store = await openStoreIn(folder);
    const called = new Set<string>();
    await everyOperation(noting(store, called));
    const migrations = new Set(MIGRATIONS.map(({ sql }) => sql));
    const statements = spies.flatMap((spy) => spy.mock.calls.map(([sql]) => sql)).filter((sql) => !migrations.has(sql));
    return {
      statements: [...new Set(statements)],
      kinds,
      uncalled: namesOf(store).filter((name) => !called.has(name)),
    };
  } finally {
    for (const spy of [...spies, transactions]) spy.mockRestore();
  }
}

/** A SELECT in parentheses without a nested SELECT. It may contain lists of columns or values. */
const INNER_SELECT = /\(\s*(SELECT\b(?:(?!\(\s*SELECT)[^()]|\((?!\s*SELECT)[^()]*\))*)\)/i;

/** Splits a statement into itself and its nested SELECTs. In each part, "…" replaces the SELECTs in parentheses. */
function parts(sql: string): string[] {
  const found: string[] = [];
  let rest = sql.replaceAll(/\s+/g, " ").replaceAll('"', "");
  for (let inner = INNER_SELECT.exec(rest); inner !== null; inner = INNER_SELECT.exec(rest)) {
    found.push(inner[1] ?? "");
    rest = rest.replace(inner[0], "…");
  }
  return [...found, rest].flatMap((part) => part.split(/\bUNION ALL\b/i));
}

const ACCESS = new RegExp(`\\b(?:FROM|JOIN|UPDATE|INTO) (${GROWING.join("|")})\\b`, "i");
const NAMES_SHOP = [
  /\bshop_id (?:=|>|IN)/i,
  /\((?:\w+\.)?shop_id, [^)]*\) (?:=|>|<)/i,
  /^INSERT (?:OR IGNORE )?INTO \w+ \(shop_id\b|^INSERT INTO \w+ \(\w+, shop_id\b/i,
];

/** Finds the parts of a statement that use a growing table without naming the shop. */
function unbound(sql: string): string[] {
  const isExcepted = (part: string) => EXCEPTIONS.some(([exception]) => exception.test(part));
  return parts(sql).filter(
    (part) => ACCESS.test(part) && !NAMES_SHOP.some((pattern) => pattern.test(part)) && !isExcepted(part),
  );
}

const { statements, kinds, uncalled } = await statementsOfEveryOperation();

test("the test calls every operation of the port: add a new operation to every-operation.ts", () => {
  expect(uncalled).toEqual([]);
});

test("each statement on a large table names the shop, also statements that are built at run time", () => {
  expect(statements.filter((sql) => ACCESS.test(sql)).length).toBeGreaterThan(50);
  expect(statements.flatMap(unbound)).toEqual([]);
});

test("each writing transaction takes the write lock at its start, so no other process writes between its reads and writes", () => {
  expect([...kinds]).toEqual(["immediate"]);
});

test("a shop's rows are removed in steps from each large table; attempts are removed with their deliveries", () => {
  const inSteps = GROWING.filter((table) =>
    statements.some((sql) => new RegExp(`^DELETE FROM ${table} WHERE \\+?shop_id = .* LIMIT \\d+`, "s").test(sql)),
  );
  expect(inSteps).toEqual(GROWING.filter((table) => table !== "attempts"));
});

test.each([
  ["SELECT json FROM orders WHERE id = ?", true],
  ["SELECT shop_id AS shopId, json FROM orders WHERE id = ?", true],
  ["SELECT json FROM orders WHERE shop_id = ? AND id = ?", false],
  ["DELETE FROM inbox WHERE number IN (SELECT number FROM inbox WHERE shop_id = ? LIMIT 1)", true],
  ["DELETE FROM inbox WHERE shop_id = ? AND number IN (SELECT number FROM inbox LIMIT 1)", true],
  ["SELECT * FROM (SELECT id FROM orders WHERE shop_id = ?) UNION ALL SELECT * FROM (SELECT id FROM orders)", true],
  ["INSERT INTO attempts (delivery, number) VALUES (?, ?)", true],
  ["INSERT INTO attempts (shop_id, delivery, number) VALUES (?, ?, ?)", false],
  ["SELECT id FROM shops", false],
  ["DELETE FROM deliveries WHERE number IN (SELECT number FROM deliveries WHERE shop_id = ?)", false],
  ["DELETE FROM deliveries WHERE number IN (SELECT number FROM deliveries)", true],
  ["SELECT id FROM orders WHERE shop_id = ? AND id IN (SELECT value FROM json_each(?))", false],
])("the search for statements without a shop works: %s", (sql, expected) => {
  expect(unbound(sql).length > 0).toBe(expected);
});

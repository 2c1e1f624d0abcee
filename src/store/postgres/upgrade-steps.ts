/**
 * A step of a migration. A kill between two steps loses nothing, and the next program continues with the next step.
 * - `transaction`: statements that each take a moment, in one transaction
 * - `index`: an index of a table that may be large, built while other transactions write
 * - `backfill`: a statement for the rows of a table, batch by batch
 */
export type UpgradeStep =
  | { kind: "transaction"; script: string }
  | { kind: "index"; index: string; statement: string }
  | { kind: "backfill"; table: string; statement: string };

const MARKER = /^-- step: (.+)$/m;
const INDEX = /^CREATE (?:UNIQUE )?INDEX (\w+) ON (\w+)[^;]*;/gm;
const TABLE = /^CREATE TABLE (\w+)/gm;

/**
 * Splits a migration into its steps. A line `-- step: transaction` or `-- step: backfill TABLE` begins a step. A file
 * begins with a transaction. If a transaction creates an index of a table that existed before, a separate step builds
 * the index afterwards. A transaction should lock few tables: under load it seldom gets the locks of many tables at
 * once.
 */
export function stepsOf(migration: string): UpgradeStep[] {
  const newTables = new Set(Array.from(migration.matchAll(TABLE), ([, table]) => table));
  const [first = "", ...rest] = migration.split(MARKER);
  const steps = transactionSteps(first, newTables);
  for (let part = 0; part < rest.length; part += 2) {
    const [marker = "", text = ""] = rest.slice(part, part + 2);
    const table = /^backfill (\w+)$/.exec(marker)?.[1];
    if (table !== undefined) steps.push({ kind: "backfill", table, statement: text.trim().replace(/;$/, "") });
    else if (marker === "transaction") steps.push(...transactionSteps(text, newTables));
    else throw new Error(`unknown step of a migration: ${marker}`);
  }
  return steps;
}

function transactionSteps(text: string, newTables: ReadonlySet<string | undefined>): UpgradeStep[] {
  const indexes: UpgradeStep[] = [];
  const script = text.replace(INDEX, (statement: string, index: string, table: string) => {
    if (newTables.has(table)) return statement;
    indexes.push({ kind: "index", index, statement });
    return "";
  });
  const hasStatement = script.replace(/^\s*--.*$/gm, "").trim() !== "";
  return hasStatement ? [{ kind: "transaction", script }, ...indexes] : indexes;
}

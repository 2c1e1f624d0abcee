import type { SQL } from "bun";
import { startRepeating } from "./cluster-traffic.ts";

const TABLES = ["customers", "subscriptions", "orders", "occurrences"];
const PAUSE_MS = 30;
const LIMIT = 200;

interface Change {
  row: string;
  number: number;
}

/** Reads the changes of a shop by their numbers, as a client does, while all nodes write. */
export function startChangeReader(sql: SQL, shopId: number) {
  const seen = new Map<string, number>();
  const problems: string[] = [];
  let last = 0;

  async function changesAfter(number: number, limit: number): Promise<Change[]> {
    const each = TABLES.map(
      (table) => `SELECT '${table} ' || id AS row, change_number FROM ${table}
        WHERE shop_id = ${shopId} AND change_number > ${number}`,
    );
    const rows = await sql.unsafe(`${each.join(" UNION ALL ")} ORDER BY change_number LIMIT ${limit}`);
    return rows.map(({ row, change_number }: { row: string; change_number: string }) => ({
      row,
      number: Number(change_number),
    }));
  }

  async function readNext(): Promise<number> {
    const changes = await changesAfter(last, LIMIT);
    for (const { row, number } of changes) {
      if (number <= last) problems.push(`${number} of shop ${shopId} was given twice`);
      seen.set(row, number);
      last = number;
    }
    return changes.length;
  }

  const reading = startRepeating(readNext, PAUSE_MS);
  return {
    /** Reads the last changes, and compares all changes with the database. @returns what is wrong */
    async end(): Promise<string[]> {
      await reading.end();
      while ((await readNext()) > 0);
      const all = await changesAfter(0, 1e9);
      const missed = all.filter(({ row, number }) => seen.get(row) !== number);
      if (missed.length > 0) problems.push(`the reader of shop ${shopId} missed ${missed.length}: ${missed[0]?.row}`);
      const [{ count }] = await sql.unsafe(`SELECT change_count AS count FROM shop_changes WHERE shop_id = ${shopId}`);
      if (Number(count) !== (all.at(-1)?.number ?? 0)) problems.push(`shop ${shopId} counts ${count} changes`);
      // Only a second write of a row leaves a gap in the numbers. Occurrences are written once, so they leave no gaps.
      const once = all.every(({ row }) => row.startsWith("occurrences "));
      if (once && all.length !== Number(count)) problems.push(`shop ${shopId} has gaps: ${all.length} of ${count}`);
      return problems;
    },
    count: () => seen.size,
  };
}

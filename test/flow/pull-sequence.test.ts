import { describe, expect, test } from "bun:test";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { SQL } from "bun";
import { FakeApi } from "../support/fake-api.ts";
import { emptyDatabase, hasPostgres } from "../support/postgres-server.ts";
import type { Result } from "../support/program.ts";
import { SAMPLES, shellWith } from "../support/samples.ts";
import { place, rowsIn } from "./pulling.ts";

describe("--sequence", () => {
  const SEQUENCE = ["--sequence"];
  interface NumberedRow {
    id: string;
    value: number;
    _sequence: number;
  }
  const numbered = ({ stdout }: Result) => rowsIn(stdout) as NumberedRow[];

  test("numbers rows upwards over all runs, so that of a row that is there twice the newest is known", async () => {
    const api = new FakeApi(3);
    api.pageRows = 2;
    const { pull, state } = place();
    let pages = 0;
    api.before = () => {
      pages += 1;
      if (pages === 2) api.put("ord_2", 22);
      return undefined;
    };
    const first = numbered(await pull(api.url, ...SEQUENCE));
    expect(first.map(({ id, value }) => [id, value])).toEqual([
      ["ord_2", 2],
      ["ord_1", 1],
      ["ord_0", 0],
      ["ord_2", 22],
    ]);
    api.put("ord_0", 10);
    const second = numbered(await pull(api.url, ...SEQUENCE));
    // A run without `--sequence` keeps the stored numbers.
    api.put("ord_0", 11);
    expect(rowsIn((await pull(api.url)).stdout)).toEqual([{ id: "ord_0", value: 11 }]);
    const anew = numbered(await pull(api.url, ...SEQUENCE, "--anew"));
    rmSync(state);
    const lost = numbered(await pull(api.url, ...SEQUENCE));
    const numbers = [...first, ...second, ...anew, ...lost].map(({ _sequence }) => _sequence);
    expect(numbers).toHaveLength(11);
    expect(numbers.every(Number.isSafeInteger)).toBe(true);
    expect(new Set(numbers).size).toBe(11);
    // After the loss of the state, numbering starts at the current time again. These numbers may be lower than numbers
    // that the lost state had reserved. So they are not compared.
    expect(numbers.slice(0, 8)).toEqual(numbers.slice(0, 8).toSorted((a, b) => a - b));
  });

  test("in CSV is the last column", async () => {
    const api = new FakeApi(1);
    const { pull } = place();
    const [header, row] = (await pull(api.url, ...SEQUENCE, "--format", "csv")).stdout.split("\r\n");
    expect(header).toEndWith(",totalCents,billedAt,_sequence");
    expect(row).toMatch(/^ord_0,,,,,,,,,,,,,\d{16}$/);
  });

  const psql = Bun.which("psql");
  test.skipIf(psql === null || !hasPostgres())(
    "lets the recipe for PostgreSQL load files in any order, and again",
    async () => {
      const api = new FakeApi(4);
      api.pageRows = 2;
      const { pull, folder } = place();
      const database = await emptyDatabase();
      const files: string[] = [];
      /** Runs `sds pull` into a file. @param more stands for an incomplete row, which a killed run leaves at the end */
      const pullInto = async (file: string, more = "") => {
        const { stdout } = await pull(api.url, ...SEQUENCE);
        writeFileSync(join(folder, file), stdout + more);
        files.push(file);
      };
      let pages = 0;
      api.before = () => {
        pages += 1;
        if (pages === 2) api.put("ord_3", 33);
        return undefined;
      };
      await pullInto("orders-1.ndjson", '{"id":"ord_1","val');
      api.put("ord_3", 34);
      await pullInto("orders-2.ndjson");
      api.put("ord_3", 35);
      api.put("ord_9", 9);
      await pullInto("orders-3.ndjson");
      const sql = SAMPLES.find(({ page, code }) => page === "operating.md" && code.includes("pstdin"))?.code ?? "";
      writeFileSync(join(folder, "load-orders.sql"), sql);
      const load =
        shellWith("operating.md", "load-orders.sql")
          .split("\n")
          .find((line) => line.includes("psql")) ?? "";
      for (const file of [...files, ...files, "orders-3.ndjson", "orders-1.ndjson"]) {
        const child = Bun.spawn(["bash", "-c", load], {
          cwd: folder,
          env: { PATH: process.env["PATH"] ?? "", file, DATABASE: database, PGOPTIONS: "" },
          stdout: "ignore",
          stderr: "pipe",
        });
        const [stderr, status] = await Promise.all([child.stderr.text(), child.exited]);
        expect({ file, status, errors: stderr.match(/ERROR.*/g) }).toEqual({ file, status: 0, errors: null });
      }
      await using db = new SQL(database, { max: 1 });
      const rows: { id: string; value: number }[] = await db`
        SELECT id, (row ->> 'value')::int AS value FROM orders ORDER BY id DESC`;
      expect(rows.map(({ id, value }) => ({ id, value }))).toEqual(api.rows());
    },
  );
});

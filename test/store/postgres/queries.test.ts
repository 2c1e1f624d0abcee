import { describe, expect, test } from "bun:test";
import { failures } from "../../conformance/fixtures.ts";
import { openDatabase } from "../../support/postgres-connections.ts";
import { hasPostgres, postgresServer } from "../../support/postgres-server.ts";

const TEXTS = [
  "",
  "a",
  "NULL",
  "null",
  'q"uo\\te',
  "{}",
  "{a,b}",
  "a,b",
  " ",
  "\n\t\r",
  "é☕😀",
  "'",
  "\\",
  '"',
  "\\N",
];
const NUMBERS = [0, 1, -1, 2 ** 31 - 1, 2 ** 31, -(2 ** 31) - 1, Number.MAX_SAFE_INTEGER, -Number.MAX_SAFE_INTEGER];

for (const isPooled of [false, true]) {
  describe.skipIf(!hasPostgres())(`parameters of PostgreSQL${isPooled ? ", as behind a pooler" : ""}`, () => {
    async function open() {
      return openDatabase((await postgresServer()).url, { isPooled, connections: 1 });
    }

    test("arrive unchanged, alone and in arrays", async () => {
      const db = await open();
      const back = async (type: string, value: never) =>
        (await db.get<{ value: unknown }>(`SELECT $1::${type} AS value`, [value]))?.value;
      for (const text of [...TEXTS, "x".repeat(1_000_000)]) expect(await back("text", text as never)).toBe(text);
      for (const number of NUMBERS) expect(await back("bigint::float8", number as never)).toBe(number);
      for (const value of [true, false, null]) expect(await back("boolean", value as never)).toBe(value);
      for (const bytes of [[], [0, 255, 92, 34], [...new Uint8Array(256).keys()]])
        expect(await back("bytea", new Uint8Array(bytes) as never)).toEqual(Buffer.from(bytes));
      // Part of a larger buffer.
      expect(await back("bytea", new Uint8Array([1, 2, 3, 4]).subarray(1, 3) as never)).toEqual(Buffer.from([2, 3]));
      const rows = await db.all<{ text: string; number: number; flag: boolean }>(
        `SELECT text, number::float8 AS number, flag
         FROM unnest($1::text[], $2::bigint[], $3::boolean[]) AS given (text, number, flag)`,
        [
          [...TEXTS, null],
          [...NUMBERS, null],
          [true, false, null],
        ],
      );
      expect(rows.map(({ text }) => text)).toEqual([...TEXTS, null] as never);
      expect(rows.slice(0, NUMBERS.length + 1).map(({ number }) => number)).toEqual([...NUMBERS, null] as never);
      expect(rows.slice(0, 3).map(({ flag }) => flag)).toEqual([true, false, null] as never);
      const none = await db.all("SELECT * FROM unnest($1::text[], $2::bigint[]) AS given", [[], []]);
      expect(none).toEqual([]);
    });

    test("with a NUL are refused", async () => {
      const db = await open();
      const [alone, within] = await failures([
        db.get("SELECT $1::text", ["a\0b"]),
        db.get("SELECT $1::text[]", [["a\0b"]]),
      ]);
      for (const failed of [alone, within]) expect(String(failed)).toContain("invalid byte sequence");
    });
  });
}

describe.skipIf(!hasPostgres())("a statement of PostgreSQL", () => {
  test("is prepared once on each connection, with any values and without values", async () => {
    const db = openDatabase((await postgresServer()).url, { connections: 1 });
    for (const value of [...NUMBERS, null]) await db.get("SELECT $1::bigint AS once", [value]);
    for (const value of [1, 2.5, null]) await db.get("SELECT $1::float8 AS twice", [value]);
    for (const values of [[], [1], [null]]) await db.get("SELECT $1::bigint[] AS array_once", [values]);
    for (let n = 0; n < 3; n += 1) await db.get("SELECT 1 AS without_any");
    const prepared = await db.all<{ statement: string }>(
      "SELECT statement FROM pg_prepared_statements WHERE statement NOT LIKE '%pg_prepared%'",
    );
    expect(prepared.map(({ statement }) => statement).sort()).toEqual([
      "SELECT $1::bigint AS once",
      "SELECT $1::bigint[] AS array_once",
      // A number with a fraction has another parameter type than a whole number.
      "SELECT $1::float8 AS twice",
      "SELECT $1::float8 AS twice",
      "SELECT 1 AS without_any",
    ]);
  });
});

import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import * as postgres from "../../../src/store/postgres/quiet-database.ts";
import type { QuietDatabase } from "../../../src/store/quiet/quiet-database.ts";
import { parameter, sql, tableOf, tx } from "../../../src/store/quiet/quiet-database.ts";
import { openDatabase as openSqlite } from "../../../src/store/sqlite/database.ts";
import * as sqlite from "../../../src/store/sqlite/quiet-database.ts";
import { failures } from "../../conformance/fixtures.ts";
import { temporaryFolder } from "../../support/app.ts";
import { afterTest } from "../../support/cleanup.ts";
import { UPGRADE } from "../../support/open-store.ts";
import { openDatabase as openPostgres } from "../../support/postgres-connections.ts";
import { emptyDatabase, hasPostgres } from "../../support/postgres-server.ts";

const COLUMNS = "(number bigint PRIMARY KEY, text text, bytes ";

const engines: [name: string, open: () => Promise<QuietDatabase>][] = [
  [
    "sqlite",
    async () => {
      const db = openSqlite(join(temporaryFolder(), "sds.db"), 2_000, UPGRADE);
      afterTest(() => db.close());
      db.run(`CREATE TABLE things ${COLUMNS} blob, flag integer)`);
      return sqlite.quietDatabase(db);
    },
  ],
  ["postgres", () => openOnPostgres(false)],
  ["postgres, as behind a pooler", () => openOnPostgres(true)],
];

async function openOnPostgres(isPooled: boolean): Promise<QuietDatabase> {
  const db = openPostgres(await emptyDatabase(), { connections: 1, isPooled });
  await db.run(`CREATE TABLE things ${COLUMNS} bytea, flag boolean)`);
  return postgres.quietDatabase(db);
}

interface Thing {
  number: number;
  text: string | null;
  bytes: Uint8Array | null;
  flag: boolean | number | null;
}

const ODD_TEXT = "é☕😀\u2028 \\ \" ' \n\u0001 {a,b} NULL +? $1";

for (const [name, open] of hasPostgres() ? engines : engines.slice(0, 1)) {
  describe(`the small stores' database: ${name}`, () => {
    const add = (number: number) => sql`INSERT INTO things (number) VALUES (${number})`;
    const numbers = async (db: QuietDatabase) =>
      (await db.all<Thing>(sql`SELECT number FROM things ORDER BY number`)).map(({ number }) => number);

    test("returns values as they were given", async () => {
      const db = await open();
      const bytes = new Uint8Array([0, 255, 92, 34]);
      for (const number of [0, -1, 2 ** 40, Number.MAX_SAFE_INTEGER]) {
        const thing = await db.get<Thing>(
          sql`INSERT INTO things (number, text, bytes, flag) VALUES (${number}, ${ODD_TEXT}, ${bytes}, ${true})
            RETURNING *`,
        );
        expect({ ...thing, bytes: [...(thing?.bytes ?? [])], flag: Boolean(thing?.flag) } as unknown).toEqual({
          number,
          text: ODD_TEXT,
          bytes: [...bytes],
          flag: true,
        });
      }
      await db.run(sql`UPDATE things SET text = ${null}, bytes = ${null}, flag = ${null}`);
      expect(await db.all<Thing>(sql`SELECT * FROM things WHERE number = ${0}`)).toEqual([
        { number: 0, text: null, bytes: null, flag: null },
      ]);
    });

    test("tells how many rows a statement changed, and undefined for no row", async () => {
      const db = await open();
      for (const number of [1, 2, 3]) expect(await db.run(add(number))).toBe(1);
      expect(await db.run(sql`DELETE FROM things WHERE number > ${1}`)).toBe(2);
      expect(await db.get(sql`SELECT number FROM things WHERE number = ${2}`)).toBeUndefined();
    });

    test("prepares a statement for values that come later", async () => {
      const db = await open();
      await db.run(sql`INSERT INTO things (number, text) VALUES (${7}, ${"seven"})`);
      const find = db.prepare<Thing>(
        sql`SELECT number, text FROM things WHERE text = ${parameter("text")} AND number = ${parameter("bigint")}`,
      );
      expect(await find("seven", 7)).toMatchObject({ number: 7, text: "seven" });
      expect(await find("seven", 8)).toBeUndefined();
    });

    test("writes many rows as one parameter", async () => {
      const db = await open();
      const rows = [
        { number: 2 ** 40, text: ODD_TEXT },
        { number: 2, text: "" },
      ];
      for (const each of [rows, []]) {
        const table = tableOf(db, "added", { number: "bigint", text: "text" }, each);
        expect(await db.run(sql`INSERT INTO things (number, text) SELECT number, text FROM ${table}`)).toBe(
          each.length,
        );
      }
      expect(await db.all<Thing>(sql`SELECT number, text FROM things ORDER BY number DESC`)).toEqual(rows as Thing[]);
    });

    test("commits a transaction whose work ends, with the results of its statements", async () => {
      const db = await open();
      const result = await db.transaction(function* () {
        const count = yield* tx.run(add(1));
        yield* tx.run(add(2));
        const first = yield* tx.get<Thing>(sql`SELECT number FROM things ORDER BY number`);
        const all = yield* tx.all<Thing>(sql`SELECT number FROM things`);
        return { count, first: first?.number, all: all.length };
      });
      expect(result).toEqual({ count: 1, first: 1, all: 2 });
      expect(await numbers(db)).toEqual([1, 2]);
    });

    test("rolls back a transaction whose work throws, or whose statement fails", async () => {
      const db = await open();
      await db.run(add(1));
      const [thrown, failed] = await failures([
        db.transaction(function* () {
          yield* tx.run(add(2));
          throw new Error("no");
        }),
        db.transaction(function* () {
          yield* tx.run(add(3));
          yield* tx.run(add(1));
        }),
      ]);
      expect(String(thrown)).toContain("no");
      expect(failed).toBeInstanceOf(Error);
      expect(await numbers(db)).toEqual([1]);
    });
  });
}

test.skipIf(!hasPostgres())(
  "PostgreSQL prepares a statement of the small stores once, whatever its values",
  async () => {
    const db = await openOnPostgres(false);
    for (const number of [1, 2 ** 40, -1])
      await db.get(sql`SELECT ${number} AS a, ${String(number)} AS b, ${true} AS c`);
    const prepared = await db.all<{ statement: string }>(
      sql`SELECT statement FROM pg_prepared_statements WHERE statement LIKE '% AS a,%' AND statement NOT LIKE '%pg_pre%'`,
    );
    expect(prepared).toEqual([{ statement: "SELECT $1::bigint AS a, $2::text AS b, $3::boolean AS c" }]);
  },
);

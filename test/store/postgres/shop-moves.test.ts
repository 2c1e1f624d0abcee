import { describe, expect, test } from "bun:test";
import { SQL } from "bun";
import { cancelMove, moveShop } from "../../../src/store/copy/move-shop.ts";
import type { ShopMoves } from "../../../src/store/port/shop-moves.ts";
import { fillTables } from "../../conformance/filled-tables.ts";
import { failures, shopWithEvents } from "../../conformance/fixtures.ts";
import { request, servedBy, withMoves } from "../../conformance/moving-shops.ts";
import { eventually } from "../../support/eventually.ts";
import { hasPostgres } from "../../support/postgres-server.ts";
import { databaseWithTables, openStoreAt } from "../../support/postgres-store.ts";

describe.skipIf(!hasPostgres())("a move on PostgreSQL", () => {
  test("that is cancelled during its activation leaves the shop in one database", async () => {
    const url = await databaseWithTables();
    const [source, target] = [await openStoreAt(await databaseWithTables()), await openStoreAt(url)];
    await fillTables(source, await shopWithEvents(source, "alpha"));
    await using sql = new SQL(url, { max: 2 });
    const locks = await sql.reserve();
    const untilWaiting = (count: number) =>
      eventually(async () => {
        const [row] = await sql.unsafe(`SELECT count(*)::int4 AS n FROM pg_stat_activity
          WHERE datname = current_database() AND wait_event_type = 'Lock'`);
        return row.n === count;
      });
    let cancelled: Promise<unknown[]> | undefined;
    const activate: ShopMoves["activate"] = async (...given) => {
      await locks.unsafe("BEGIN; LOCK TABLE checkpoint_origins IN SHARE MODE");
      const activated = target.moves.activate(...given);
      await untilWaiting(1);
      cancelled = failures([cancelMove(request({ source, target }))]);
      await untilWaiting(2);
      await locks.unsafe("COMMIT");
      return activated;
    };
    const leave: ShopMoves["leave"] = async (...given) => {
      await cancelled;
      return source.moves.leave(...given);
    };
    const stores = { source: withMoves(source, { leave }), target: withMoves(target, { activate }) };
    await moveShop(request(stores)).finally(() => locks.release());
    expect(await cancelled).toMatchObject([{ code: "conflict" }]);
    expect(await servedBy({ source, target })).toEqual(["target"]);
  });

  test("is refused by a database whose numbers are used up", async () => {
    const url = await databaseWithTables();
    const [source, target] = [await openStoreAt(await databaseWithTables()), await openStoreAt(url)];
    await fillTables(source, await shopWithEvents(source, "alpha"));
    await using sql = new SQL(url, { max: 1 });
    await sql.unsafe("SELECT setval('audit_number_seq', 9007199254000000)");
    expect(await failures([moveShop(request({ source, target }))])).toMatchObject([
      { code: "conflict", message: expect.stringContaining("has no free numbers for `audit`") },
    ]);
    expect(await servedBy({ source, target })).toEqual(["source"]);
    const [sequence] = await sql.unsafe("SELECT last_value::text AS last FROM audit_number_seq");
    expect(sequence.last).toBe("9007199254000001");
  });
});

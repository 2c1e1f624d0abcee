import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { apply, type TestApp, type TestShop, temporaryFolder, testApp } from "../../support/app.ts";
import { afterTest } from "../../support/cleanup.ts";
import { eventually } from "../../support/eventually.ts";
import { startFaultyProxy } from "../../support/faulty-proxy.ts";
import { openDatabase, withPort } from "../../support/postgres-connections.ts";
import { askServer, type PostgresProcess, startPostgres } from "../../support/postgres-process.ts";
import { emptyDatabase, hasPostgres } from "../../support/postgres-server.ts";
import { customer, gid } from "../../support/records.ts";

const portOf = (url: string) => Number(new URL(url).port);
const restored = { status: 400, reason: "restored" };

/** Makes functions that read and add customers of a shop. */
async function readShop(app: TestApp, added: TestShop) {
  async function get(query: string, headers: Record<string, string> = {}) {
    const response = await added.get(`/api/v1/customers?${query}`, headers);
    const { status } = response;
    const checkpoint = response.headers.get("x-checkpoint") ?? "";
    const etag = response.headers.get("etag") ?? "";
    if (status === 304) return { status, checkpoint, etag };
    const body = (await response.json()) as { data?: { shopifyId: string }[]; error?: { reason: string } };
    if (body.error !== undefined) return { status, reason: body.error.reason };
    return { status, checkpoint, etag, gids: body.data?.map(({ shopifyId }) => shopifyId).sort() };
  }
  return {
    get,
    since: (checkpoint = "") => get(`since=${encodeURIComponent(checkpoint)}`),
    /** Stores customers with these numbers. */
    add: (...numbers: number[]) =>
      apply(
        app.app,
        added.shop,
        numbers.map((n) => customer(n)),
        app.clock.now(),
      ),
  };
}

const gidsOf = (...numbers: number[]) => numbers.map((n) => gid.customer(n)).sort();

describe.skipIf(!hasPostgres())("after a failover of PostgreSQL", () => {
  let [primary, standby]: PostgresProcess[] = [];

  /** A primary with a standby, and a program whose database address can move to the standby. */
  async function replicated() {
    primary = await startPostgres({ max_connections: 60 });
    await primary.stop();
    standby = await startPostgres({ max_connections: 60 }, primary);
    await primary.start();
    const [first, second] = [primary, standby];
    afterTest(() => Promise.all([first.stop("SIGKILL"), second.stop("SIGKILL")]));
    const proxy = await startFaultyProxy(portOf(first.url));
    const env = {
      SDS_DATABASE_URL: withPort(first.url, proxy.port),
      SDS_MASTER_KEY_FILE: join(temporaryFolder(), "master.key"),
    };
    const app = await testApp(env);
    const added = await app.addShop();
    const reader = await readShop(app, added);
    return {
      ...{ app, reader },
      /** Waits until the standby has replayed all commits. */
      async inSync() {
        const lsn = await askServer(first.url, "SELECT pg_current_wal_lsn()::text");
        const replayed = `SELECT (pg_last_wal_replay_lsn() >= '${lsn}'::pg_lsn)::text`;
        await eventually(async () => (await askServer(second.url, replayed)) === "true");
      },
      /** Starts another node. @returns functions that read and add customers through this node */
      async restarted() {
        const other = await testApp(env);
        return readShop(other, { ...added, get: getOf(other, added) });
      },
      countBranches: () => askServer(env.SDS_DATABASE_URL, "SELECT count(*)::text FROM former_branches"),
      loseStandby: () => second.stop("SIGKILL"),
      /** Kills the primary, and moves the address to the promoted standby. */
      async failOver() {
        await first.stop("SIGKILL");
        await second.start();
        await askServer(second.url, "SELECT pg_promote()");
        proxy.target = portOf(second.url);
      },
    };
  }

  test("that lost commits, readers of these are told to begin anew, and others go on", async () => {
    const { app, reader, restarted, inSync, loseStandby, failOver } = await replicated();
    await reader.add(1, 2, 3);
    const kept = await reader.get("");
    await inSync();
    await loseStandby();
    await reader.add(4, 5);
    const lost = await reader.get("");
    expect(lost.gids).toEqual(gidsOf(1, 2, 3, 4, 5));
    await failOver();

    // Before the new primary's first commit, the lost change numbers do not exist.
    expect(await reader.since(lost.checkpoint)).toEqual(restored);
    expect(await reader.since(lost.checkpoint)).toEqual(restored);
    expect(app.logged.filter((line) => line.includes("failover"))).toEqual([
      expect.stringContaining("a reader has changes that the database lost in a restore or a failover"),
    ]);
    expect(await reader.since(kept.checkpoint)).toMatchObject({ status: 200, gids: [] });
    // Then the new primary gives these numbers to other changes.
    await reader.add(6, 7);
    const later = await reader.get("");
    expect(later.gids).toEqual(gidsOf(1, 2, 3, 6, 7));
    expect(await reader.get("", { "If-None-Match": lost.etag ?? "" })).toMatchObject({ status: 200 });
    await reader.add(8);
    for (const { since } of [reader, await restarted()]) {
      expect(await since(lost.checkpoint)).toEqual(restored);
      expect(await since(kept.checkpoint)).toMatchObject({ status: 200, gids: gidsOf(6, 7, 8) });
      expect(await since(later.checkpoint)).toMatchObject({ status: 200, gids: gidsOf(8) });
    }
  });

  test("that lost nothing, all readers go on", async () => {
    const { reader, inSync, failOver, countBranches } = await replicated();
    await reader.add(1, 2);
    const early = await reader.get("limit=1");
    await reader.add(3, 4);
    const all = await reader.get("");
    await inSync();
    expect(await countBranches()).toBe("0");
    await failOver();
    expect(await reader.since(all.checkpoint)).toMatchObject({ status: 200, gids: [] });
    await reader.add(5);
    await reader.add(6);
    expect(await countBranches()).toBe("1");
    expect(await reader.since(all.checkpoint)).toMatchObject({ status: 200, gids: gidsOf(5, 6) });
    expect(await reader.since(early.checkpoint)).toMatchObject({ status: 200, gids: gidsOf(3, 4, 5, 6) });
    const { checkpoint } = await reader.get("");
    expect(await reader.since(checkpoint)).toMatchObject({ status: 200, gids: [] });
  });
});

describe.skipIf(!hasPostgres())("in a database that the server's tools made from another one", () => {
  test("readers go on as far as the database has their changes", async () => {
    const url = await emptyDatabase();
    const env = { SDS_DATABASE_URL: url, SDS_MASTER_KEY_FILE: join(temporaryFolder(), "master.key") };
    const app = await testApp(env);
    const added = await app.addShop();
    const before = await readShop(app, added);
    await before.add(1, 2);
    const kept = await before.get("");
    await app.app.stop();
    const copy = await emptyDatabase(url);
    const again = await testApp(env);
    const old = await readShop(again, { ...added, get: getOf(again, added) });
    await old.add(3, 4);
    const lost = await old.get("");
    await again.app.stop();

    // The copy is another database with the same rows, as after pg_upgrade or after a restore of a backup.
    const moved = await testApp({ ...env, SDS_DATABASE_URL: copy });
    const reader = await readShop(moved, { ...added, get: getOf(moved, added) });
    expect(await reader.since(kept.checkpoint)).toMatchObject({ status: 200, gids: [] });
    expect(await reader.since(lost.checkpoint)).toEqual(restored);
    await reader.add(5, 6, 7);
    expect(await reader.since(kept.checkpoint)).toMatchObject({ status: 200, gids: gidsOf(5, 6, 7) });
    expect(await reader.since(lost.checkpoint)).toEqual(restored);
    const { value } =
      (await openDatabase(copy).get<{ value: string }>("SELECT value FROM meta WHERE name = 'epoch'")) ?? {};
    expect(value).toBe(Buffer.from(again.app.store.epoch).toString("hex"));
  });
});

/** Returns a function that uses the shop's key to send GET requests to `app`. */
function getOf(app: TestApp, { key }: TestShop): TestShop["get"] {
  return (path, headers = {}) => app.request(path, { headers: { Authorization: `Bearer ${key}`, ...headers } });
}

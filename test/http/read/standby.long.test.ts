import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { moveShop } from "../../../src/store/copy/move-shop.ts";
import type { ShopMoves } from "../../../src/store/port/shop-moves.ts";
import { request, withMoves } from "../../conformance/moving-shops.ts";
import { apply, temporaryFolder, testApp } from "../../support/app.ts";
import { afterTest } from "../../support/cleanup.ts";
import { eventually } from "../../support/eventually.ts";
import { startFaultyProxy } from "../../support/faulty-proxy.ts";
import { hasPgBouncer, startPgBouncer } from "../../support/pgbouncer.ts";
import { withPort } from "../../support/postgres-connections.ts";
import { askServer, type PostgresProcess, startPostgres } from "../../support/postgres-process.ts";
import { emptyDatabase, hasPostgres } from "../../support/postgres-server.ts";
import { customer } from "../../support/records.ts";

const portOf = (url: string) => Number(new URL(url).port);

interface PageBody {
  data?: { id: string }[];
  page?: { nextCursor: string };
}

/** A server and its standby, for all tests of this file. */
interface Servers {
  primary: PostgresProcess;
  standby: PostgresProcess;
}

async function startServers(): Promise<Servers> {
  const primary = await startPostgres({ max_connections: 60 });
  await primary.stop();
  const standby = await startPostgres({ max_connections: 60 }, primary);
  await primary.start();
  return { primary, standby };
}

/**
 * A program with a database of its own, which reads from the standby. Both servers are behind proxies that count round
 * trips.
 */
async function readingApp({ primary, standby }: Servers, { isPooled = false } = {}) {
  const database = `reads_${crypto.randomUUID().slice(0, 8)}`;
  await askServer(primary.url, `CREATE DATABASE ${database}`);
  afterTest(() => askServer(standby.url, "SELECT pg_wal_replay_resume()"));
  const at = (url: string, port: number) => Object.assign(new URL(withPort(url, port)), { pathname: database }).href;
  const toPrimary = await startFaultyProxy(portOf(primary.url));
  const toStandby = await startFaultyProxy(portOf(standby.url));
  const masterKeyFile = join(temporaryFolder(), "master.key");
  const env = { SDS_DATABASE_URL: at(primary.url, toPrimary.port), SDS_MASTER_KEY_FILE: masterKeyFile };
  const plain = await testApp(env);
  const added = await plain.addShop();
  const add = (...numbers: number[]) =>
    apply(
      plain.app,
      added.shop,
      numbers.map((n) => customer(n)),
      plain.clock.now(),
    );
  await add(1, 2, 3);
  /** Waits until the standby has replayed all commits. */
  async function inSync(): Promise<void> {
    const lsn = await askServer(primary.url, "SELECT pg_current_wal_lsn()::text");
    const replayed = `SELECT (pg_last_wal_replay_lsn() >= '${lsn}'::pg_lsn)::text`;
    await eventually(async () => (await askServer(standby.url, replayed)) === "true");
  }
  await inSync();
  const direct = at(standby.url, toStandby.port);
  const readUrl = isPooled ? await startPgBouncer(direct, { pool_mode: "transaction" }) : direct;
  const reading = await testApp({ ...env, SDS_DATABASE_READ_URL: readUrl });

  /** Gets a page of this shop. Also tells whether the standby was asked. */
  async function get(path: string, app = reading) {
    const before = toStandby.trips;
    const response = await app.request(`/api/v1/${path}`, { headers: { Authorization: `Bearer ${added.key}` } });
    const { status, headers } = response;
    const page = { status, etag: headers.get("etag"), body: (await response.json()) as PageBody };
    return { page, checkpoint: headers.get("x-checkpoint") ?? "", isOfStandby: toStandby.trips > before };
  }

  let asked = 0;
  /** Reads all rows. Each call uses a new path, so that no cached answer is used. */
  async function rows() {
    asked += 1;
    const { page, isOfStandby } = await get(`customers?time=${asked}`);
    return { rows: page.body.data?.length, isOfStandby };
  }
  return { ...{ standby, plain, reading, added, add, inSync, get, rows } };
}

describe.skipIf(!hasPostgres())("reads from a standby of PostgreSQL", () => {
  let servers: Servers;
  beforeAll(async () => {
    servers = await startServers();
  });
  afterAll(() => Promise.all([servers.primary.stop("SIGKILL"), servers.standby.stop("SIGKILL")]));

  test("answer as the primary does", () => answersAsPrimary({ isPooled: false }));

  test.skipIf(!hasPgBouncer())("answer as the primary does, also through PgBouncer", () =>
    answersAsPrimary({ isPooled: true }),
  );

  async function answersAsPrimary({ isPooled }: { isPooled: boolean }): Promise<void> {
    const { get, plain } = await readingApp(servers, { isPooled });
    const { page, checkpoint } = await get("customers?limit=2", plain);
    const nextCursor = page.body.page?.nextCursor ?? "";
    const id = page.body.data?.[0]?.id;
    for (const path of [
      "customers",
      `customers?limit=2&cursor=${encodeURIComponent(nextCursor)}`,
      `customers?shopifyId=${encodeURIComponent("gid://shopify/Customer/2")}`,
      `customers?since=${encodeURIComponent(checkpoint)}`,
      "customers?updatedSince=2020-01-01T00:00:00Z",
      `customers/${id}`,
      "orders",
    ]) {
      const found = await get(path);
      expect({ ...found, checkpoint: "" }).toEqual({ ...(await get(path, plain)), checkpoint: "", isOfStandby: true });
      expect(found.page.status).toBe(200);
    }
    // The primary decides that there is no such row.
    expect((await get("customers/cus_aaaaaaaaaaaaaaaaaaaaaaaa")).page.status).toBe(404);
    expect((await get("customers?cursor=2026-01-01T00%3A00%3A00.000Z~cus_aaaaaaaaaaaaaaaaaaaaaaaa")).page.status).toBe(
      400,
    );
  }

  test("show each commit at once, and a revoked key works nowhere", async () => {
    const { get, rows, add, standby, added, plain, reading, inSync } = await readingApp(servers);
    expect(await rows()).toEqual({ rows: 3, isOfStandby: true });
    await askServer(standby.url, "SELECT pg_wal_replay_pause()");
    await add(4);
    expect(await rows()).toEqual({ rows: 4, isOfStandby: true });
    // The standby did not catch up, so the program avoids it for one second.
    reading.clock.ms += 999;
    expect(await rows()).toEqual({ rows: 4, isOfStandby: false });
    await askServer(standby.url, "SELECT pg_wal_replay_resume()");
    await inSync();
    reading.clock.ms += 1;
    expect(await rows()).toEqual({ rows: 4, isOfStandby: true });
    await askServer(standby.url, "SELECT pg_wal_replay_pause()");
    await plain.app.store.keys.revoke(added.shop.id, added.keyId, plain.clock.now());
    expect((await get("customers")).page.status).toBe(401);
  });

  test("wait for a standby that is a little late", async () => {
    const { rows, add, standby, reading, inSync } = await readingApp(servers);
    await askServer(standby.url, "SELECT pg_wal_replay_pause()");
    await add(4);
    // While the program waits, the standby catches up.
    reading.clock.sleep = async () => {
      await askServer(standby.url, "SELECT pg_wal_replay_resume()");
      await inSync();
    };
    expect(await rows()).toEqual({ rows: 4, isOfStandby: true });
    // The standby answered in time, so the program does not avoid it.
    expect(await rows()).toEqual({ rows: 4, isOfStandby: true });
  });

  test("go to the primary while the standby is away, and say so once", async () => {
    const { rows, standby, reading } = await readingApp(servers);
    await standby.stop("SIGKILL");
    for (let n = 0; n < 3; n += 1) expect(await rows()).toMatchObject({ rows: 3 });
    const lines = () => reading.logged.filter((line) => line.includes("standby"));
    expect(lines()).toEqual([expect.stringContaining("cannot read pages from the standby; the primary is asked")]);
    await standby.start();
    reading.clock.ms += 5_000;
    expect(await rows()).toEqual({ rows: 3, isOfStandby: true });
    expect(lines()).toHaveLength(2);
    expect(lines()[1]).toContain("pages are read from the standby again");
  });

  test("show no page of a shop that has arrived before its last rows did", async () => {
    const { plain, reading, inSync, standby } = await readingApp(servers);
    const [source, target] = [await testApp(), plain.app.store];
    const domain = "moving.myshopify.com";
    const { shop, key } = await source.addShop(domain);
    await apply(source.app, shop, [customer(1), customer(2)]);
    let isLast = false;
    const stop: ShopMoves["stop"] = async (...given) => {
      await apply(source.app, shop, [customer(3)]);
      isLast = true;
      return source.app.store.moves.stop(...given);
    };
    const write: ShopMoves["write"] = async (...given) => {
      if (isLast && given[2] === "customers") {
        await inSync();
        await askServer(standby.url, "SELECT pg_wal_replay_pause()");
      }
      return target.moves.write(...given);
    };
    const stores = { source: withMoves(source.app.store, { stop }), target: withMoves(target, { write }) };
    expect(await moveShop(request(stores, { domain }))).toBe(true);
    const response = await reading.request("/api/v1/customers", { headers: { Authorization: `Bearer ${key}` } });
    expect(((await response.json()) as PageBody).data).toHaveLength(3);
  });

  test("do not use a page of another branch", async () => {
    const masterKeyFile = join(temporaryFolder(), "master.key");
    const url = await emptyDatabase();
    const env = { SDS_DATABASE_URL: url, SDS_MASTER_KEY_FILE: masterKeyFile };
    const app = await testApp(env);
    const { shop, key } = await app.addShop();
    await apply(app.app, shop, [customer(1), customer(2)], app.clock.now());
    await app.app.stop();
    // A former primary. It has other rows under the same numbers.
    const former = await emptyDatabase(url);
    await askServer(former, "DELETE FROM customers WHERE json LIKE '%Customer/2%'");
    const reading = await testApp({ ...env, SDS_DATABASE_READ_URL: former });
    const countRows = async (path: string) => {
      const response = await reading.request(path, { headers: { Authorization: `Bearer ${key}` } });
      return ((await response.json()) as PageBody).data?.length;
    };
    expect(await countRows("/api/v1/customers")).toBe(1);
    await askServer(url, "UPDATE shop_changes SET branch = 'later'");
    expect(await countRows("/api/v1/customers")).toBe(2);
  });

  test("are refused from a server that is not a standby of the database", async () => {
    const masterKeyFile = join(temporaryFolder(), "master.key");
    const [url, other] = [await emptyDatabase(), await emptyDatabase()];
    await testApp({ SDS_DATABASE_URL: other, SDS_MASTER_KEY_FILE: masterKeyFile });
    const starting = testApp({
      SDS_DATABASE_URL: url,
      SDS_DATABASE_READ_URL: other,
      SDS_MASTER_KEY_FILE: join(temporaryFolder(), "master.key"),
    });
    expect(starting).rejects.toThrow("of SDS_DATABASE_READ_URL is not a standby of the database");
    await starting.catch(() => undefined);
  });
});

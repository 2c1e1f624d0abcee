import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { importSecret, signBody } from "../../src/client/signature.ts";
import { type App, openApp } from "../../src/compose/app.ts";
import { readConfig } from "../../src/config.ts";
import type { Resolve } from "../../src/delivery/address.ts";
import { randomId } from "../../src/domain/ids.ts";
import { fingerprintOf, generateKey, hashKey } from "../../src/domain/key.ts";
import type { MirrorRecord } from "../../src/domain/records/platform-records.ts";
import type { Plan, Shop } from "../../src/domain/shop.ts";
import { createLog } from "../../src/lib/log.ts";
import { afterTest } from "./cleanup.ts";
import { askApp } from "./described.ts";
import { layEmptyDatabase } from "./empty-database.ts";
import { ownFolder } from "./own-folder.ts";
import { applySearched } from "./searched.ts";

/** The time at which a test's clock starts, unless the test sets another time. */
export const START = Date.parse("2026-03-01T12:00:00.000Z");

/** A folder that the test's end removes. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(ownFolder(), "test-"));
  afterTest(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export function randomBytes(n: number): Uint8Array {
  return crypto.getRandomValues(new Uint8Array(n));
}

/** A clock that only the test moves. `ms` is the wall clock's time. */
class Clock {
  ms = START;
  private steppedMs = 0;
  /** Replaces every wait of the program with a wait of one millisecond. */
  sleep = (): Promise<void> => Bun.sleep(1);
  readonly now = () => this.ms;
  /** The monotonic clock: a step of the wall clock does not move it. */
  readonly monotonic = () => this.ms - this.steppedMs;

  /** Sets the wall clock, as an operator or a time server does. */
  step(byMs: number): void {
    this.ms += byMs;
    this.steppedMs += byMs;
  }
}

export interface TestShop {
  shop: Shop;
  key: string;
  keyId: string;
  /** GETs with the shop's key. */
  get(path: string, headers?: Record<string, string>): Promise<Response>;
  /** All rows of a resource, page by page. */
  all(resource: string, limit?: number): Promise<Record<string, unknown>[]>;
  /** POSTs to the intake, signed. */
  intake(
    body: unknown,
    options?: { raw?: string | Uint8Array<ArrayBuffer>; headers?: Record<string, string> },
  ): Promise<Response>;
}

export interface TestApp {
  app: App;
  clock: Clock;
  folder: string;
  /** The log, one entry for each line. */
  logged: string[];
  addShop(domain?: string, plan?: Plan): Promise<TestShop>;
  request(path: string, init?: RequestInit): Promise<Response>;
  /**
   * Kills the program and starts it again. On SQLite, it then uses a copy of the database from the time of the kill.
   */
  restart(): Promise<void>;
}

/** The whole program in a fresh folder, with a clock of its own and without a socket. */
export async function testApp(env: Record<string, string> = {}, resolve: Resolve = async () => []): Promise<TestApp> {
  const folder = temporaryFolder();
  const clock = new Clock();
  if (env["SDS_DATABASE_URL"] === undefined) layEmptyDatabase(join(folder, "data"));
  // On PostgreSQL, the program's clock must be near the server's clock.
  else clock.ms = Date.now();
  const logged: string[] = [];
  const log = createLog("debug", { write: (text) => logged.push(text) }, clock.now);
  const open = (data: string) =>
    openApp(readConfig({ port: "0" }, { SDS_DATA: join(data, "data"), ...env }), {
      now: clock.now,
      clock: clock.monotonic,
      random: randomBytes,
      fetch,
      resolve,
      sleep: () => clock.sleep(),
      log,
    });
  const test: TestApp = { app: await open(folder), clock, folder, logged, addShop, request, restart };
  afterTest(() => test.app.stop());

  function request(path: string, init?: RequestInit): Promise<Response> {
    return askApp(test.app, path, init);
  }

  async function restart(): Promise<void> {
    const killed = test.folder;
    test.folder = temporaryFolder();
    // The index of the write-ahead log belongs to the killed process.
    cpSync(killed, test.folder, { recursive: true, filter: (path) => !path.endsWith("-shm") });
    await test.app.stop();
    test.app = await open(test.folder);
    rmSync(killed, { recursive: true });
  }

  async function addShop(domain = "alpha.myshopify.com", plan: Plan = "pro"): Promise<TestShop> {
    const { store } = test.app;
    const shop = await store.shops.add({ domain, plan, currency: "USD" }, clock.now());
    const key = generateKey(randomBytes);
    const keyId = randomId("key_", randomBytes);
    const entry = {
      id: keyId,
      label: "Test",
      fingerprint: fingerprintOf(key),
      createdAt: clock.now(),
      lastUsedAt: null,
      legacy: false,
      createdBy: null,
    };
    await store.keys.add(shop.id, entry, hashKey(key));
    const get = (path: string, headers: Record<string, string> = {}) =>
      request(path, { headers: { Authorization: `Bearer ${key}`, ...headers } });

    async function all(resource: string, limit = 250): Promise<Record<string, unknown>[]> {
      const rows: Record<string, unknown>[] = [];
      let query = `limit=${limit}`;
      while (query !== "") {
        const { data, page } = (await (await get(`/api/v1/${resource}?${query}`)).json()) as PageBody;
        rows.push(...data);
        query = page.nextCursor === null ? "" : `limit=${limit}&cursor=${encodeURIComponent(page.nextCursor)}`;
      }
      return rows;
    }

    async function intake(
      body: unknown,
      { raw, headers = {} }: { raw?: string | Uint8Array<ArrayBuffer>; headers?: Record<string, string> } = {},
    ) {
      const bytes = Uint8Array.from(Buffer.from(raw ?? JSON.stringify(body)));
      const secret = (await test.app.store.shops.intakeSecret(domain))?.secret ?? "";
      const signature = await signBody(await importSecret(secret), bytes);
      return request("/intake", {
        method: "POST",
        body: bytes,
        headers: { "X-Service-Shop": domain, "X-Service-Signature": signature, ...headers },
      });
    }

    return { shop, key, keyId, get, all, intake };
  }

  return test;
}

/** A fresh app with the shop alpha.myshopify.com. */
export async function testShop(env?: Record<string, string>, plan?: Plan): Promise<TestApp & TestShop> {
  const test = await testApp(env);
  return { ...test, ...(await test.addShop(undefined, plan)) };
}

/** Puts records into the mirror directly, without the record writer. */
export async function apply(app: App, shop: Shop, records: MirrorRecord[], now = START): Promise<void> {
  const [applied] = await applySearched(app.store.mirror, [{ shop, records }], now);
  if (applied === undefined || "refused" in applied) throw new Error(`refused: ${JSON.stringify(applied)}`);
}

export interface PageBody {
  data: Record<string, unknown>[];
  page: { limit: number; nextCursor: string | null };
}

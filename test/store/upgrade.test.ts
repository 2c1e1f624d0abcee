import { describe, expect, test } from "bun:test";
import { cpSync, mkdtempSync } from "node:fs";
import { join } from "node:path";
import { type App, openApp } from "../../src/compose/app.ts";
import { readConfig } from "../../src/config.ts";
import { createLog } from "../../src/lib/log.ts";
import { nextTurn } from "../../src/lib/waits.ts";
import { MIGRATIONS } from "../../src/store/sqlite/migrations.ts";
import { randomBytes, temporaryFolder } from "../support/app.ts";
import { afterTest } from "../support/cleanup.ts";
import { expectCountedLog } from "../support/counted-log.ts";
import { askApp } from "../support/described.ts";
import { openStoreIn } from "../support/open-store.ts";
import { ownFolder } from "../support/own-folder.ts";
import { gid, subscription } from "../support/records.ts";
import { expectStoredPages } from "../support/stored-answers.ts";
import { type Answers, readDatabase, storedVersions, unpack } from "../support/stored-database.ts";

const VERSIONS = storedVersions();

interface OldDatabase {
  data: string;
  answers: Answers;
}

async function old(version: number, folder = temporaryFolder()): Promise<OldDatabase> {
  const data = join(folder, "data");
  return { data, answers: await unpack(version, data) };
}

const upgrades = new Map<number, OldDatabase>();

/** Returns a copy of an old database that today's program has upgraded. Each database is upgraded once. */
async function upgraded(version: number): Promise<OldDatabase> {
  let kept = upgrades.get(version);
  if (kept === undefined) {
    kept = await old(version, mkdtempSync(join(ownFolder(), "upgraded-")));
    expect(readDatabase(kept.data).schemaVersion).toBe(version);
    await openAndClose(kept.data);
    upgrades.set(version, kept);
  }
  const data = join(temporaryFolder(), "data");
  cpSync(kept.data, data, { recursive: true });
  return { ...kept, data };
}

/**
 * Opens a data folder with today's program. The clock shows the time at which the database was stored, and the platform
 * is unreachable.
 */
async function open({ data, answers }: OldDatabase): Promise<App> {
  const secretFile = join(temporaryFolder(), "secret");
  await Bun.write(secretFile, answers.platformSecret);
  const now = () => Date.parse(answers.storedAt);
  const env = { SDS_PLATFORM_URL: "http://127.0.0.1:9/{shop}", SDS_PLATFORM_SECRET_FILE: secretFile };
  const log = createLog("error", { write: () => true }, now);
  const app = await openApp(readConfig({ data, port: "0" }, env), {
    now,
    clock: now,
    random: randomBytes,
    fetch,
    resolve: async () => [],
    sleep: nextTurn,
    log,
  });
  afterTest(() => app.stop());
  return app;
}

async function get(app: App, path: string, headers: Record<string, string>): Promise<{ status: number; body: string }> {
  const response = await askApp(app, path, { headers });
  return { status: response.status, body: await response.text() };
}

async function openAndClose(data: string): Promise<ReturnType<typeof readDatabase>> {
  const store = await openStoreIn(data);
  await store.close();
  return readDatabase(data);
}

test("every schema before today's, from the fourth on, has a stored database", async () => {
  const { schemaVersion: today } = await openAndClose(join(temporaryFolder(), "data"));
  expect(today).toBe(MIGRATIONS.length);
  const missing = Array.from({ length: today - 4 }, (_, index) => index + 4).filter(
    (version) => !VERSIONS.includes(version),
  );
  expect(missing).toEqual([]);
});

describe.each(VERSIONS)("a database of schema version %d", (version) => {
  test("is upgraded to today's schema when it is opened, and a second opening changes nothing", async () => {
    const { data } = await upgraded(version);
    const { schemaVersion, content } = readDatabase(data);
    expect(schemaVersion).toBe(MIGRATIONS.length);
    expect((await openAndClose(data)).content.equals(content)).toBeTrue();
  });

  test("serves the bytes that it served before, page by page, for each key", async () => {
    const database = await upgraded(version);
    await expectStoredPages(await open(database), database.answers);
  });

  test("has the attempts of its log counted, and finds its deliveries by contract", async () => {
    await expectCountedLog((await open(await upgraded(version))).store);
  });

  test("keeps a session of the settings page, and a sign-in link works once", async () => {
    const database = await upgraded(version);
    const { sessionCookie, signInPath, shops } = database.answers;
    const app = await open(database);
    const page = await get(app, "/admin/keys", { Cookie: sessionCookie });
    expect(page.status).toBe(200);
    expect(page.body).toContain(shops[0]?.domain ?? "");
    const body = new URLSearchParams(signInPath.split("?")[1]);
    const signIn = async () =>
      (await app.handle(new Request("http://sds.test/admin/sign-in", { method: "POST", body }))).headers.get(
        "set-cookie",
      );
    expect(await signIn()).toStartWith("sds_session=");
    expect(await signIn()).toBeNull();
  });

  test("still recognises earlier rewards, cancellation flows and platform webhooks", async () => {
    const database = await upgraded(version);
    const { taken, shops } = database.answers;
    const app = await open(database);
    const state = async () => {
      const found = await Promise.all(shops.map(({ domain }) => app.store.shops.find(domain)));
      return Promise.all(
        found.map(async (shop) => [
          await app.store.deliveries.list(shop?.id ?? 0, { limit: 1_000 }),
          await app.store.inbox.list(shop?.id ?? 0, { limit: 1_000 }),
        ]),
      );
    };
    const counts = async () => (await state()).map((lists) => lists.map((list) => list.length));
    const before = await counts();
    for (const { path, headers, body } of taken) {
      const response = await askApp(app, path, { method: "POST", headers, body });
      expect(response.status).toBe(path === "/intake" ? 202 : 200);
    }
    expect(taken.length).toBeGreaterThan(5);
    expect(await counts()).toEqual(before);
    await expectStoredPages(app, database.answers);
  });

  test("takes new records, and serves them after it is opened once more", async () => {
    const database = await old(version);
    const [shop] = database.answers.shops;
    const body = JSON.stringify([
      subscription(7_000, { customer: gid.customer(1) }),
      { type: "customer", shopifyId: gid.customer(1), email: "new@example.com" },
    ]);
    const signature = new Bun.CryptoHasher("sha256", shop?.intakeSecret).update(body).digest("hex");
    const headers = { "X-Service-Shop": shop?.domain ?? "", "X-Service-Signature": `sha256=${signature}` };
    const app = await open(database);
    await expectStoredPages(app, database.answers);
    const answer = await askApp(app, "/intake", { method: "POST", headers, body });
    expect({ status: answer.status, body: await answer.text() }).toEqual({ status: 202, body: '{"accepted":2}' });
    await app.stop();

    const again = await open(database);
    const rows = async (resource: string) => {
      const { body } = await get(again, `/api/v1/${resource}?limit=250`, { Authorization: `Bearer ${shop?.key}` });
      return (JSON.parse(body) as { data: { shopifyId: string }[] }).data;
    };
    expect((await rows("subscriptions")).find(({ shopifyId }) => shopifyId === gid.contract(7_000))).toMatchObject({
      status: "ACTIVE",
      cyclesCompleted: 0,
    });
    expect((await rows("customers")).find(({ shopifyId }) => shopifyId === gid.customer(1))).toMatchObject({
      email: "new@example.com",
      subscriptionCount: 2,
    });
  });
});

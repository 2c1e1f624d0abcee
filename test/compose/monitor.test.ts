import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { version } from "../../package.json";
import { receiveFailed, TOKENS } from "../conformance/fixtures.ts";
import { temporaryFolder, testApp } from "../support/app.ts";
import { eventually } from "../support/eventually.ts";
import { emptyDatabase, hasPostgres } from "../support/postgres-server.ts";
import { Receiver } from "../support/receiver.ts";
import { customer, subscription } from "../support/records.ts";
import { promtool, scrape } from "../support/scrape.ts";

const ENGINES = hasPostgres() ? ["sqlite", "postgres"] : ["sqlite"];

async function opened(engine: string) {
  const database =
    engine === "sqlite"
      ? {}
      : { SDS_DATABASE_URL: await emptyDatabase(), SDS_MASTER_KEY_FILE: join(temporaryFolder(), "master.key") };
  return testApp({ SDS_METRICS: "127.0.0.1:0", SDS_EGRESS_ALLOW: "127.0.0.0/8", ...database });
}

async function monitored(engine = "sqlite") {
  const test = await opened(engine);
  const address = await test.app.start();
  const value = async (series: string) => (await scrape(test.app)).value(series);
  return { ...test, address, value };
}

describe.each(ENGINES)("metrics on %s", (engine) => {
  test("show what all shops have in the database", async () => {
    const { app, clock, addShop } = await opened(engine);
    const { shop } = await addShop();
    await app.store.webhooks.set(shop.id, { url: "https://hooks.example.com/", topics: ["subscription.created"] }, 1);
    await app.store.deliveries.queueTest(shop, { topic: "order.charged", data: {} }, clock.now() - 60_000);
    await app.store.connections.connect(shop.id, "token", TOKENS, [], clock.now() - 7_200_000);
    await receiveFailed(app.store, shop, 2);
    app.sender.wake = () => undefined;
    app.processor.wake = () => undefined;
    await app.start();
    const { value, names, text } = await scrape(app);
    const values = Object.fromEntries(
      [
        'sds_deliveries{state="pending"}',
        'sds_deliveries{state="dead"}',
        'sds_inbox{state="failed"}',
        "sds_shops_disconnected",
        "sds_last_backup_timestamp_seconds",
        "sds_platform_points_available",
      ].map((series) => [series, value(series)]),
    );
    expect(values).toEqual({
      'sds_deliveries{state="pending"}': 1,
      'sds_deliveries{state="dead"}': 0,
      'sds_inbox{state="failed"}': 2,
      sds_shops_disconnected: 0,
      sds_last_backup_timestamp_seconds: engine === "sqlite" ? 0 : undefined,
      sds_platform_points_available: undefined,
    });
    expect(value("sds_delivery_oldest_due_seconds")).toBeGreaterThanOrEqual(60);
    expect(value("sds_oldest_reconciliation_seconds")).toBeGreaterThanOrEqual(7_200);
    expect(value("sds_database_bytes")).toBeGreaterThan(0);
    expect(value("sds_wal_bytes") === undefined).toBe(engine === "postgres");
    if (engine === "sqlite") expect(value("sds_disk_free_bytes")).toBeGreaterThan(0);
    expect(names).toContain("sds_platform_points_available");
    expect((await promtool(["check", "metrics"], text)) ?? "").toBe("");
  });

  test("say the build, readiness, and the work that was done", async () => {
    const { app, addShop, value } = await monitored(engine);
    expect(await value(`sds_build_info{version="${version}",engine="${engine}"}`)).toBe(1);
    expect(await value("sds_ready")).toBe(1);
    const receiver = new Receiver();
    const { shop, intake } = await addShop();
    await app.store.webhooks.set(shop.id, { url: receiver.url, topics: ["subscription.created"] }, Date.now());
    expect((await intake([customer(1), subscription(1)])).status).toBe(202);
    await eventually(() => receiver.received.length === 1);
    const delivered = 'sds_delivery_attempts_total{kind="webhook",outcome="delivered"}';
    await eventually(async () => (await value(delivered)) === 1);
    expect(await value('sds_delivery_attempts_total{kind="trigger",outcome="failed"}')).toBe(0);
    expect(await value("sds_delivery_attempt_duration_seconds_count")).toBe(1);
    expect(await value("sds_commits_total")).toBe(1);
    expect(await value("sds_commit_records_total")).toBe(2);
  });
});

test("requests are counted by the pattern of their route", async () => {
  const { address, addShop, value } = await monitored();
  const { key } = await addShop();
  const headers = { Authorization: `Bearer ${key}` };
  const count = (route: string, status: number) =>
    value(`sds_http_requests_total{route="${route}",status="${status}"}`);
  await fetch(`${address}/api/v1/subscriptions/sub_1`, { headers });
  await fetch(`${address}/api/v1/subscriptions/gid%3A%2F%2Fshopify%2FSubscriptionContract%2F1`, { headers });
  await fetch(`${address}/api/v1/subscriptions/gid://shopify/SubscriptionContract/1`, { headers });
  await fetch(`${address}/docs/operating.md`);
  await fetch(`${address}/api/v1/orders`, { method: "POST", headers });
  await fetch(`${address}/admin/deliveries/not.an.id`);
  await fetch(`${address}/../etc/passwd?q=1`);
  await fetch(`${address}/metrics`);
  expect(await count("/api/v1/subscriptions/:row", 404)).toBe(3);
  expect(await count("/docs/*", 200)).toBe(1);
  expect(await count("/api/v1/orders", 405)).toBe(1);
  expect(await count("other", 404)).toBe(3);
  expect(await value('sds_http_request_duration_seconds_count{route="/api/v1/subscriptions/:row"}')).toBe(3);
});

test("failed requests of each route are counted from 0, and other series begin with a request", async () => {
  const { app, address } = await monitored();
  const { text, value } = await scrape(app);
  for (const route of ["/intake", "/api/v1/orders/:row", "/admin/keys/:id/revoke", "/docs/*", "other"])
    for (const status of [500, 503])
      expect(value(`sds_http_requests_total{route="${route}",status="${status}"}`)).toBe(0);
  expect(text).not.toContain('status="200"');
  expect(text.length).toBeLessThan(25_000);
  await fetch(`${address}/healthz`);
  expect((await scrape(app)).text.length - text.length).toBeLessThan(1_500);
});

test("no label names a shop, a path, a host or a person", async () => {
  const { app, address, addShop } = await monitored();
  await addShop("very-private.myshopify.com");
  await fetch(`${address}/storefront/very-private.myshopify.com/widget.css`);
  await fetch(`${address}/very-private`);
  expect((await scrape(app)).text).not.toContain("private");
});

test("the listener answers nothing but GET /metrics", async () => {
  const { app, address } = await monitored();
  const url = app.metricsUrl() ?? "";
  const { status, headers } = await fetch(url);
  expect([status, headers.get("content-type")]).toEqual([200, "text/plain; version=0.0.4; charset=utf-8"]);
  for (const method of ["POST", "PUT", "HEAD", "OPTIONS"]) {
    const refused = await fetch(url, { method });
    expect([method, refused.status, refused.headers.get("allow")]).toEqual([method, 405, "GET"]);
  }
  for (const path of ["/", "/healthz", "/metrics/", "/api/v1/orders"])
    expect((await fetch(new URL(path, url))).status).toBe(404);
  expect((await fetch(`${address}/metrics`)).status).toBe(404);
});

test("a stop says that the program is not ready, and ends the listener", async () => {
  const { app, value } = await monitored();
  let ready: number | undefined;
  app.store.sessions.forgetAddress = async () => {
    ready = await value("sds_ready");
  };
  await app.stop();
  expect(ready).toBe(0);
  expect(await value("sds_ready").catch(() => "closed")).toBe("closed");
});

test("a taken port ends the start, and the message names it", async () => {
  const { app } = await monitored();
  const { port } = new URL(app.metricsUrl() ?? "");
  const second = await testApp({ SDS_METRICS: `127.0.0.1:${port}` });
  expect(await second.app.start().catch(({ message }) => message)).toBe(
    `cannot listen on 127.0.0.1 port ${port}: another program uses the port: stop it, or choose another one with SDS_METRICS`,
  );
});

test("promtool accepts the metrics", async () => {
  const { app } = await monitored();
  expect((await promtool(["check", "metrics"], (await scrape(app)).text)) ?? "").toBe("");
});

import { expect, test } from "bun:test";
import { type TestApp, testApp } from "../support/app.ts";
import { customer } from "../support/records.ts";
import { visit } from "../support/visitor.ts";

async function logging(env: Record<string, string> = { SDS_LOG_REQUESTS: "1" }) {
  const test = await testApp(env);
  return { ...test, address: await test.app.start(), lines: () => linesOf(test) };
}

/** The logged requests, without values that differ from run to run. */
function linesOf({ logged }: TestApp) {
  return logged
    .splice(0)
    .map((line) => JSON.parse(line))
    .filter(({ message }) => message === "request")
    .map(({ time: _time, message: _message, durationMs, ...rest }) => {
      expect(durationMs).toBeGreaterThanOrEqual(0);
      return rest;
    });
}

const SHOP = "alpha.myshopify.com";
const line = (method: string, route: string, status: number, shop?: string) => ({
  level: "info",
  ...{ method, route, status, ...(shop !== undefined && { shop }) },
  requestId: expect.stringMatching(/^[0-9a-f-]{36}$/),
  client: "127.0.0.1",
});

test("each request is one line, with the shop that it proved", async () => {
  const { address, addShop, lines } = await logging();
  const { key } = await addShop();
  const answer = await fetch(`${address}/api/v1/orders?limit=1`, { headers: { Authorization: `Bearer ${key}` } });
  expect(lines()).toEqual([
    { ...line("GET", "/api/v1/orders", 200, SHOP), requestId: answer.headers.get("X-Request-Id") },
  ]);
  await fetch(`${address}/api/v1/orders`, { headers: { Authorization: "Bearer cad_pk_wrong" } });
  await fetch(`${address}/intake`, { method: "POST", headers: { "X-Service-Shop": SHOP }, body: "{}" });
  await fetch(`${address}/storefront/${SHOP}/widget.css`);
  await fetch(`${address}/storefront/other.myshopify.com/widget.css`);
  expect(lines()).toEqual([
    line("GET", "/api/v1/orders", 401),
    line("POST", "/intake", 401),
    line("GET", "/storefront/:row/widget.css", 200, SHOP),
    line("GET", "/storefront/:row/widget.css", 404),
  ]);
});

test("the intake and the settings page say their shop too", async () => {
  const all = await logging();
  const { intake, shop } = await all.addShop();
  await intake([customer(1)]);
  const visitor = await visit(all, shop);
  all.lines();
  await visitor.get("/admin/keys");
  await intake([customer(2)]);
  expect(all.lines()).toMatchObject([
    { route: "/admin/keys", status: 200, shop: SHOP },
    { route: "/intake", status: 202, shop: SHOP },
  ]);
});

test("no line has a query, an agent or the path of an unknown route", async () => {
  const { address, logged } = await logging();
  const headers = { "User-Agent": "secret-agent", Referer: "https://secret.example/" };
  for (const path of ["/secret/path", "/docs?secret=1", "/admin/deliveries/secret.id", "/api/v1/orders/secret?secret"])
    await fetch(`${address}${path}`, { headers });
  expect(logged.filter((text) => text.includes('"request"'))).toHaveLength(4);
  expect(logged.join("")).not.toContain("secret");
});

test("the client is the one that a trusted proxy names, with its whole address", async () => {
  const { address, lines } = await logging();
  const ask = (forwarded: string) => fetch(`${address}/healthz`, { headers: { "X-Forwarded-For": forwarded } });
  for (const forwarded of ["1.2.3.4, 203.0.113.9", "2001:db8:1:2:3:4:5:6", "no address"]) await ask(forwarded);
  expect(lines().map(({ client }) => client)).toEqual(["203.0.113.9", "2001:db8:1:2:3:4:5:6", "127.0.0.1"]);
});

test("nothing is logged without the setting", async () => {
  const { address, lines } = await logging({});
  await fetch(`${address}/healthz`);
  expect(lines()).toEqual([]);
});

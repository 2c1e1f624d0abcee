import { expect, test } from "bun:test";
import { TOKENS } from "../conformance/fixtures.ts";
import { START, type TestApp, testApp } from "../support/app.ts";
import { afterTest } from "../support/cleanup.ts";
import { eventually } from "../support/eventually.ts";

const MINUTE = 60_000;

/** Starts a server that takes posts as a chat program does. The test sets the status of the answers. */
function chat() {
  const posts: { path: string; body: unknown; type: string | null }[] = [];
  const state = { status: 200 };
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: async (request) => {
      const path = new URL(request.url).pathname;
      posts.push({ path, body: await request.json(), type: request.headers.get("content-type") });
      return new Response("ok", { status: state.status });
    },
  });
  afterTest(() => server.stop(true));
  return { posts, state, url: `http://127.0.0.1:${server.port}/services/hush` };
}

async function brokenShop(url: string): Promise<TestApp> {
  const program = await testApp({ SDS_ALERT_URL: url, SDS_EGRESS_ALLOW: "127.0.0.1/32" });
  const { shop } = await program.addShop();
  const { connections } = program.app.store;
  await connections.connect(shop.id, "token", TOKENS, [], START);
  await connections.setTrouble(shop.id, "it was revoked", START);
  return program;
}

test("the operator gets a post of each alert and of its end, as chat programs take it", async () => {
  const { posts, url } = chat();
  const { app } = await brokenShop(url);
  app.teller.wake();
  await eventually(() => posts.length === 1);
  expect(posts[0]).toEqual({
    path: "/services/hush",
    type: "application/json",
    body: {
      text:
        "alpha.myshopify.com: the platform refuses the connection, since 2026-03-01 12:00 UTC: it was revoked\n" +
        "http://127.0.0.1:0/admin/data",
    },
  });
  const [shop] = await app.store.shops.list();
  await app.store.connections.setTrouble(shop?.id ?? 0, null, START);
  app.teller.wake();
  await eventually(() => posts.length === 2);
  const text = "alpha.myshopify.com: the platform accepts the connection again\nhttp://127.0.0.1:0/admin/data";
  expect(posts[1]?.body).toEqual({ text });
});

test("a post that fails is repeated after a minute and after a kill, and its address is in no log", async () => {
  const { posts, state, url } = chat();
  state.status = 500;
  const program = await brokenShop(url);
  const isLogged = (text: string) => program.logged.some((line) => line.includes(text));
  program.app.teller.wake();
  await eventually(() => isLogged("an alert's post failed, and is repeated"));
  program.app.teller.wake();
  await program.restart();
  program.app.teller.wake();
  expect(posts).toHaveLength(1);
  state.status = 200;
  program.clock.ms += MINUTE;
  program.app.teller.wake();
  await eventually(() => posts.length === 2);
  program.clock.ms += MINUTE * 10;
  program.app.teller.wake();
  await program.app.stop();
  expect(posts).toHaveLength(2);
  expect(isLogged("hush")).toBeFalse();
});

test("a post that fails for a day is given up", async () => {
  const { state, url } = chat();
  state.status = 500;
  const program = await brokenShop(url);
  const isLogged = (text: string) => program.logged.some((line) => line.includes(text));
  program.app.teller.wake();
  await eventually(() => isLogged("an alert's post failed, and is repeated"));
  program.clock.ms += 24 * 60 * MINUTE;
  program.app.teller.wake();
  await eventually(() => isLogged("an alert's post was given up"));
  expect(await program.app.store.alerts.claimNotice(program.clock.ms * 2, () => 0)).toBeUndefined();
});

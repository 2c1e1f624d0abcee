import { expect, test } from "bun:test";
import { createSignInLink } from "../../src/cli/admin.ts";
import { randomBytes, START, testApp } from "../support/app.ts";
import { cookieOf, pressSignIn } from "../support/visitor.ts";

async function opened() {
  const all = await testApp();
  const { store } = all.app;
  const { shop } = await all.addShop();
  const create = (publicUrl: string | null = null, configuredUrl = "http://127.0.0.1:8080") =>
    createSignInLink({ store, random: randomBytes }, { shop, publicUrl, configuredUrl }, all.clock.now());
  return { all, store, shop, create };
}

test("a sign-in link opens the shop's settings page once, before it expires", async () => {
  const { all, shop, create } = await opened();
  const { url, expiresAt } = await create();
  expect(expiresAt).toBe(START + 10 * 60_000);
  const open = (link: string) => pressSignIn(all, link.replace("http://127.0.0.1:8080", ""));
  const cookie = cookieOf(await open(url));
  expect(await (await all.request("/admin/keys", { headers: { Cookie: cookie } })).text()).toContain(shop.domain);
  expect((await open(url)).status).toBe(401);

  const late = await create();
  all.clock.ms = late.expiresAt;
  expect((await open(late.url)).status).toBe(401);
});

test("a sign-in link begins with the public URL, else with the address of a running serve, else with the configured one", async () => {
  const { store, create } = await opened();
  const originOf = async (...args: Parameters<typeof create>) => new URL((await create(...args)).url).origin;
  expect(await originOf()).toBe("http://127.0.0.1:8080");
  await store.sessions.noteAddress("http://127.0.0.1:9999");
  expect(await originOf()).toBe("http://127.0.0.1:9999");
  expect(await originOf("https://sds.example.com")).toBe("https://sds.example.com");
});

test.each([
  ["http://0.0.0.0:8080", "http://127.0.0.1:8080"],
  ["http://[::]:8080", "http://[::1]:8080"],
  ["http://192.0.2.7:8080", "http://192.0.2.7:8080"],
])("a server on %s is opened at %s", async (configured, origin) => {
  const { create } = await opened();
  expect((await create(null, configured)).url).toStartWith(`${origin}/admin/sign-in?token=`);
});

import { expect, test } from "bun:test";
import { hashToken, LINK_LIFE_MS, newToken } from "../../src/actions/session.ts";
import { removeShop } from "../conformance/fixtures.ts";
import { randomBytes, START, testApp, testShop } from "../support/app.ts";
import { signedIn } from "../support/signed-in.ts";
import { cookieOf, pressSignIn, signInPath, visit } from "../support/visitor.ts";

test("a form whose body arrives after the session has ended changes nothing, not even in a new shop of the same name", async () => {
  const { all, shop, store, ...visitor } = await signedIn();
  const { promise: rest, resolve: go } = Promise.withResolvers<void>();
  const late = (path: string, text: string) => {
    const body = new ReadableStream({
      async start(controller) {
        controller.enqueue(Buffer.from(text.slice(0, 10)));
        await rest;
        controller.enqueue(Buffer.from(text.slice(10)));
        controller.close();
      },
    });
    const headers = { Cookie: visitor.cookie, "Content-Type": "application/x-www-form-urlencoded" };
    return all.request(path, { method: "POST", headers, body });
  };
  const token = encodeURIComponent(visitor.csrf);
  const answers = [
    late("/admin/keys", `csrf=${token}&label=Late`),
    late("/admin/triggers", `csrf=${token}&triggers=subscription-created`),
  ];
  await store.sessions.endAll(shop.id, START);
  await removeShop(store, shop.domain);
  const { shop: next } = await all.addShop();
  go();
  expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([401, 401]);
  expect((await store.keys.list(next.id)).map(({ label }) => label)).toEqual(["Test"]);
  expect((await store.shops.settings(next.id)).triggers).toEqual([]);
});

test("a form that creates something is accepted once", async () => {
  const { store, shop, ...visitor } = await signedIn();
  const once = /id="create-key".*?name="once" value="([^"]+)"/s.exec(await visitor.html("/admin/keys"))?.[1] ?? "";
  expect((await visitor.post("/admin/keys", { label: "One", once })).status).toBe(303);
  const again = await visitor.post("/admin/keys", { label: "One", once });
  expect([again.status, (await again.text()).includes("posted first")]).toEqual([403, true]);
  expect((await store.keys.list(shop.id)).filter(({ label }) => label === "One")).toHaveLength(1);
  const rotation = /name="once" value="([^"]+)"/.exec(await visitor.html("/admin/webhooks/rotate"))?.[1] ?? "";
  expect([
    (await visitor.post("/admin/webhooks/rotate", { once: rotation })).status,
    (await visitor.post("/admin/webhooks/rotate", { once: rotation })).status,
  ]).toEqual([303, 403]);
});

test("a request with two different session cookies is not signed in", async () => {
  const visitor = await signedIn();
  const planted = visitor.cookie.replace(/=.*/, `=${newToken(randomBytes)}`);
  for (const cookie of [
    `${planted}; ${visitor.cookie}`,
    `${visitor.cookie}; ${planted}`,
    `${visitor.cookie.replace(/=.*/, "=x")}; ${visitor.cookie}`,
  ]) {
    expect((await visitor.get("/admin/keys", { Cookie: cookie })).status).toBe(401);
  }
});

test("signing in again ends the earlier session of the same browser", async () => {
  const { all, cookie, get, shop } = await signedIn();
  const next = cookieOf(await pressSignIn(all, await signInPath(all, shop), { headers: { Cookie: cookie } }));
  expect((await get("/admin/keys")).status).toBe(401);
  expect((await get("/admin/keys", { Cookie: next })).status).toBe(200);
});

test("wrong sign-in links that arrive together are all counted, and a network of IPv6 counts as one address", async () => {
  const all = await testApp();
  const wrong = (forwarded: string) =>
    pressSignIn(all, `/admin/sign-in?token=${newToken(randomBytes)}`, { headers: { "X-Forwarded-For": forwarded } });
  const limited = async (addresses: string[]) =>
    (await Promise.all(addresses.map(wrong))).filter(({ status }) => status === 429).length;
  expect(await limited(Array.from({ length: 8 }, () => "192.0.2.7"))).toBe(3);
  expect(await limited(Array.from({ length: 8 }, (_, n) => `2001:db8:0:0:${n}::1`))).toBe(3);
  expect(await limited(Array.from({ length: 8 }, (_, n) => `nonsense ${n}`))).toBe(3);
  expect(all.logged.filter((line) => line.includes("sign-in link") && line.includes("192.0.2.7"))).toHaveLength(8);
});

test("an odd Host header and bytes that are not UTF-8 are refused without an error 500", async () => {
  const { all, store, shop, ...visitor } = await signedIn();
  expect(
    (await all.app.handle(new Request("http://sds.test/admin/sign-in?token=x", { headers: { Host: "[" } }))).status,
  ).toBe(200);
  expect((await all.app.handle(new Request("http://sds.test/admin/keys", { headers: { Host: "[" } }))).status).toBe(
    401,
  );
  const headers = { Cookie: visitor.cookie, "Content-Type": "application/x-www-form-urlencoded" };
  const body = `csrf=${encodeURIComponent(visitor.csrf)}&label=%FF%FE`;
  expect((await all.request("/admin/keys", { method: "POST", headers, body })).status).toBe(400);
  expect((await visitor.post("/admin/keys", { label: "\u200b" })).status).toBe(422);
  expect(await store.keys.list(shop.id)).toHaveLength(1);
});

test("each of two sign-in links works once, however they are opened", async () => {
  const all = await testShop();
  const { app, shop } = all;
  const tokens = [newToken(randomBytes), newToken(randomBytes)];
  for (const token of tokens) await app.store.sessions.addLink(shop.id, hashToken(token), START + LINK_LIFE_MS);
  const answers = await Promise.all(
    tokens.flatMap((token) => [token, token, token]).map((token) => pressSignIn(all, `/admin/sign-in?token=${token}`)),
  );
  expect(answers.filter(({ status }) => status === 303)).toHaveLength(2);
});

test("a shop that posts hundreds of forms at once has to wait, so its audit list grows slowly; another shop does not", async () => {
  const { all, shop, store, ...visitor } = await signedIn();
  const { shop: other } = await all.addShop("beta.myshopify.com");
  const next = await visit(all, other);
  const posts = Array.from({ length: 310 }, () => visitor.post("/admin/webhooks/secret"));
  const answers = await Promise.all(posts);
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(300);
  const refused = answers.find(({ status }) => status === 429);
  expect(refused?.headers.get("retry-after")).toBe("1");
  expect(await refused?.text()).toContain("so this one was refused");
  expect(await store.audit.list(shop.id, { action: "secret.shown" }, {}, 1_000)).toHaveLength(300);
  // Viewing a person's row adds an audit entry too, so it is limited as well.
  expect((await visitor.get("/admin/data/browse/cus_x")).status).toBe(429);
  expect((await visitor.get("/admin/data/browse")).status).toBe(200);
  expect((await next.post("/admin/webhooks/secret")).status).toBe(200);
  all.clock.ms += 1_000;
  expect((await visitor.post("/admin/webhooks/secret")).status).toBe(200);
  expect((await visitor.post("/admin/webhooks/secret")).status).toBe(429);
});

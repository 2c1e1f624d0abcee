import { describe, expect, test } from "bun:test";
import { SESSION_LIFE_MS } from "../../src/actions/session.ts";
import { TABS } from "../../src/http/admin/admin-request.ts";
import { StoreError } from "../../src/store/port/store-error.ts";
import { removeShop } from "../conformance/fixtures.ts";
import { testApp, testShop } from "../support/app.ts";
import { signedIn } from "../support/signed-in.ts";
import { cookieOf, pressSignIn, signInPath, visit } from "../support/visitor.ts";

const CSP =
  "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
const PAGES = ["/admin", ...Object.keys(TABS).map((path) => `/admin${path}`)];
const NOT_SIGNED_IN = "You are not signed in";
const WRONG = `/admin/sign-in?token=${"A".repeat(43)}`;

describe("a sign-in link", () => {
  test("shows a button, which alone uses the link up and sets the cookie", async () => {
    const all = await testShop();
    const path = await signInPath(all, all.shop);
    for (const headers of [{}, { "Sec-Purpose": "prefetch;prerender" }]) {
      const shown = await all.request(path, { headers });
      expect([shown.status, shown.headers.get("set-cookie")]).toEqual([200, null]);
      expect(await shown.text()).toContain(`name="token" value="${path.split("=")[1]}"`);
    }
    const opened = await pressSignIn(all, path);
    expect([opened.status, opened.headers.get("location")]).toEqual([303, "/admin"]);
    expect(opened.headers.get("set-cookie")).toMatch(
      /^sds_session=[\w-]{43}; HttpOnly; SameSite=Strict; Path=\/admin; Max-Age=2592000$/,
    );
  });

  test("is refused if its form is on another site", async () => {
    const all = await testShop();
    const path = await signInPath(all, all.shop);
    // Sends more refused forms than the limit of wrong tokens allows. Refused forms must not count.
    for (let i = 0; i < 30; i++)
      expect((await pressSignIn(all, path, { headers: { "Sec-Fetch-Site": "cross-site" } })).status).toBe(401);
    expect((await pressSignIn(all, path, { headers: { "Sec-Fetch-Site": "same-origin" } })).status).toBe(303);
  });

  test("works once", async () => {
    const all = await testShop();
    const path = await signInPath(all, all.shop);
    const [first, second] = await Promise.all([pressSignIn(all, path), pressSignIn(all, path)]);
    expect([first.status, second.status].sort()).toEqual([303, 401]);
    expect((await pressSignIn(all, path)).headers.get("set-cookie")).toBeNull();
  });

  test("works for ten minutes and no longer", async () => {
    const all = await testShop();
    const [early, late] = [await signInPath(all, all.shop), await signInPath(all, all.shop)];
    all.clock.ms += 10 * 60_000 - 1;
    expect((await pressSignIn(all, early)).status).toBe(303);
    all.clock.ms += 1;
    const refused = await pressSignIn(all, late);
    expect(refused.status).toBe(401);
    expect(await refused.text()).toContain("A link works once, within ten");
  });

  test.each([
    "",
    "?token=",
    "?token=short",
    `?token=${"A".repeat(43)}`,
    `?token=${"A".repeat(44)}`,
    "?token=%00",
    "?other=1",
  ])("with %p is refused", async (query) => {
    const refused = await pressSignIn(await testApp(), `/admin/sign-in${query}`);
    expect({ status: refused.status, cookie: refused.headers.get("set-cookie") }).toEqual({
      status: 401,
      cookie: null,
    });
  });

  test("is stored only as a hash, and so is the session", async () => {
    const all = await testShop();
    const path = await signInPath(all, all.shop);
    const cookie = cookieOf(await pressSignIn(all, path));
    await all.app.store.checkpoint();
    const database = Buffer.from(await Bun.file(`${all.folder}/data/sds.db`).bytes()).toString("latin1");
    expect(database).not.toContain(path.split("=")[1] ?? "?");
    expect(database).not.toContain(cookie.split("=")[1] ?? "?");
  });
});

describe("the cookie is Secure", () => {
  const rows: [string, Record<string, string>, Record<string, string>, boolean][] = [
    ["not over http", {}, {}, false],
    ["behind a proxy on this machine that reports https", {}, { "X-Forwarded-Proto": "https" }, true],
    ["not behind a proxy on this machine that reports http", {}, { "X-Forwarded-Proto": "http" }, false],
    ["if the public URL is https", { SDS_PUBLIC_URL: "https://sds.example.com" }, {}, true],
    ["not if the public URL is http", { SDS_PUBLIC_URL: "http://sds.example.com" }, {}, false],
  ];
  test.each(rows)("%s", async (_name, env, headers, secure) => {
    const all = await testShop(env);
    const opened = await pressSignIn(all, await signInPath(all, all.shop), { headers });
    expect(opened.headers.get("set-cookie")?.endsWith("; Secure")).toBe(secure);
  });
});

describe("wrong sign-in links", () => {
  test("are answered with 429 after five in a minute, like a right link, until the minute is over", async () => {
    const all = await testShop();
    for (let attempt = 0; attempt < 5; attempt += 1) {
      expect((await pressSignIn(all, WRONG)).status).toBe(401);
      all.clock.ms += 1_000;
    }
    const good = await signInPath(all, all.shop);
    const refused = await pressSignIn(all, good);
    expect({ status: refused.status, retryAfter: refused.headers.get("retry-after") }).toEqual({
      status: 429,
      retryAfter: "55",
    });
    all.clock.ms += 55_000;
    expect((await pressSignIn(all, good)).status).toBe(303);
  });

  test("are not counted while the database is locked, because they cannot be checked", async () => {
    const all = await testShop();
    const good = await signInPath(all, all.shop);
    const { begin } = all.app.store.sessions;
    all.app.store.sessions.begin = () => Promise.reject(new StoreError("busy", new Error("database is locked")));
    for (let attempt = 0; attempt < 5; attempt += 1) expect((await pressSignIn(all, good)).status).toBe(503);
    all.app.store.sessions.begin = begin;
    expect((await pressSignIn(all, good)).status).toBe(303);
  });

  test("are counted by the address that the proxy saw, whatever a client adds", async () => {
    const all = await testApp();
    const from = (address: string) => pressSignIn(all, WRONG, { headers: { "X-Forwarded-For": address } });
    for (let attempt = 0; attempt < 5; attempt += 1) await from(`203.0.113.${attempt}, 198.51.100.1`);
    expect((await from("203.0.113.9, 198.51.100.1")).status).toBe(429);
    expect((await from("198.51.100.1, 203.0.113.9")).status).toBe(401);
  });
});

describe("without a session", () => {
  test.each(PAGES)("%s says how to sign in", async (path) => {
    const { request } = await testApp();
    const refused = await request(path);
    const text = await refused.text();
    expect(refused.status).toBe(401);
    expect(text).toContain(NOT_SIGNED_IN);
    expect(text).toContain("A link works once, within ten");
    expect(refused.headers.get("content-security-policy")).toBe(CSP);
  });

  test.each([
    "/admin/keys",
    "/admin/webhooks",
    "/admin/webhooks/secret",
    "/admin/deliveries/whd_a/retry",
    "/admin/sign-out",
  ])("POST %s does nothing", async (path) => {
    const { request } = await testApp();
    expect((await request(path, { method: "POST", body: new URLSearchParams({ csrf: "x" }) })).status).toBe(401);
  });

  test.each(["x", "A".repeat(43), ""])("the cookie %p opens nothing", async (token) => {
    const { request } = await testApp();
    expect((await request("/admin/keys", { headers: { Cookie: `sds_session=${token}` } })).status).toBe(401);
  });
});

describe("a session", () => {
  test("lasts twelve hours without a view", async () => {
    const { all, get } = await signedIn();
    all.clock.ms += SESSION_LIFE_MS;
    expect((await get("/admin/keys")).status).toBe(401);
  });

  test("lives on while it is used, thirty days at most", async () => {
    const { all, get } = await signedIn();
    const begunAt = all.clock.ms;
    while ((await get("/admin/keys")).status === 200) all.clock.ms += SESSION_LIFE_MS - 60_000;
    const days = (all.clock.ms - begunAt) / 86_400_000;
    expect(days).toBeWithin(30, 30.5);
  });

  test("ends by signing out, and its forms are refused then", async () => {
    const { all, get, post, shop } = await signedIn();
    const out = await post("/admin/sign-out");
    expect({ status: out.status, cookie: out.headers.get("set-cookie") }).toEqual({
      status: 200,
      cookie: "sds_session=; HttpOnly; SameSite=Strict; Path=/admin; Max-Age=0",
    });
    expect((await get("/admin/keys")).status).toBe(401);
    expect((await post("/admin/keys", { label: "Late" })).status).toBe(401);
    expect((await all.app.store.keys.list(shop.id)).map(({ label }) => label)).toEqual(["Test"]);
  });

  test("ends with all sessions and unused links of its shop, while another shop's sessions stay", async () => {
    const all = await testApp();
    const [alpha, beta] = [await all.addShop(), await all.addShop("beta.myshopify.com")];
    const [one, two, other] = [await visit(all, alpha.shop), await visit(all, alpha.shop), await visit(all, beta.shop)];
    const unused = await signInPath(all, alpha.shop);
    expect(await all.app.store.sessions.endAll(alpha.shop.id, all.clock.now())).toBe(2);
    for (const { get } of [one, two]) expect((await get("/admin/keys")).status).toBe(401);
    expect((await pressSignIn(all, unused)).status).toBe(401);
    expect((await other.get("/admin/keys")).status).toBe(200);
  });

  test("ends when its shop is removed", async () => {
    const { get, shop, store } = await signedIn();
    await removeShop(store, shop.domain);
    expect((await get("/admin/keys")).status).toBe(401);
  });
});

describe("a form", () => {
  const label = "Forged";
  const rows: [string, Record<string, string>, Record<string, string>, number][] = [
    ["without the token is refused", { csrf: "" }, {}, 403],
    ["with another token is refused", { csrf: "A".repeat(43) }, {}, 403],
    ["on a page of another site is refused", {}, { "Sec-Fetch-Site": "cross-site" }, 403],
    ["on a page of a neighbouring host is refused", {}, { "Sec-Fetch-Site": "same-site" }, 403],
    ["of another origin is refused", {}, { Origin: "https://evil.example", Host: "sds.test" }, 403],
    ["of our origin is accepted", {}, { Origin: "http://sds.test", Host: "sds.test" }, 303],
    ["of our site that hides its origin is accepted", {}, { Origin: "null", "Sec-Fetch-Site": "same-origin" }, 303],
    ["posted as JSON is refused", {}, { "Content-Type": "application/json" }, 400],
    ["posted as text is refused", {}, { "Content-Type": "text/plain" }, 400],
  ];
  test.each(rows)("%s", async (_name, fields, headers, status) => {
    const { post, shop, store } = await signedIn();
    expect((await post("/admin/keys", { label, ...fields }, headers)).status).toBe(status);
    expect((await store.keys.list(shop.id)).some((key) => key.label === label)).toBe(status === 303);
  });

  test("of another session of the same shop is refused", async () => {
    const { all, post, shop } = await signedIn();
    const { csrf } = await visit(all, shop);
    expect((await post("/admin/keys", { label, csrf })).status).toBe(403);
    expect((await post("/admin/sign-out", { csrf })).status).toBe(403);
  });

  test("of more than 1 MiB is refused", async () => {
    const { post } = await signedIn();
    expect((await post("/admin/keys", { label: "x".repeat(1_048_576) })).status).toBe(413);
  });
});

test("every page has the security headers, and no inline script or style", async () => {
  const { get, shop } = await signedIn();
  for (const path of PAGES.slice(1)) {
    const page = await get(path);
    const html = await page.text();
    expect({ path, status: page.status, headers: page.headers.toJSON() }).toMatchObject({
      path,
      status: 200,
      headers: {
        "content-type": "text/html; charset=utf-8",
        "content-security-policy": CSP,
        "cache-control": "no-store",
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
        "x-request-id": expect.stringMatching(/^[0-9a-f-]{36}$/),
      },
    });
    expect(html).not.toMatch(/<style|\sstyle=|\son\w+=|<script(?! src="\/assets\/page\.js)/);
    expect(html).toContain(shop.domain);
  }
});

test("browsers keep styles and scripts until their version changes", async () => {
  const { request } = await testApp();
  const html = await (await request("/admin")).text();
  const links = [...html.matchAll(/(?:href|src)="(\/assets\/page\.(?:css|js)\?v=\w+)"/g)].map(
    (match) => match[1] ?? "",
  );
  expect(links.length).toBe(2);
  const script = await (await request(links.find((link) => link.includes(".js")) ?? "")).bytes();
  expect(script.length).toBeWithin(1, 12 * 1024);
  for (const link of links) {
    const file = await request(link);
    expect([file.status, file.headers.get("cache-control"), file.headers.get("content-type")]).toEqual([
      200,
      "public, max-age=31536000, immutable",
      `text/${link.includes(".js") ? "javascript" : "css"}; charset=utf-8`,
    ]);
    const small = await request(link, { headers: { "Accept-Encoding": "gzip" } });
    expect(small.headers.get("content-encoding")).toBe("gzip");
    expect(Buffer.from(Bun.gunzipSync(await small.bytes())).toString()).toBe(await file.text());
    expect((await request(link.replace(/\?.*/, "?v=old"))).headers.get("cache-control")).toBe("no-cache");
  }
});

test("a start whose address cannot be written works, and says so in the log", async () => {
  const { app, logged } = await testApp();
  app.store.sessions.noteAddress = async () => {
    throw new StoreError("busy", new Error("database is locked"));
  };
  const address = await app.start();
  expect((await fetch(`${address}/healthz`)).status).toBe(200);
  expect(logged.filter((line) => line.includes("cannot note the address for sign-in links"))).toHaveLength(1);
});

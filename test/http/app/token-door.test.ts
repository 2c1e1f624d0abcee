import { describe, expect, test } from "bun:test";
import { createTokenDoor } from "../../../src/http/app/token-door.ts";
import { createLog } from "../../../src/lib/log.ts";
import { SECRET } from "../../support/connected.ts";
import { installing, NEW_SHOP } from "../../support/installing.ts";
import { idTokenClaims, signIdToken } from "../../support/platform/id-token.ts";
import { CONTEXT, type Door, expectGuarded, framers, HOST, ORIGIN, opened, responseOf, visitOf } from "./door.ts";

const APP_BRIDGE = '<script src="https://cdn.shopify.com/shopifycloud/app-bridge.js"></script>';

describe("a document", () => {
  test("with an ID token opens its shop", async () => {
    const door = await opened();
    const visit = visitOf(await door.document(door.all.idToken()));
    const frame = { clientId: "client", shop: NEW_SHOP };
    expect(visit).toMatchObject({ shop: { domain: NEW_SHOP }, who: "staff 42", root: "/app", frame });
    expect(visit.key).toHaveLength(32);
    expect(door.all.platform.exchanges).toBe(1);
  });

  test.each([
    ["without an ID token", () => undefined],
    ["with a forged one", ({ all }: Door) => all.idToken({}, "wrong")],
    ["with an old one", ({ all }: Door) => all.idToken({ exp: Math.floor(all.test.clock.ms / 1000) - 11 })],
  ])("%s bounces, and comes back to the same page", async (_title, tokenOf) => {
    const door = await opened();
    const response = responseOf(await door.document(tokenOf(door), { status: "dead" }, "/app/deliveries"));
    expect(response.status).toBe(302);
    expectGuarded(response);
    const location = response.headers.get("location") ?? "";
    expect(location).toStartWith("/app/bounce?shop=new.myshopify.com&");
    expect(location).not.toMatch(/id_token|hmac|timestamp/);
    const page = responseOf(await door.ask(location));
    expect(page.status).toBe(200);
    expectGuarded(page);
    expect(framers(page)).toBe(`https://${NEW_SHOP} https://admin.shopify.com`);
    expect(await page.text()).toContain(APP_BRIDGE);
    const back = new URL(new URL(location, ORIGIN).searchParams.get("shopify-reload") ?? "");
    expect([back.origin, back.pathname, back.searchParams.get("status")]).toEqual([ORIGIN, "/app/deliveries", "dead"]);
    back.searchParams.set("id_token", door.all.idToken());
    visitOf(await door.ask(`${back.pathname}${back.search}`));
  });

  test("whose new ID token is refused too does not bounce for ever", async () => {
    const door = await opened();
    const first = responseOf(await door.document(door.all.idToken({}, "wrong")));
    const location = new URL(first.headers.get("location") ?? "", ORIGIN);
    const back = new URL(location.searchParams.get("shopify-reload") ?? "");
    back.searchParams.set("id_token", door.all.idToken({}, "wrong"));
    const second = responseOf(await door.ask(`${back.pathname}${back.search}`));
    expect(second.status).toBe(503);
    expectGuarded(second);
    expect(framers(second)).toBe(`https://${NEW_SHOP} https://admin.shopify.com`);
    door.all.test.clock.ms += 20_001;
    expect(responseOf(await door.ask(`${back.pathname}${back.search}`)).status).toBe(302);
  });

  test("without a shop gets App Bridge alone, and nothing of a shop", async () => {
    const door = await opened();
    const page = responseOf(await door.ask(`/app?embedded=1&id_token=${door.all.idToken()}`));
    expect(page.status).toBe(200);
    expectGuarded(page);
    expect(framers(page)).toBe("https://admin.shopify.com");
    const html = await page.text();
    expect(html).toContain(APP_BRIDGE);
    expect(html).toContain('<meta name="shopify-api-key" content="client"/>');
    expect(html).not.toContain(NEW_SHOP);
  });

  test("outside of the admin goes to the admin", async () => {
    const door = await opened();
    const response = responseOf(await door.ask(`/app?shop=${NEW_SHOP}&host=${HOST}`));
    expect(response.status).toBe(302);
    expect(response.headers.get("location")).toBe("https://admin.shopify.com/store/new/apps/client");
  });

  test.each<[string, Record<string, string>]>([
    ["a malformed shop", { shop: "evil.example" }],
    ["a shop with a policy in it", { shop: "new.myshopify.com; script-src *" }],
    ["a host of another shop", { host: Buffer.from("admin.shopify.com/store/other").toString("base64") }],
    ["a shop that is not the ID token's", { shop: "other.myshopify.com", host: "" }],
  ])("with %s is refused, and cannot be framed", async (_title, query) => {
    const door = await opened();
    const response = responseOf(await door.document(door.all.idToken(), query));
    expect(response.status).toBe(400);
    expectGuarded(response);
    expect(framers(response)).toBe("'none'");
    expect(door.all.platform.exchanges).toBe(0);
  });

  test("of another shop than the ID token's is refused, even if its host is right", async () => {
    const door = await opened();
    const host = Buffer.from("admin.shopify.com/store/other").toString("base64");
    const response = responseOf(await door.document(door.all.idToken(), { shop: "other.myshopify.com", host }));
    expect([response.status, framers(response), door.all.platform.exchanges]).toEqual([400, "'none'", 0]);
  });

  test.each<[string, number, string]>([
    ["503", 503, "Shopify gave no access"],
    ["404", 404, "Shopify gave no access"],
  ])("of a shop that cannot be connected asks to try again, after %s", async (_title, status, text) => {
    const door = await opened();
    door.all.platform.fault = () => ({ status });
    const response = responseOf(await door.document(door.all.idToken(), {}, "/app/keys"));
    expect(response.status).toBe(503);
    expectGuarded(response);
    expect(framers(response)).toBe(`https://${NEW_SHOP} https://admin.shopify.com`);
    const html = await response.text();
    expect(html).toContain(text);
    expect(html).toContain(APP_BRIDGE);
    expect(html).toContain(`href="${ORIGIN}/app/keys?embedded=1&amp;shop=${NEW_SHOP}`);
    expect(html).not.toContain("id_token");
  });

  test("of a slow platform says that the shop is being connected", async () => {
    const door = await opened();
    const answer = door.all.outlastView();
    const response = responseOf(await door.document(door.all.idToken()));
    expect(response.status).toBe(200);
    expectGuarded(response);
    const html = await response.text();
    expect(html).toContain("Connecting your shop");
    expect(html).toContain('http-equiv="refresh"');
    expect(html).not.toContain("id_token");
    answer();
  });

  test("of a shop that has uninstalled the app bounces", async () => {
    const door = await opened();
    visitOf(await door.document(door.all.idToken()));
    door.all.remote.uninstall();
    door.all.test.clock.ms += 1_000;
    await door.all.store.connections.uninstall(await door.all.shopId(), door.all.test.clock.ms);
    expect(responseOf(await door.document(door.all.idToken())).status).toBe(302);
    expect(responseOf(await door.fetch(door.all.idToken())).status).toBe(401);
  });
});

describe("the bounce page", () => {
  test("loads no address but ours", async () => {
    const door = await opened();
    const reload = encodeURIComponent(`${ORIGIN}@evil.example/app?shop=${NEW_SHOP}`);
    const response = responseOf(await door.ask(`/app/bounce?shop=${NEW_SHOP}&host=${HOST}&shopify-reload=${reload}`));
    expect(response.status).toBe(400);
    expectGuarded(response);
    expect(framers(response)).toBe("'none'");
  });
});

test("forged ID tokens open nothing, whether the shop is connected or not", async () => {
  const door = await opened();
  const { clock } = door.all.test;
  const nowS = clock.ms / 1000;
  const claims = idTokenClaims(NEW_SHOP, "client", clock.ms);
  const header = (alg: string) => signIdToken(claims, { secret: SECRET, header: { alg } });
  const forged = [
    header("none"),
    header("RS256"),
    header("HS384"),
    `${header("none").split(".").slice(0, 2).join(".")}.`,
    door.all.idToken({}, "wrong"),
    door.all.idToken({}, ""),
    door.all.idToken({ aud: "another" }),
    door.all.idToken({ aud: ["client"] }),
    door.all.idToken({ exp: nowS - 60 }),
    door.all.idToken({ nbf: nowS + 60 }),
    door.all.idToken({ exp: undefined }),
    door.all.idToken({ exp: String(nowS + 60) }),
    door.all.idToken({ exp: nowS + 86_400 }),
    door.all.idToken({ iss: "https://other.myshopify.com/admin" }),
    door.all.idToken({ dest: "https://evil.example", iss: "https://evil.example/admin" }),
  ];
  for (const isConnected of [false, true]) {
    if (isConnected) visitOf(await door.document(door.all.idToken()));
    for (const token of forged) {
      expect(responseOf(await door.fetch(token)).status).toBe(401);
      expect(responseOf(await door.document(token)).status).toBe(302);
    }
    expect(door.all.platform.exchanges).toBe(isConnected ? 1 : 0);
    expect(await door.all.store.shops.list()).toHaveLength(isConnected ? 1 : 0);
  }
  for (const token of forged)
    for (const line of [...door.logged, ...door.all.test.logged]) expect(line).not.toContain(token.slice(0, -1));
});

test("an app without a client id has no page in the admin", async () => {
  const all = await installing();
  const { platform } = all.test.app;
  const { now } = all.test.clock;
  const log = createLog("error", { write: () => true }, now);
  const door = createTokenDoor({ ...platform, ...all.store, clientId: null, publicUrl: null, now, log });
  const request = new Request(`${ORIGIN}/app?shop=${NEW_SHOP}`);
  for (const answer of [await door.open(request, CONTEXT), await door.bounce(request, CONTEXT)]) {
    expect(responseOf(answer).status).toBe(503);
    expectGuarded(responseOf(answer));
  }
});

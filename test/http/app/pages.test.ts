import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { hashToken } from "../../../src/actions/session.ts";
import { StoreError } from "../../../src/store/port/store-error.ts";
import { apply } from "../../support/app.ts";
import { SECRET } from "../../support/connected.ts";
import { type Installing, installing, NEW_SHOP } from "../../support/installing.ts";
import { idTokenClaims, signIdToken } from "../../support/platform/id-token.ts";
import { customer } from "../../support/records.ts";

const OTHER = "other.myshopify.com";
const KEY = /cad_pk_[0-9a-f]{48}/;

/** The staff of a shop, who look at the page in the platform's admin. */
class Staff {
  readonly all: Installing;
  readonly shop: string;
  readonly idTokens: string[] = [];

  constructor(all: Installing, shop = NEW_SHOP) {
    this.all = all;
    this.shop = shop;
  }

  idToken(claims: Record<string, unknown> = {}): string {
    const token = signIdToken(idTokenClaims(this.shop, "client", this.all.test.clock.ms, claims), { secret: SECRET });
    this.idTokens.push(token);
    return token;
  }

  document(path = "/app", more: Record<string, string> = {}): Promise<Response> {
    const host = Buffer.from(`admin.shopify.com/store/${this.shop.split(".")[0]}`).toString("base64");
    const query = { embedded: "1", shop: this.shop, host, id_token: this.idToken(), ...more };
    return this.all.test.request(`${path}?${new URLSearchParams(query)}`);
  }

  get(path: string, claims = {}): Promise<Response> {
    return this.all.test.request(path, { headers: this.headers(claims) });
  }

  post(path: string, fields: Record<string, string>, claims = {}): Promise<Response> {
    return this.all.test.request(path, {
      method: "POST",
      headers: this.headers(claims),
      body: new URLSearchParams(fields),
    });
  }

  async csrf(claims = {}): Promise<string> {
    return /name="csrf" value="([^"]+)"/.exec(await (await this.get("/app/keys", claims)).text())?.[1] ?? "";
  }

  private headers(claims: Record<string, unknown>) {
    return {
      Authorization: `Bearer ${this.idToken(claims)}`,
      "Sec-Fetch-Site": "same-origin",
      "Sec-Fetch-Dest": "empty",
    };
  }
}

async function staffOfTwoShops() {
  const all = await installing();
  all.platform.addShop(OTHER);
  const staff = { one: new Staff(all), two: new Staff(all, OTHER) };
  for (const each of [staff.one, staff.two]) expect((await each.document()).status).toBe(200);
  return { all, ...staff };
}

describe("the page in the platform's admin", () => {
  test("is framed by its own shop's admin only, on every page and refusal", async () => {
    const { one } = await staffOfTwoShops();
    const csrf = await one.csrf();
    const responses = [
      await one.document(),
      ...(await Promise.all(
        ["/keys", "/webhooks", "/deliveries", "/triggers", "/plan", "/fields", "/style"].map((path) =>
          one.document(`/app${path}`),
        ),
      )),
      await one.document("/app/unknown"),
      await one.document("/app/deliveries/"),
      await one.get("/app/keys/key_unknown/revoke"),
      await one.post("/app/keys", { csrf, label: "" }),
      await one.post("/app/keys", { csrf: "wrong", label: "New" }),
    ];
    expect(responses.map(({ status }) => status)).toEqual([
      200, 200, 200, 200, 200, 200, 200, 200, 404, 404, 404, 422, 403,
    ]);
    for (const { headers } of responses) {
      const policy = headers.get("content-security-policy") ?? "";
      expect(policy).toEndWith(`frame-ancestors https://${NEW_SHOP} https://admin.shopify.com`);
      expect(policy).toContain("script-src 'self' https://cdn.shopify.com/shopifycloud/;");
      expect(policy).not.toContain("unsafe");
      expect(headers.get("cache-control")).toBe("no-store");
      expect(headers.get("referrer-policy")).toBe("no-referrer");
      for (const name of ["set-cookie", "x-frame-options", "access-control-allow-origin"])
        expect(headers.has(name)).toBe(false);
    }
  });

  test("has App Bridge first in its head, and no link to /admin", async () => {
    const { one } = await staffOfTwoShops();
    for (const path of ["/app", "/app/keys", "/app/webhooks", "/app/deliveries", "/app/fields", "/app/style"]) {
      const html = await (await one.document(path)).text();
      expect(html).toContain(
        '<head><meta name="shopify-api-key" content="client"/><script src="https://cdn.shopify.com/shopifycloud/app-bridge.js">',
      );
      expect(html).not.toMatch(/(href|action)="\/admin/);
    }
  });

  test("makes a key, and shows it once, to the same staff member only", async () => {
    const { one } = await staffOfTwoShops();
    const response = await one.post("/app/keys", { csrf: await one.csrf(), label: "New" });
    expect([response.status, response.headers.get("location")]).toEqual([303, "/app/keys"]);
    expect(await (await one.get("/app/keys", { sub: "43" })).text()).not.toMatch(KEY);
    expect(await (await one.get("/app/keys", { sid: "another" })).text()).not.toMatch(KEY);
    one.all.test.clock.ms += 60_000;
    expect(await (await one.get("/app/keys")).text()).toMatch(KEY);
    expect(await (await one.get("/app/keys")).text()).not.toMatch(KEY);
  });

  test("accepts a form once, although each request has another ID token", async () => {
    const { one } = await staffOfTwoShops();
    const fields = { csrf: await one.csrf(), label: "Twice", once: crypto.randomUUID() };
    const statuses = [(await one.post("/app/keys", fields)).status, (await one.post("/app/keys", fields)).status];
    expect(statuses).toEqual([303, 403]);
  });

  test("refuses forms of another staff member's session", async () => {
    const { one } = await staffOfTwoShops();
    const csrf = await one.csrf({ sub: "43" });
    expect((await one.post("/app/keys", { csrf, label: "New" })).status).toBe(403);
    expect((await one.post("/app/keys", { csrf, label: "New" }, { sub: "43" })).status).toBe(303);
  });

  test("never shows or changes another shop, whatever the request says", async () => {
    const { all, one, two } = await staffOfTwoShops();
    await two.post("/app/keys", { csrf: await two.csrf(), label: "Theirs" });
    const theirs = (await all.store.shops.find(OTHER))?.id ?? 0;
    const [key] = await all.store.keys.list(theirs);
    expect(key?.createdBy).toMatch(/^staff \d+$/);
    const csrf = await one.csrf();
    expect((await one.post(`/app/keys/${key?.id}/revoke`, { csrf, shop: OTHER })).status).toBe(404);
    expect((await one.post("/app/keys", { csrf: await two.csrf(), label: "Mine" })).status).toBe(403);
    const html = await (await one.get(`/app/keys?shop=${OTHER}&id_token=${two.idToken()}`)).text();
    expect(html).not.toContain("Theirs");
    expect(await all.store.keys.list(theirs)).toEqual([key as never]);
    expect((await one.document("/app", { shop: OTHER })).status).toBe(400);
    expect((await one.document("/app", { id_token: two.idToken() })).status).toBe(400);
  });

  test("keeps ID tokens out of the log and the database", async () => {
    const { all, one, two } = await staffOfTwoShops();
    await one.post("/app/keys", { csrf: await one.csrf(), label: "New" });
    await one.document("/app/keys/nothing");
    const tokens = [...one.idTokens, ...two.idTokens].map((token) => token.split(".")[2] ?? "");
    const folder = join(all.test.folder, "data");
    const stored = readdirSync(folder).map((name) => readFileSync(join(folder, name)).toString("latin1"));
    expect(stored.some((text) => text.includes(NEW_SHOP))).toBe(true);
    for (const text of [...stored, ...all.test.logged]) for (const token of tokens) expect(text).not.toContain(token);
  });

  test("a path that has only a form leads back to its section, with the shop in its address", async () => {
    const { one } = await staffOfTwoShops();
    const response = await one.document("/app/webhooks/test");
    expect(response.status).toBe(303);
    expect(response.headers.get("location")).toStartWith(`/app/webhooks?embedded=1&shop=${NEW_SHOP}&host=`);
    expect(response.headers.get("location")).not.toContain("id_token");
    expect((await one.get("/app/webhooks/test")).headers.get("location")).toBe("/app/webhooks");
  });

  test("an address with a malformed id has the page of unknown addresses, in the frame of its shop", async () => {
    const { all, one } = await staffOfTwoShops();
    const outside = await all.test.request("/admin/keys/a-b/revoke", { headers: { Accept: "text/html" } });
    expect([outside.status, outside.headers.get("content-type")]).toEqual([404, "text/html; charset=utf-8"]);
    for (const path of ["/app/keys/a-b/revoke", "/app/deliveries/%41", "/app/data/browse/a.b"])
      for (const response of [await one.get(path), await one.document(path)]) {
        expect(response.status).toBe(404);
        expect(response.headers.get("content-security-policy")).toContain(`frame-ancestors https://${NEW_SHOP} https:`);
        expect(await response.text()).toContain("There is nothing here</h1>");
      }
  });

  test("lends the preview an address that works once, for a minute, in a policy without scripts and requests", async () => {
    const { all, one } = await staffOfTwoShops();
    const lend = async () => {
      const fields = { csrf: await one.csrf(), source: ".title { color: red }" };
      const { status, headers } = await one.post("/app/style/preview", fields);
      expect(status).toBe(201);
      return headers.get("location") ?? "";
    };
    const address = await lend();
    expect(address).toMatch(/^\/app\/lent\/[0-9a-f]{32}$/);
    expect((await all.test.request(address.replace(/.$/, (last) => (last === "0" ? "1" : "0")))).status).toBe(404);
    const shown = await all.test.request(address);
    expect([shown.status, shown.headers.get("content-security-policy")]).toEqual([
      200,
      "default-src 'none'; style-src data:; img-src data:; font-src data:; form-action 'none'; base-uri 'none'; " +
        `sandbox; frame-ancestors 'self' https://${NEW_SHOP} https://admin.shopify.com`,
    ]);
    expect(await shown.text()).toContain("Your subscription");
    expect((await all.test.request(address)).status).toBe(404);
    const late = await lend();
    const number = late.slice("/app/lent/".length);
    const stored = await all.store.sessions.find(hashToken(`lent ${number}`), all.test.clock.ms);
    expect(stored?.shop.domain).toBe(NEW_SHOP);
    for (const cookie of [number, `lent ${number}`, hashToken(`lent ${number}`).toBase64({ alphabet: "base64url" })]) {
      const headers = { Cookie: `sds_session=${cookie.replace("=", "")}` };
      expect((await all.test.request("/admin/keys", { headers })).status).toBe(401);
    }
    all.test.clock.ms += 60_000;
    expect((await all.test.request(late)).status).toBe(404);
    expect((await one.post("/app/style/preview", { csrf: "wrong", source: "" })).status).toBe(403);
  });

  test("lends an exported file an address that works once, because the script fetches pages only", async () => {
    const { all, one } = await staffOfTwoShops();
    const shop = await all.store.shops.find(NEW_SHOP);
    if (shop === undefined) throw new Error("the shop is missing");
    await apply(all.test.app, shop, [customer(7, { firstName: "Ada" })]);
    const page = await one.post("/app/data/requests/7/export", { csrf: await one.csrf() });
    const [, address = "", name] =
      /<a id="download"[^>]* href="([^"]*)" download="([^"]*)"/.exec(await page.text()) ?? [];
    expect([page.status, name]).toEqual([200, "customer-7.json"]);
    const file = await all.test.request(address);
    expect(file.headers.get("content-disposition")).toBe('attachment; filename="customer-7.json"');
    expect(await file.json()).toMatchObject({ customer: { firstName: "Ada" } });
    expect((await all.test.request(address)).status).toBe(404);
  });

  test("is a page to try again while the database is busy, in the frame of its shop", async () => {
    const { all, one } = await staffOfTwoShops();
    all.store.shops.find = () => Promise.reject(new StoreError("busy", new Error("database is locked")));
    for (const response of [await one.document(), await one.get("/app/keys")]) {
      expect(response.status).toBe(503);
      expect(response.headers.get("content-security-policy")).toContain(`frame-ancestors https://${NEW_SHOP} https:`);
      expect(await response.text()).toContain("Please try again");
    }
  });

  test("ends with the shop's removal", async () => {
    const { all, one } = await staffOfTwoShops();
    await one.post("/app/keys", { csrf: await one.csrf(), label: "New" });
    await all.store.shops.beginRemoval(NEW_SHOP, all.test.clock.ms);
    expect((await one.document()).status).toBe(503);
    expect((await one.get("/app/keys")).status).toBe(503);
  });
});

import { expect, test } from "bun:test";
import { hashToken, LINK_LIFE, newToken } from "../../src/domain/session.ts";
import { randomBytes, testApp } from "../support/app.ts";

test("a link signs in, and a key is made", async () => {
  const { app, clock, addShop, request } = await testApp();
  const { shop } = await addShop();
  const token = newToken(randomBytes);
  await app.store.sessions.addLink(shop.id, hashToken(token), clock.now(), clock.now() + LINK_LIFE);
  const opened = await request(`/admin/sign-in?token=${token}`);
  const cookie = opened.headers.get("set-cookie")?.split(";")[0] ?? "";
  const html = await (await request("/admin/keys", { headers: { cookie } })).text();
  const csrf = /name="csrf" value="([^"]+)"/.exec(html)?.[1] ?? "";
  const made = await request("/admin/keys", { method: "POST", headers: { cookie }, body: new URLSearchParams({ csrf, label: "Warehouse" }) });
  expect({ status: made.status, location: made.headers.get("location") }).toEqual({ status: 303, location: "/admin/keys" });
  const shown = await (await request("/admin/keys", { headers: { cookie } })).text();
  expect(shown).toMatch(/cad_pk_[0-9a-f]{48}/);
  expect(await (await request("/admin/keys", { headers: { cookie } })).text()).not.toMatch(/cad_pk_[0-9a-f]{48}/);
});

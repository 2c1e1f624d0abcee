import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { START, temporaryFolder, testShop } from "../support/app.ts";
import { signedWith } from "../support/platform/webhook.ts";
import { customer } from "../support/records.ts";
import { visit } from "../support/visitor.ts";

const DOMAIN = "alpha.myshopify.com";

test("a shop that is being removed is unknown over HTTP, and nothing is stored for it", async () => {
  const secret = join(temporaryFolder(), "secret");
  writeFileSync(secret, "the-app-client-secret");
  const all = await testShop({ SDS_PLATFORM_SECRET_FILE: secret });
  const { shop, get, intake } = all;
  const { store } = all.app;
  const { get: getPage } = await visit(all, shop);
  const body = [customer(1)];
  expect((await intake(body)).status).toBe(202);
  const given = await store.shops.intakeSecret(DOMAIN);
  await store.shops.beginRemoval(DOMAIN, START);

  expect((await get("/api/v1/customers")).status).toBe(401);
  expect((await getPage("/admin/keys")).status).toBe(401);
  const signed = new Bun.CryptoHasher("sha256", given?.secret).update(JSON.stringify(body)).digest("hex");
  const post = { "X-Service-Shop": DOMAIN, "X-Service-Signature": `sha256=${signed}` };
  const answer = await all.request("/intake", { method: "POST", headers: post, body: JSON.stringify(body) });
  expect(answer.status).toBe(401);
  const webhook = {
    shop: DOMAIN,
    topic: "shop/redact",
    body: JSON.stringify({ shop_domain: DOMAIN }),
    id: "asked",
    eventId: "asked",
    triggeredAt: new Date(START).toISOString(),
  };
  const { headers, body: redact } = signedWith(readFileSync(secret, "utf8"), webhook);
  expect((await all.request("/platform/webhooks", { method: "POST", headers, body: redact })).status).toBe(200);
  expect(await store.inbox.count(shop.id)).toEqual({ waiting: 0, failed: 0 });
});

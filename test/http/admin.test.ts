import { describe, expect, test } from "bun:test";
import { TOPIC_NAMES } from "../../src/domain/events/event.ts";
import { TABS } from "../../src/http/admin/admin-request.ts";
import { TOKENS } from "../conformance/fixtures.ts";
import { START } from "../support/app.ts";
import { deadDelivery } from "../support/dead-delivery.ts";
import { signedIn } from "../support/signed-in.ts";
import { visit } from "../support/visitor.ts";

const REFUSED_PLAN =
  /<p id="refusal">This shop's plan has no [\w ]+: (it comes|they come) with the Pro plan, and with the Free plan through the API and webhooks add-on\.</;

describe("the plan", () => {
  test("without access every page says so, and a form that needs access is refused", async () => {
    const { html, post, store, shop, keyId } = await signedIn({}, "free");
    for (const path of ["/admin/keys", "/admin/webhooks", "/admin/deliveries", "/admin/triggers", "/admin/data"])
      expect(await html(path)).toContain('id="plan-notice"');
    // The page of the plan has no link to itself.
    const plan = await html("/admin/plan");
    expect(plan).not.toContain("See the plan");
    expect(plan).toContain(`<strong id="plan">Free</strong>`);
    expect(plan).toContain("39 USD per month, the first 30 days free");
    expect(plan).toContain("19.99 USD per month");
    expect(plan).toContain("The operator of this service has set it");
    await store.connections.connect(shop.id, "token", TOKENS, [], START);
    expect(await html("/admin/plan")).toContain("It follows the shop's plan for this app in Shopify's admin");
    for (const path of ["/admin/keys", "/admin/webhooks", "/admin/triggers"])
      expect(await html(path)).toContain("<fieldset disabled");
    await store.webhooks.set(shop.id, { url: "https://hooks.example.com/a", topics: TOPIC_NAMES }, START);
    const refused: [string, Record<string, string>][] = [
      ["/admin/keys", { label: "A" }],
      ["/admin/webhooks", { url: "https://93.184.216.34/" }],
      ["/admin/webhooks/test", { topic: "order.failed" }],
      ["/admin/triggers", { triggers: "subscription-created" }],
    ];
    for (const [path, fields] of refused) {
      const answer = await post(path, fields);
      expect({ path, status: answer.status }).toEqual({ path, status: 403 });
      expect(await answer.text()).toMatch(REFUSED_PLAN);
    }
    expect((await store.keys.list(shop.id)).length).toBe(1);
    expect((await post(`/admin/keys/${keyId}/revoke`)).status).toBe(303);
  });

  test.each(["pro", "free+addon"] as const)("on the plan %s everything is included", async (plan) => {
    const { html } = await signedIn({}, plan);
    expect(await html("/admin/keys")).not.toContain('id="plan-notice"');
    expect(await html("/admin/plan")).toContain("<dt>API access</dt><dd>included</dd>");
  });
});

test("another shop's keys and deliveries are not found, and its sessions do not work here", async () => {
  const { all, get, post, html, csrf } = await signedIn();
  const beta = await all.addShop("beta.myshopify.com");
  const theirs = await visit(all, beta.shop);
  const id = await deadDelivery(all.app.store, beta.shop);
  const answers = [
    get(`/admin/keys/${beta.keyId}/revoke`),
    post(`/admin/keys/${beta.keyId}/revoke`),
    get(`/admin/deliveries/${id}`),
    get(`/admin/deliveries/${id}`, { "X-Part": "live" }),
    post(`/admin/deliveries/${id}/retry`, { back: "log" }),
  ];
  expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([404, 404, 404, 404, 404]);
  await post("/admin/deliveries/retry-dead");
  expect(await all.app.store.deliveries.countDead(beta.shop.id, 0)).toBe(1);
  expect(await html("/admin/deliveries")).not.toContain(id);
  expect((await theirs.post("/admin/keys", { csrf, label: "Forged" })).status).toBe(403);
  expect((await theirs.get(`/admin/deliveries/${id}`)).status).toBe(200);
  // A request cannot choose the shop.
  await post("/admin/keys?shop=beta.myshopify.com", { label: "Mine", shop: "beta.myshopify.com" });
  expect((await all.app.store.keys.list(beta.shop.id)).map(({ label }) => label)).toEqual(["Test"]);
});

test.each(Object.keys(TABS))("%s links to a heading of the documentation, and not to itself", async (tab) => {
  const { html, get } = await signedIn();
  const page = await html(`/admin${tab}`);
  const [, path = "", anchor] = /<a id="documentation" [^>]*href="([^"#]*)#?([^"]*)"/.exec(page) ?? [];
  expect(path).toStartWith("/docs/");
  const answer = await get(path);
  expect(answer.status).toBe(200);
  if (anchor !== "") expect(await answer.text()).toContain(` id="${anchor}"`);
  const links = [...page.matchAll(/<a [^>]*>/g)].map(([link]) => link);
  expect(links.filter((link) => link.includes(`href="/admin${tab}"`) && !link.includes("aria-current"))).toEqual([]);
});

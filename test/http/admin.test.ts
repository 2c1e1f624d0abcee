import { describe, expect, test } from "bun:test";
import { TOPIC_NAMES } from "../../src/domain/events/event.ts";
import { dataRequest } from "../../src/domain/people/data-request.ts";
import { NO_COUNTS } from "../../src/domain/platform/sync.ts";
import { receipt, receiveFailed, TOKENS } from "../conformance/fixtures.ts";
import { apply, START } from "../support/app.ts";
import { deadDelivery } from "../support/dead-delivery.ts";
import { customer, order, subscription } from "../support/records.ts";
import { signedIn } from "../support/signed-in.ts";
import { visit } from "../support/visitor.ts";

/** The time START as the pages show it. */
const TIME =
  '<time datetime="2026-03-01T12:00:00.000Z" title="2026-03-01 12:00:00.000 UTC">2026-03-01 12:00 UTC</time>';
const REFUSED_PLAN =
  /<p id="refusal">This shop's plan has no [\w ]+: (it comes|they come) with the Pro plan, and with the Free plan through the API and webhooks add-on\.</;

test("the pages say why the platform refuses the connection", async () => {
  const { html, store, shop } = await signedIn();
  await store.connections.connect(shop.id, "token", TOKENS, [], START);
  await store.connections.setTrouble(shop.id, "the shop is frozen, wait", START);
  expect(await html("/admin/triggers")).toContain("refuses the connection at present: the shop is frozen, wait.");
  expect(await html("/admin/data")).toContain(
    `<dt>Platform</dt><dd>the shop is frozen, wait; since ${new Date(START).toISOString()}</dd>`,
  );
});

describe("the pages of plan and data", () => {
  test("counts the rows of the mirror, and says what to do while it is empty", async () => {
    const { all, html, shop } = await signedIn();
    expect(await html("/admin/data")).toContain(`sds shop connect ${shop.domain}`);
    await apply(all.app, shop, [customer(1), customer(2), subscription(1), order(1, 1)]);
    const page = await html("/admin/data");
    expect(page).toContain("<dt>Customers</dt><dd>2</dd>");
    expect(page).toContain("<dt>Subscriptions</dt><dd>1</dd>");
    expect(page).toContain("<dt>Orders</dt><dd>1</dd>");
    expect(await html("/admin/plan")).toContain(`<strong id="plan">Pro</strong>`);
  });

  test("lists the customers who wait for their data, with the deadline of the answer", async () => {
    const { html, store, shop } = await signedIn();
    expect(await html("/admin/data")).not.toContain("Requests for data");
    const dataRequests = [dataRequest("1", "gid://shopify/Customer/7", START)];
    await store.mirror.applyRecords([{ shop, records: [], dataRequests }], START, []);
    const page = await html("/admin/data");
    expect(page).toContain("<dt>gid://shopify/Customer/7</dt>");
    expect(page).toContain(new Date(START + 30 * 86_400_000).toISOString());
    await store.dataRequests.answer(shop.id, "gid://shopify/Customer/7", START);
    expect(await html("/admin/data")).not.toContain("Requests for data");
  });

  test("says what to do next: connect, load, or look into the inbox", async () => {
    const { all, html, store, shop } = await signedIn();
    const shows = async () =>
      (await html("/admin/data")).match(
        /id="(empty-mirror|no-subscriptions|loading|inbox-failed)"|<code>\s*sds [\w -]+/g,
      );
    expect(await shows()).toEqual(['id="empty-mirror"', "<code>sds shop connect alpha"]);
    expect(await html("/admin/data")).toContain("The operator of this service can connect the shop with <code>");
    await store.connections.connect(shop.id, "token", TOKENS, [], START);
    expect(await shows()).toEqual(['id="loading"', 'id="no-subscriptions"']);
    expect(await html("/admin/data")).toContain("begins by itself, in a few seconds.");
    await apply(all.app, shop, [customer(1), subscription(1)]);
    expect(await shows()).toEqual(['id="loading"']);
    const { ms } = all.clock;
    await store.syncs.claimLoad(shop.id, { holder: "a", now: ms, until: ms + 15_000 });
    const counts = { ...NO_COUNTS, subscriptions: 1_240 };
    const progress = { stage: "subscriptions", counts, done: 0.25, leftMs: 100_000 } as const;
    await store.syncs.keepLoad(shop.id, "a", ms + 15_000, progress);
    const loading = await html("/admin/data");
    expect(loading).toContain("Loading your shop: 1,240 of about 5,000 subscriptions, 2 minutes left.");
    expect(loading).toContain('<progress value="0.25" max="1" aria-label="Loaded">');
    expect(loading).not.toContain("load-notice");
    expect(await html("/admin/keys")).toMatch(
      /id="load-notice".*>Loading your shop: 1,240 of about 5,000 subscriptions/,
    );
    await store.syncs.releaseLoad(shop.id, "a", progress);
    await store.syncs.complete(shop.id, "full", START, 1, START);
    expect(await shows()).toBeNull();
    await receiveFailed(store, shop);
    expect(await shows()).toEqual(['id="inbox-failed"', "<code>sds inbox list --status failed"]);
    await store.connections.disconnect(shop.id, Number.MAX_SAFE_INTEGER);
    expect(await html("/admin/data")).toContain("<dt>Platform</dt><dd>not connected</dd>");
  });

  test("shows the last platform webhook, the last reconciliation and what waits in the inbox", async () => {
    const { html, store, shop } = await signedIn();
    await store.inbox.receive([receipt(shop, "1")], START);
    await store.syncs.complete(shop.id, "changes", START, 7, START);
    const page = await html("/admin/data");
    expect(page).toContain(`<dt>Last platform webhook</dt><dd>${TIME}</dd>`);
    expect(page).toContain(`<dt>Last reconciliation</dt><dd>${TIME}</dd>`);
    expect(page).toContain("<dt>Rows changed by the last reconciliation</dt><dd>7</dd>");
    expect(page).toContain("<dt>Waiting in the inbox</dt><dd>1</dd>");
    expect(page).toContain("<dt>Failed in the inbox</dt><dd>0</dd>");
  });

  test("without access every page says so, and a form that needs access is refused", async () => {
    const { html, post, store, shop, keyId } = await signedIn({}, "free");
    for (const path of ["/admin/keys", "/admin/webhooks", "/admin/deliveries", "/admin/triggers", "/admin/plan"]) {
      expect(await html(path)).toContain('id="plan-notice"');
    }
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

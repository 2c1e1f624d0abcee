import { describe, expect, test } from "bun:test";
import { TOPIC_NAMES } from "../../src/domain/events/event.ts";
import { hashKey } from "../../src/domain/key.ts";
import { dataRequest } from "../../src/domain/people/data-request.ts";
import { NO_COUNTS } from "../../src/domain/platform/sync.ts";
import { apiKey, HOUR, receipt, receiveFailed, TOKENS } from "../conformance/fixtures.ts";
import { apply, START } from "../support/app.ts";
import { deadDelivery } from "../support/dead-delivery.ts";
import { eventually } from "../support/eventually.ts";
import { Receiver } from "../support/receiver.ts";
import { customer, order, subscription } from "../support/records.ts";
import { led, signedIn } from "../support/signed-in.ts";
import { visit } from "../support/visitor.ts";

const SCRIPT = "<script>alert(1)</script>";
const SHOWN_SCRIPT = "&lt;script>alert(1)&lt;/script>";
/** The time START as the pages show it. */
const TIME =
  '<time datetime="2026-03-01T12:00:00.000Z" title="2026-03-01 12:00:00.000 UTC">2026-03-01 12:00 UTC</time>';
const LOCAL = { SDS_EGRESS_ALLOW: "127.0.0.0/8" };
const KEY = /cad_pk_[0-9a-f]{48}/;
const REFUSED_PLAN =
  /<p id="refusal">This shop's plan has no [\w ]+: (it comes|they come) with the Pro plan, and with the Free plan through the API and webhooks add-on\.</;

describe("API keys", () => {
  test("a new key is shown once and works, until it is revoked: then the next request with it is refused", async () => {
    const { all, html, post, store, shop } = await signedIn();
    expect(led(await post("/admin/keys", { label: "  Warehouse " }))).toEqual([303, "/admin/keys"]);
    const first = await html("/admin/keys");
    const key = KEY.exec(first)?.[0] ?? "";
    expect(first).toContain("This is the new key Warehouse:");
    expect(first).toContain("It won't be shown again.");
    expect(await html("/admin/keys")).not.toMatch(KEY);
    const read = () => all.request("/api/v1/customers", { headers: { Authorization: `Bearer ${key}` } });
    expect((await read()).status).toBe(200);

    const id = (await store.keys.list(shop.id)).find(({ label }) => label === "Warehouse")?.id ?? "";
    const asked = await html(`/admin/keys/${id}/revoke`);
    expect(asked).toContain("<strong>Warehouse</strong>");
    expect(asked).toContain(key.slice(0, 15));
    expect((await read()).status).toBe(200);
    expect(led(await post(`/admin/keys/${id}/revoke`))).toEqual([303, "/admin/keys"]);
    expect((await read()).status).toBe(401);
    expect(await html("/admin/keys")).toContain(`The key Warehouse (${key.slice(0, 15)}…) is revoked.`);
    expect((await post(`/admin/keys/${id}/revoke`)).status).toBe(404);
  });

  test("a new key is shown only on the page of keys, in the session that created it", async () => {
    const { all, html, post, get, shop } = await signedIn();
    const other = await visit(all, shop);
    await post("/admin/keys", { label: "Warehouse" });
    expect(await html("/admin/webhooks")).not.toMatch(KEY);
    expect(await other.html("/admin/keys")).not.toMatch(KEY);
    expect(await (await get("/admin/keys")).text()).toMatch(KEY);
  });

  test("a new key that is not shown within five minutes is dropped", async () => {
    const { all, html, post } = await signedIn();
    await post("/admin/keys", { label: "Warehouse" });
    all.clock.ms += 5 * 60_000;
    expect(await html("/admin/keys")).not.toMatch(KEY);
  });

  test.each(["", "   ", "x".repeat(201), "a\nb"])(
    "the label %p is refused, with a message at its field",
    async (label) => {
      const { post } = await signedIn();
      const answer = await post("/admin/keys", { label });
      const html = await answer.text();
      expect(answer.status).toBe(422);
      expect(html).toContain('aria-invalid="true" aria-describedby="label-error label-help"');
      expect(html).toContain("The label must have 1 to 200 characters and no control or invisible characters.");
    },
  );

  test("a refused label stays in its field, and a script in a label is shown as text", async () => {
    const { post, html } = await signedIn();
    const label = `${SCRIPT}"'${"x".repeat(200)}`;
    expect(await (await post("/admin/keys", { label })).text()).toContain(`value="${SHOWN_SCRIPT}&quot;'xxx`);
    await post("/admin/keys", { label: SCRIPT });
    expect(await html("/admin/keys")).not.toContain(SCRIPT);
    expect(await html("/admin/keys")).toContain(SHOWN_SCRIPT);
  });

  test("a legacy key has a badge, and the page says what to do", async () => {
    const { store, shop, html } = await signedIn();
    expect(await html("/admin/keys")).not.toContain("Legacy, rotate");
    const entry = apiKey("old", { lastUsedAt: START, legacy: true });
    await store.keys.add(shop.id, entry, hashKey(`cad_pk_${"ab".repeat(24)}`));
    const page = await html("/admin/keys");
    expect(page).toContain('<span class="badge warning">Legacy, rotate</span>');
    expect(page).toContain('id="legacy-hint"');
    expect(page).toContain(TIME);
  });
});

describe("webhooks", () => {
  test("the URL and the topics are saved together", async () => {
    const { html, post, store, shop } = await signedIn();
    expect(await html("/admin/webhooks")).toContain('id="no-endpoint"');
    const saved = await post("/admin/webhooks", {
      url: " https://93.184.216.34/hooks ",
      topics: ["order.failed", "order.charged"],
    });
    expect(led(saved)).toEqual([303, "/admin/webhooks"]);
    expect(await store.webhooks.settings(shop.id)).toEqual({
      url: "https://93.184.216.34/hooks",
      topics: ["order.charged", "order.failed"],
    });
    const page = await html("/admin/webhooks");
    expect(page).toContain("<p>Saved.</p>");
    expect(page).toMatch(/value="order\.failed" checked/);
    expect(page).not.toMatch(/value="order\.recovered" checked/);
    await post("/admin/webhooks", { url: "https://93.184.216.34/hooks" });
    expect(await html("/admin/webhooks")).toContain("Nothing is sent yet: choose topics.");
  });

  test("a URL whose name does not resolve is saved with a warning", async () => {
    const { html, post } = await signedIn();
    await post("/admin/webhooks", { url: "https://hooks.example.com/", topics: TOPIC_NAMES });
    expect(await html("/admin/webhooks")).toContain(
      "The name hooks.example.com does not resolve at present; the URL is kept.",
    );
  });

  const refused: [string, string][] = [
    ["", "Enter the URL of the endpoint."],
    ["http://example.com/", "This URL is not accepted: only https:// URLs are accepted."],
    ["https://localhost/", "This URL is not accepted: localhost is a name of this machine or a private network."],
    ["https://10.0.0.1/", "This URL is not accepted: 10.0.0.1 is a private address."],
    ["https://u:p@example.com/", "This URL is not accepted: the URL has a user name or password in it."],
  ];
  test.each(refused)(
    "the URL %p is refused, with a message at its field and everything that was typed",
    async (url, message) => {
      const { post, store, shop } = await signedIn();
      const answer = await post("/admin/webhooks", { url, topics: ["order.failed"] });
      const html = await answer.text();
      expect(answer.status).toBe(422);
      expect(html).toContain(`<small id="url-error" class="field-error" role="alert">${message}</small>`);
      expect(html).toContain('aria-invalid="true" aria-describedby="url-error url-help"');
      expect(html).toMatch(/value="order\.failed" checked/);
      if (url !== "") expect(html).toContain(`value="${url}"`);
      expect(await store.webhooks.settings(shop.id)).toEqual({ url: null, topics: [] });
    },
  );

  test("a script in the URL is shown as text, and an unknown topic is refused", async () => {
    const { post } = await signedIn();
    expect(await (await post("/admin/webhooks", { url: `https://a.example/"${SCRIPT}` })).text()).not.toContain(SCRIPT);
    expect((await post("/admin/webhooks", { url: "https://93.184.216.34/", topics: ["nothing"] })).status).toBe(422);
  });

  test("the signing secret is hidden until it is asked for, and rotated only after a question", async () => {
    const { html, post, store, shop } = await signedIn();
    const secret = await store.webhooks.secret(shop.id, START);
    expect(await html("/admin/webhooks")).not.toContain("whsec_");
    expect(await (await post("/admin/webhooks/secret")).text()).toContain(secret.replaceAll("&", "&amp;"));
    expect(await html("/admin/webhooks/rotate")).toContain("Make a new signing secret?");
    expect(await store.webhooks.secret(shop.id, START)).toBe(secret);
    expect(led(await post("/admin/webhooks/rotate"))).toEqual([303, "/admin/webhooks"]);
    const next = await store.webhooks.secret(shop.id, START);
    expect(next).not.toBe(secret);
    expect(await html("/admin/webhooks")).toContain(next);
    expect(await html("/admin/webhooks")).not.toContain("whsec_");
  });

  test("a rotation can let the former secret sign too, and the page says until when", async () => {
    const { all, html, post, store, shop } = await signedIn();
    await store.webhooks.secret(shop.id, START);
    expect(await html("/admin/webhooks/rotate")).toContain('<option value="24h" selected>For 24 hours</option>');
    const SHOWN = 'id="overlap-end"';
    expect(await html("/admin/webhooks")).not.toContain(SHOWN);
    expect(led(await post("/admin/webhooks/rotate", { overlap: "1h" }))).toEqual([303, "/admin/webhooks"]);
    expect(await store.webhooks.overlapEndsAt(shop.id)).toBe(all.clock.ms + HOUR);
    expect(await html("/admin/webhooks")).toContain(SHOWN);
    all.clock.ms += HOUR;
    expect(await html("/admin/webhooks")).not.toContain(SHOWN);
    for (const overlap of ["1w", "0s", "40d"])
      expect((await post("/admin/webhooks/rotate", { overlap })).status).toBe(400);
    expect(await store.webhooks.secrets(shop.id)).toHaveLength(2);
    expect(led(await post("/admin/webhooks/rotate", { overlap: "" }))).toEqual([303, "/admin/webhooks"]);
    expect(await store.webhooks.overlapEndsAt(shop.id)).toBeNull();
  });

  test("the endpoint is removed only after a question", async () => {
    const { html, post, store, shop } = await signedIn();
    await store.webhooks.set(shop.id, { url: "https://hooks.example.com/a", topics: TOPIC_NAMES }, START);
    expect(await html("/admin/webhooks/clear")).toContain("<strong>https://hooks.example.com/a</strong>");
    expect(led(await post("/admin/webhooks/clear"))).toEqual([303, "/admin/webhooks"]);
    expect(await store.webhooks.settings(shop.id)).toEqual({ url: null, topics: [] });
  });

  test("GET on a form's address redirects to the form's section", async () => {
    const { get } = await signedIn();
    for (const path of ["/admin/webhooks/secret", "/admin/webhooks/test"])
      expect(led(await get(path))).toEqual([303, "/admin/webhooks"]);
    expect(led(await get("/admin/sign-out"))).toEqual([303, "/admin/overview"]);
    expect(led(await get("/admin"))).toEqual([303, "/admin/overview"]);
  });

  test("a test event is sent, and its page says that it is on its way until the result arrives", async () => {
    const { html, post, store, shop } = await signedIn(LOCAL);
    const refused = await post("/admin/webhooks/test", { topic: "order.failed" });
    expect(refused.status).toBe(422);
    expect(await refused.text()).toContain(">There is no endpoint yet: set its URL first.<");
    const receiver = new Receiver();
    const release = receiver.hold();
    await store.webhooks.set(shop.id, { url: receiver.url, topics: [] }, START);
    const answer = await post("/admin/webhooks/test", { topic: "order.failed" });
    const path = answer.headers.get("location") ?? "";
    expect(answer.status).toBe(303);
    expect(path).toMatch(/^\/admin\/deliveries\/whd_[a-z2-7]{24}$/);
    // The form itself woke the sender: the test app runs no jobs that could.
    const [delivered] = await receiver.gets(1);
    const onItsWay =
      '<p id="on-its-way" class="verdict">The test event is on its way. The result will appear here.</p>';
    for (const waiting of [await html(path), await html(path), await html(path, { "X-Part": "live" })])
      expect(waiting).toContain(onItsWay);
    release();
    await eventually(async () => (await html(path)).includes('data-poll="off"'));
    const page = await html(path);
    expect(page).not.toContain("on-its-way");
    expect(page).toContain('<span class="status delivered"><span aria-hidden="true">●</span> Delivered</span>');
    expect(page).toContain("X-Service-Signature");
    expect(page).toContain(delivered?.signature ?? "?");
    expect(await receiver.allGenuine(await store.webhooks.secret(shop.id, START))).toBe(true);
    const live = await html(path, { "X-Part": "live" });
    expect(live).toStartWith('<section id="live"');
    expect(live).not.toContain("<html");
  });
});

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

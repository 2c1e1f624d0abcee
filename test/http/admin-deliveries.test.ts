import { describe, expect, test } from "bun:test";
import { TOPIC_NAMES } from "../../src/domain/events/event.ts";
import { TRIGGER_HANDLES } from "../../src/domain/events/trigger.ts";
import { chooseAllEvents } from "../conformance/fixtures.ts";
import { apply, START } from "../support/app.ts";
import { deadDelivery } from "../support/dead-delivery.ts";
import { eventually } from "../support/eventually.ts";
import { subscription } from "../support/records.ts";
import { led, signedIn } from "../support/signed-in.ts";

const SCRIPT = "<script>alert(1)</script>";
const SHOWN_SCRIPT = "&lt;script>alert(1)&lt;/script>";
const HOOK = "https://hooks.example.com/in?a=1";

describe("the delivery log", () => {
  test("lists the last 20 deliveries, and all dead ones in a second list with their number", async () => {
    const { html, shop, store } = await signedIn();
    expect(await html("/admin/deliveries")).toContain('id="no-deliveries"');
    const old = await deadDelivery(store, shop);
    for (let index = 0; index < 25; index += 1)
      await store.deliveries.queueTest(shop, { topic: "order.charged", data: {} }, START + 1 + index);
    const page = await html("/admin/deliveries");
    expect(page.match(/<tr id="last-/g)?.length).toBe(20);
    expect(page).not.toContain(`id="last-${old}"`);
    expect(page).toContain(`id="dead-${old}"`);
    expect(page).toContain('<span id="dead-count">(1)</span>');
    expect(page).toContain("The endpoint responded with HTTP 500.");
  });

  test("sends one delivery again, from the list or from its page", async () => {
    const { html, post, shop, store } = await signedIn();
    const [one, two] = [await deadDelivery(store, shop), await deadDelivery(store, shop)];
    expect(led(await post(`/admin/deliveries/${one}/retry`, { back: "log" }))).toEqual([303, "/admin/deliveries"]);
    expect(await html("/admin/deliveries")).toContain(`order.failed (${one}) is sent again now.`);
    expect(led(await post(`/admin/deliveries/${two}/retry`, { back: "details" }))).toEqual([
      303,
      `/admin/deliveries/${two}`,
    ]);
    // Without an endpoint the second attempt fails too.
    for (const id of [one, two])
      await eventually(async () => (await store.deliveries.show(shop.id, id)).history.length === 2);
  });

  test("sends all dead deliveries again, after a question that says how many", async () => {
    const { html, post, shop, store } = await signedIn();
    expect(await html("/admin/deliveries/retry-dead")).toContain("There are no dead deliveries.");
    await deadDelivery(store, shop);
    expect(await html("/admin/deliveries/retry-dead")).toContain(
      '<strong id="count">1 delivery</strong> is dead. Send it again now?',
    );
    for (let index = 1; index < 3; index += 1) await deadDelivery(store, shop);
    expect(await html("/admin/deliveries/retry-dead")).toContain(
      '<strong id="count">3 deliveries</strong> are dead. Send all of them again now?',
    );
    expect(await store.deliveries.countDead(shop.id, 0)).toBe(3);
    expect(led(await post("/admin/deliveries/retry-dead"))).toEqual([303, "/admin/deliveries"]);
    expect(await store.deliveries.countDead(shop.id, 0)).toBe(0);
    expect(await html("/admin/deliveries")).toContain("3 deliveries are sent again now.");
  });

  test("lists 100 dead deliveries, and counts the rest", async () => {
    const { all, html, shop, store } = await signedIn();
    await store.webhooks.set(shop.id, { url: "https://hooks.example.com/", topics: TOPIC_NAMES }, START);
    const die = async (from: number, to: number) => {
      const records = Array.from({ length: to - from + 1 }, (_, index) => subscription(from + index));
      await apply(all.app, shop, records);
      const { claimed } = await store.deliveries.recordAndClaim(
        [],
        [{ shopId: shop.id, kind: "webhook", count: records.length }],
        START,
        START + 60_000,
        [],
      );
      const outcome = { statusCode: 500, error: "It failed." };
      await store.deliveries.recordAndClaim(
        claimed.map((claim) => ({ claim, outcome, startedAt: START, duration: 1 })),
        [],
        START,
        START,
        [],
      );
      return html("/admin/deliveries");
    };
    expect(await die(1, 100)).not.toContain('id="dead-hidden"');
    expect(await die(101, 101)).toContain(
      '<p id="dead-hidden">1 older delivery is dead too. &quot;Retry all Dead&quot; also sends it again.</p>',
    );
    expect(await die(102, 102)).toContain(
      '<p id="dead-hidden">2 older deliveries are dead too. &quot;Retry all Dead&quot; also sends them again.</p>',
    );
  });

  test("pretty-prints a body, unless that would change a value", async () => {
    const { all, html, shop, store } = await signedIn();
    const id = await deadDelivery(store, shop);
    expect(await html(`/admin/deliveries/${id}`)).toContain(
      "  &quot;data&quot;: {\n    &quot;a&quot;: 1\n  }\n}</code>",
    );
    await chooseAllEvents(store, shop);
    await apply(all.app, shop, [subscription(1, { customer: "gid://shopify/Customer/12345678901234567891" })]);
    const [queued] = await store.deliveries.list(shop.id, { limit: 1, kind: "trigger" });
    expect(await html(`/admin/deliveries/${queued?.id}`)).toContain("&quot;customer_id&quot;:12345678901234567891,");
  });

  test("shows a script in an error or a body as text", async () => {
    const { html, shop, store } = await signedIn();
    const id = await deadDelivery(store, shop, {
      error: `It said ${SCRIPT}`,
      url: HOOK,
      answer: `${SCRIPT}, as answer`,
    });
    const body = await store.deliveries.queueTest(shop, { topic: "order.failed", data: { note: SCRIPT } }, START);
    for (const path of ["/admin/deliveries", `/admin/deliveries/${id}`, `/admin/deliveries/${body}`]) {
      const page = await html(path);
      expect(page).not.toContain(SCRIPT);
      expect(page).toContain(SHOWN_SCRIPT);
    }
    const details = await html(`/admin/deliveries/${id}`);
    expect(details).toContain(`<code class="body">${SHOWN_SCRIPT}, as answer</code>`);
    expect(details).toContain(`<td class="error">${HOOK}</td>`);
  });

  test("answers the script with the live part of the same page", async () => {
    const { html, get, store, shop } = await signedIn();
    await deadDelivery(store, shop);
    const part = await get("/admin/deliveries", { "X-Part": "live" });
    const text = await part.text();
    expect(part.headers.get("cache-control")).toBe("no-store");
    expect(await html("/admin/deliveries")).toContain(text);
  });
});

describe("workflow triggers", () => {
  test("are switched on and off, all together and one by one", async () => {
    const { html, post, store, shop } = await signedIn();
    expect(await html("/admin/triggers")).toContain(`sds shop connect ${shop.domain}`);
    expect(
      led(await post("/admin/triggers", { triggers: ["streak-milestone-reached", "subscription-created"] })),
    ).toEqual([303, "/admin/triggers"]);
    expect((await store.shops.settings(shop.id)).triggers).toEqual([
      "subscription-created",
      "streak-milestone-reached",
    ]);
    const page = await html("/admin/triggers");
    expect(page).toContain("On: Subscription created, Streak milestone reached.");
    expect(page.match(/name="triggers" value="[\w-]+" checked/g)?.length).toBe(2);
    await post("/admin/triggers", { triggers: [...TRIGGER_HANDLES] });
    expect((await store.shops.settings(shop.id)).triggers).toEqual(TRIGGER_HANDLES);
    await post("/admin/triggers");
    expect((await store.shops.settings(shop.id)).triggers).toEqual([]);
    expect((await post("/admin/triggers", { triggers: "nothing" })).status).toBe(400);
    expect((await post("/admin/triggers", { triggers: "all" })).status).toBe(400);
  });

  test("have their own log, without webhooks", async () => {
    const { all, html, post, store, shop } = await signedIn();
    await chooseAllEvents(store, shop);
    await store.webhooks.set(shop.id, { topics: [] }, START);
    await apply(all.app, shop, [subscription(1)]);
    const [queued] = await store.deliveries.list(shop.id, { limit: 1 });
    expect(queued?.kind).toBe("trigger");
    expect(await html("/admin/triggers")).not.toContain('id="connection"');
    const page = await html("/admin/deliveries/workflows");
    expect(page).toContain(`id="last-${queued?.id}"`);
    expect(await html("/admin/deliveries")).toContain('id="no-deliveries"');
    const details = await html(`/admin/deliveries/${queued?.id}`);
    expect(details).toContain("Workflow start: subscription-created");
    expect(details).not.toContain("X-Service-Signature");
    expect(led(await post(`/admin/deliveries/${queued?.id}/retry`, { back: "log" }))).toEqual([
      303,
      "/admin/deliveries/workflows",
    ]);
  });
});

import { describe, expect, test } from "bun:test";
import { connectError, httpError, type Outcome } from "../../src/domain/deliveries/delivery.ts";
import { TOPIC_NAMES, type Topic } from "../../src/domain/events/event.ts";
import { isoUtc } from "../../src/lib/time.ts";
import { queueRewards } from "../conformance/delivery-fixtures.ts";
import { chooseAllEvents } from "../conformance/fixtures.ts";
import { apply, START } from "../support/app.ts";
import { deadDelivery } from "../support/dead-delivery.ts";
import { eventually } from "../support/eventually.ts";
import { order, reward, subscription } from "../support/records.ts";
import { led, signedIn } from "../support/signed-in.ts";
import { visit } from "../support/visitor.ts";
import { linkOf, textIn } from "./page-parts.ts";
import { HOOK, queueTests, rowsOf, SCRIPT, SHOWN_SCRIPT } from "./shown-deliveries.ts";

describe("the delivery log", () => {
  test("has pages of 20, newest first, and leads to older and newer pages", async () => {
    const { html, shop, store } = await signedIn();
    expect(await html("/admin/deliveries")).toContain('id="no-deliveries"');
    const ids = await queueTests(store, shop, Array<Topic>(45).fill("order.charged"));
    const first = await html("/admin/deliveries");
    expect(rowsOf(first)).toEqual(ids.slice(0, 20));
    expect(linkOf(first, "newer")).toBe("");
    const second = await html(linkOf(first, "older"));
    expect(rowsOf(second)).toEqual(ids.slice(20, 40));
    const last = await html(linkOf(second, "older"));
    expect(rowsOf(last)).toEqual(ids.slice(40));
    expect(linkOf(last, "older")).toBe("");
    expect(await html(`/admin/deliveries?before=${ids[44]}`)).toContain("No delivery matches.");
    const back = await html(linkOf(last, "newer"));
    expect(rowsOf(back)).toEqual(ids.slice(20, 40));
    expect(rowsOf(await html(linkOf(back, "newer")))).toEqual(ids.slice(0, 20));
    // Only three deliveries are newer than `ids[3]`, but the page is full.
    expect(rowsOf(await html(`/admin/deliveries?after=${ids[3]}`))).toEqual(ids.slice(0, 20));
    // An unknown id in the address leads to the newest page. The id of a removed delivery is unknown, too.
    for (const place of [`before=whd_${"a".repeat(24)}`, "before=x", "after=%00", "rows=x"])
      expect(rowsOf(await html(`/admin/deliveries?${place}`))).toEqual(ids.slice(0, 20));
  });

  test("finds deliveries by what the address says, and its pages keep that", async () => {
    const { all, html, shop, store } = await signedIn();
    await chooseAllEvents(store, shop);
    await apply(all.app, shop, [subscription(1), subscription(2), order(1, 3)]);
    const found = async (query: string) =>
      [...(await html(`/admin/deliveries?${query}`)).matchAll(/<th scope="row"[^>]*><a [^>]*>([^<]*)/g)].map(
        ([, topic]) => topic,
      );
    expect(await found("")).toEqual(["order.charged", "subscription.created", "subscription.created"]);
    expect(await found("topic=order.charged")).toEqual(["order.charged"]);
    expect(await found("subject=1")).toEqual(["order.charged", "subscription.created"]);
    expect(await found("subject=gid://shopify/SubscriptionContract/2")).toEqual(["subscription.created"]);
    expect(await found("subject=999")).toEqual([]);
    expect(await found("status=pending&topic=subscription.created&subject=2")).toEqual(["subscription.created"]);
    expect(await found("status=dead")).toEqual([]);
    const today = isoUtc(START).slice(0, 10);
    expect(await found(`from=${today}&to=${today}`)).toHaveLength(3);
    expect(await found("to=2026-02-28")).toEqual([]);
    expect(await found("from=2026-03-02")).toEqual([]);
    const page = await html("/admin/deliveries?status=&topic=&from=&to=&subject=999");
    expect(page).toContain("No delivery matches.");
    expect(page).toContain('data-poll="off"');
    expect(await html("/admin/deliveries?subject=1")).toContain('data-poll="on"');
    expect(page).toContain('value="999"');
    expect(linkOf(page, "clear")).toBe("/admin/deliveries");

    await queueTests(store, shop, Array<Topic>(21).fill("order.failed"));
    const search = `status=pending&topic=order.failed&from=${today}`;
    const first = await html(`/admin/deliveries?${search}`);
    expect(linkOf(first, "older")).toStartWith(`/admin/deliveries?${search}&before=whd_`);
    const second = await html(linkOf(first, "older"));
    expect(rowsOf(second)).toHaveLength(1);
    expect(second).toContain('<option value="order.failed" selected>');
    expect(linkOf(second, "newer")).toStartWith(`/admin/deliveries?${search}&after=whd_`);
  });

  test.each([
    ["status", "late", "“late” is not a status."],
    ["topic", SCRIPT, `“${SHOWN_SCRIPT}” is not a topic.`],
    ["topic", "subscription-created", "“subscription-created” is not a topic."],
    ["from", "2026-02-30", "“2026-02-30” is not a date like 2026-01-31."],
    ["to", "yesterday", "“yesterday” is not a date like 2026-01-31."],
    ["subject", "Jane", "“Jane” is not an id or number of a subscription, an order or a customer."],
    ["subject", "\0", "“&lt;U+0000>” is not an id or number of a subscription, an order or a customer."],
  ])("refuses %s=%s, and names the field", async (name, value, error) => {
    const { get, shop, store } = await signedIn();
    await queueTests(store, shop, ["order.failed"]);
    const answer = await get(`/admin/deliveries?${new URLSearchParams({ [name]: value })}`);
    expect(answer.status).toBe(422);
    const page = await answer.text();
    expect(page).toContain(`<small id="${name}-error" class="field-error" role="alert">${error}</small>`);
    expect(page).toContain('id="refused"');
    expect(page).not.toContain('id="last"');
  });

  test("searches on for a while, and says that older deliveries may match", async () => {
    const { all, html, shop, store } = await signedIn();
    await store.webhooks.set(shop.id, { url: HOOK, topics: TOPIC_NAMES }, START);
    await apply(all.app, shop, [subscription(1)]);
    await queueRewards(
      store,
      shop,
      Array.from({ length: 5_100 }, (_, index) => index),
    );
    const search = "/admin/deliveries?topic=subscription.created";
    expect(rowsOf(await html(search))).toHaveLength(1);
    // Simulates a slow machine: each reading of the clock is 100 ms later.
    let time = START;
    Object.defineProperty(all.clock, "ms", { get: () => (time += 100) });
    const page = await html(search);
    expect(rowsOf(page)).toEqual([]);
    expect(page).toContain("The newer deliveries do not match. Choose “Older” to continue the search.");
    expect(rowsOf(await html(linkOf(page, "older")))).toHaveLength(1);
  });

  test("refuses a last day before the first day", async () => {
    const { get } = await signedIn();
    const answer = await get("/admin/deliveries?from=2026-03-02&to=2026-03-01");
    expect(answer.status).toBe(422);
    expect(await answer.text()).toContain("This day is before the first day.");
    expect((await get("/admin/deliveries?from=2026-03-01&to=2026-03-01")).status).toBe(200);
  });

  test("says of what each delivery is, how it went and how old it is", async () => {
    const { all, html, shop, store } = await signedIn();
    await chooseAllEvents(store, shop);
    await apply(all.app, shop, [
      subscription(1),
      order(1, 3),
      order(1, 4, { status: "FAILED", shopifyId: null }),
      reward("r1"),
      order(1, 0, { source: "checkout", status: "FAILED", shopifyId: null }),
    ]);
    const rows = async (path: string) =>
      [...(await html(path)).matchAll(/<tr id="last-.*?<\/tr>/gs)].map(([row]) =>
        [...row.matchAll(/<t[hd] .*?<\/t[hd]>/gs)].map(([cell]) => cell.replaceAll(/<[^>]*>/g, "").trim()),
      );
    all.clock.ms = START + 12_000;
    const first = "first attempt now";
    expect(await rows("/admin/deliveries")).toEqual([
      ["○ Pending", "order.failed", "Checkout · subscription 1", first, "12 s ago"],
      ["○ Pending", "loyalty.reward_earned", expect.stringMatching(/^Customer cus_/), first, "12 s ago"],
      ["○ Pending", "order.failed", "Renewal 4 · subscription 1", first, "12 s ago"],
      ["○ Pending", "order.charged", "Order 1003 · subscription 1", first, "12 s ago"],
      ["○ Pending", "subscription.created", "Subscription 1", first, "12 s ago"],
    ]);
    const { claimed } = await store.deliveries.recordAndClaim(
      [],
      [{ shopId: shop.id, kind: "webhook", count: 4 }],
      START,
      START + 60_000,
      [],
    );
    const outcomes: Outcome[] = [
      { statusCode: 200, error: null },
      { statusCode: 503, error: httpError(503) },
      { statusCode: null, error: connectError("the connection was refused") },
    ];
    for (const [index, outcome] of outcomes.entries()) {
      const [claim] = claimed.slice(index);
      if (claim === undefined) throw new Error("too few were claimed");
      const result = { claim, outcome, startedAt: START, duration: 48 };
      await store.deliveries.recordAndClaim([result], [], START, START, index === 1 ? [192_000] : []);
    }
    const results = (await rows("/admin/deliveries")).map(([status, , , result]) => `${status}: ${result}`);
    expect(results).toEqual([
      "○ Pending: first attempt now",
      "○ Pending: first attempt now",
      "✕ Dead: We could not connect to your endpoint: the connection was refused. 1 attemptResend",
      "◐ Retrying: 503 attempt 1, next in 3 min",
      "● Delivered: 200 · 48 ms",
    ]);
    await store.deliveries.queueTest(shop, { topic: "order.charged", data: {} }, START - 86_400_000);
    expect((await rows("/admin/deliveries"))[0]?.slice(2)).toEqual([
      "Test event",
      "first attempt now",
      "2026-02-28 12:00 UTC",
    ]);
  });

  test("shows samples of what will be there, as long as it is empty", async () => {
    const { html } = await signedIn();
    const deliveries = await html("/admin/deliveries");
    expect(textIn(deliveries, "sample-deliveries")).toBe(
      "Status Topic About Result Queued " +
        "● Delivered order.charged Order 1042 · subscription 5003 200 · 48 ms 12 s ago " +
        "◐ Retrying subscription.updated Subscription 5003 503 attempt 2, next in 3 min 2 min ago " +
        "✕ Dead order.failed Renewal 3 · subscription 5003 500 5 attempts 2 h ago",
    );
    const starts = await html("/admin/deliveries/workflows");
    expect(textIn(starts, "sample-starts")).toBe(
      "Status Trigger About Result Queued " +
        "● Delivered subscription-created Subscription 5003 200 · 48 ms 12 s ago " +
        "○ Pending billing-attempt-failed Subscription 5003 first attempt now 12 s ago",
    );
    for (const page of [deliveries, starts]) {
      const ids = [...page.matchAll(/ id="([^"]*)"/g)].map(([, id]) => id);
      expect(ids.filter((id, index) => ids.indexOf(id) !== index)).toEqual([]);
    }
  });

  test("offers to resend only what is dead, and returns to the search", async () => {
    const { html, post, shop, store } = await signedIn();
    const [second, third] = [await deadDelivery(store, shop), await deadDelivery(store, shop)];
    const [fourth, id] = [await deadDelivery(store, shop), await deadDelivery(store, shop)];
    await queueTests(store, shop, ["order.charged"]);
    const page = await html("/admin/deliveries?status=dead&topic=order.failed");
    expect(page).toContain(`id="retry-last-${id}"`);
    expect((await html("/admin/deliveries")).match(/id="retry-last-/g)).toHaveLength(4);
    const log = /name="log" value="([^"]*)"/.exec(page)?.[1]?.replaceAll("&amp;", "&") ?? "";
    expect(log).toBe("?status=dead&topic=order.failed");
    expect(led(await post(`/admin/deliveries/${id}/retry`, { log }))).toEqual([303, `/admin/deliveries${log}`]);
    const next = await html(`/admin/deliveries${log}`);
    expect(next).toContain(`order.failed (${id}) is sent again now.`);
    const older = `?status=dead&before=${id}`;
    expect(led(await post(`/admin/deliveries/${second}/retry`, { log: older }))).toEqual([
      303,
      `/admin/deliveries${older}`,
    ]);
    // A form with a forged `log` leads to the log too.
    const long = { log: `status=dead&subject=${"x".repeat(900_000)}` };
    expect(led(await post(`/admin/deliveries/${fourth}/retry`, long))).toEqual([303, "/admin/deliveries"]);
    expect(led(await post(`/admin/deliveries/${third}/retry`, { log: "//evil.example/?status=dead&x=1" }))).toEqual([
      303,
      "/admin/deliveries",
    ]);
  });

  test("counts newer deliveries for the script, and leaves the rows on screen where they are", async () => {
    const { all, html, shop, store } = await signedIn();
    const dead = await deadDelivery(store, shop);
    const [second = "", first = ""] = await queueTests(store, shop, ["order.charged", "order.charged"]);
    const live = async (query: string) => html(`/admin/deliveries${query}`, { "X-Part": "live" });
    const queryIn = (part: string) => /data-query="([^"]*)"/.exec(part)?.[1]?.replaceAll("&amp;", "&") ?? "";
    const page = await html("/admin/deliveries");
    expect(page).not.toContain('id="news"');
    const onScreen = queryIn(page);
    expect(await live(onScreen)).not.toContain('id="news"');
    await queueTests(store, shop, ["order.charged", "order.failed", "order.charged"]);
    await store.deliveries.retry(shop.id, dead, START);
    const next = await live(onScreen);
    expect(next).toContain('<a id="news" class="pill" href="/admin/deliveries">3 new</a>');
    expect(next).toContain('data-announce="3 new"');
    expect(rowsOf(next)).toEqual([second, first, dead]);
    expect(next).not.toContain("Dead");
    expect(queryIn(next)).toBe(onScreen);

    // A search counts new deliveries only if they match. It keeps shown rows that no longer match.
    const search = queryIn(await html("/admin/deliveries?topic=order.failed"));
    await queueTests(store, shop, ["order.failed", "order.charged"]);
    expect(await live(search)).toContain('href="/admin/deliveries?topic=order.failed">1 new</a>');
    // An older page does not count new deliveries.
    const older = queryIn(await html(`/admin/deliveries?before=${second}`));
    expect(rowsOf(await live(older))).toEqual([first, dead]);
    expect(await live(older)).not.toContain('id="news"');
    // Another shop's rows are not shown.
    const { shop: neighbour } = await all.addShop("beta.myshopify.com");
    expect(rowsOf(await (await visit(all, neighbour)).html(`/admin/deliveries${onScreen}`))).toEqual([]);
  });

  test("sends one delivery again from its page", async () => {
    const { html, post, shop, store } = await signedIn();
    const id = await deadDelivery(store, shop);
    expect(led(await post(`/admin/deliveries/${id}/retry`))).toEqual([303, `/admin/deliveries/${id}`]);
    expect(await html(`/admin/deliveries/${id}`)).toContain(`order.failed (${id}) is sent again now.`);
    // Without an endpoint the second attempt fails too.
    await eventually(async () => (await store.deliveries.show(shop.id, id)).history.length === 2);
  });

  test("sends all dead deliveries again, after a question that says how many", async () => {
    const { html, post, shop, store } = await signedIn();
    expect(await html("/admin/deliveries/retry-dead")).toContain("There are no dead deliveries.");
    expect(await html("/admin/deliveries")).not.toContain('id="retry-dead"');
    await deadDelivery(store, shop);
    expect(await html("/admin/deliveries")).toContain("Resend 1 dead…");
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
});

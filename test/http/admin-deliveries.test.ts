import { describe, expect, test } from "bun:test";
import { findDelivery } from "../../src/actions/delivery.ts";
import { verify } from "../../src/client/verify.ts";
import { connectError, httpError, type Outcome } from "../../src/domain/deliveries/delivery.ts";
import { TOPIC_NAMES, type Topic } from "../../src/domain/events/event.ts";
import { sampleEvent } from "../../src/domain/events/sample.ts";
import { TRIGGER_HANDLES } from "../../src/domain/events/trigger.ts";
import type { Shop } from "../../src/domain/shop.ts";
import { isoUtc } from "../../src/lib/time.ts";
import type { Store } from "../../src/store/port/store.ts";
import { claimOne, queueRewards, record } from "../conformance/delivery-fixtures.ts";
import { chooseAllEvents } from "../conformance/fixtures.ts";
import { apply, START } from "../support/app.ts";
import { deadDelivery } from "../support/dead-delivery.ts";
import { eventually } from "../support/eventually.ts";
import { Receiver } from "../support/receiver.ts";
import { order, reward, subscription } from "../support/records.ts";
import { led, signedIn } from "../support/signed-in.ts";
import { visit } from "../support/visitor.ts";

const SCRIPT = "<script>alert(1)</script>";
const SHOWN_SCRIPT = "&lt;script>alert(1)&lt;/script>";
const HOOK = "https://hooks.example.com/in?a=1";

/** Queues test events, a millisecond apart. @returns their ids, newest first */
async function queueTests({ deliveries }: Store, shop: Shop, topics: readonly Topic[]): Promise<string[]> {
  const ids: string[] = [];
  for (const [index, topic] of topics.entries())
    ids.unshift(await deliveries.queueTest(shop, { topic, data: {} }, START + 1 + index));
  return ids;
}

/** The ids of the rows of a log, in their order. */
function rowsOf(page: string): string[] {
  return [...page.matchAll(/<tr id="last-(whd_\w+)"/g)].map(([, id = ""]) => id);
}

/** The address of a link, below the host. */
function linkOf(page: string, id: string): string {
  const href = new RegExp(`<a id="${id}"[^>]* href="([^"]*)"`).exec(page)?.[1] ?? "";
  return href.replaceAll("&amp;", "&");
}

/** The text of HTML. */
function textOf(html: string): string {
  const text = html.replaceAll(/<[^>]*>/g, "");
  return text.replaceAll("&lt;", "<").replaceAll("&quot;", '"').replaceAll("&amp;", "&");
}

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

describe("the page of a delivery", () => {
  test("pretty-prints a body, unless that would change a value", async () => {
    const { all, html, shop, store } = await signedIn();
    const id = await deadDelivery(store, shop);
    const text = async (path: string) => (await html(path)).replaceAll(/<\/?span[^>]*>/g, "");
    expect(await text(`/admin/deliveries/${id}`)).toContain(
      "  &quot;data&quot;: {\n    &quot;a&quot;: 1\n  }\n}</code>",
    );
    await chooseAllEvents(store, shop);
    await apply(all.app, shop, [subscription(1, { customer: "gid://shopify/Customer/12345678901234567891" })]);
    const [queued] = await store.deliveries.list(shop.id, { limit: 1, kind: "trigger" });
    expect(await text(`/admin/deliveries/${queued?.id}`)).toContain("&quot;customer_id&quot;:12345678901234567891,");
  });

  test("shows the newest twenty attempts of a delivery that was resent again and again", async () => {
    const { html, shop, store } = await signedIn();
    const id = await deadDelivery(store, shop);
    const due = [{ shopId: shop.id, kind: "webhook" as const, count: 1 }];
    for (let number = 2; number <= 22; number += 1) {
      const isAll = number <= 21;
      expect((await html(`/admin/deliveries/${id}`)).includes('id="older-attempts"')).toBe(!isAll);
      await store.deliveries.retry(shop.id, id, START);
      const { claimed } = await store.deliveries.recordAndClaim([], due, START, START + 60_000, []);
      const outcome = { statusCode: 500, error: httpError(500), answer: `answer ${number}` };
      const ended = claimed.map((claim) => ({ claim, outcome, startedAt: START, duration: 1 }));
      await store.deliveries.recordAndClaim(ended, [], START, START, []);
    }
    const page = await html(`/admin/deliveries/${id}`);
    const shown = [...page.matchAll(/answer (\d+)</g)].map(([, number]) => Number(number));
    expect(shown).toEqual(Array.from({ length: 20 }, (_, index) => 22 - index));
    expect(page).toContain("These are the newest 20 of 22 attempts.");
  });

  test("begins with a verdict, and says what to change", async () => {
    const { all, html, shop, store } = await signedIn();
    await store.webhooks.secret(shop.id, START);
    const verdict = async (id: string) => {
      const page = await html(`/admin/deliveries/${id}`);
      const box = /<div id="verdict".*?<\/div>/s.exec(page)?.[0] ?? "";
      return box
        .replaceAll(/<[^>]*>/g, " ")
        .replaceAll(/\s+/g, " ")
        .trim();
    };
    const attempt = async (outcome: Outcome, waits: number[] = []) => {
      const due = [{ shopId: shop.id, kind: "webhook" as const, count: 1 }];
      const { claimed } = await store.deliveries.recordAndClaim([], due, all.clock.ms, all.clock.ms + 60_000, []);
      const ended = claimed.map((claim) => ({ claim, outcome, startedAt: all.clock.ms, duration: 48 }));
      await store.deliveries.recordAndClaim(ended, [], all.clock.ms, all.clock.ms, waits);
    };
    const [id = ""] = await queueTests(store, shop, ["order.failed"]);
    all.clock.ms = START + 1_000;
    expect(await verdict(id)).toBe("The test event is on its way. The result will appear here.");
    const refused = { statusCode: 503, error: httpError(503) };
    const advice =
      "Your server is overloaded, or your program is not running. Look at your program's log of this time.";
    await attempt(refused, [180_000]);
    expect(await verdict(id)).toBe(`Your endpoint answered 503. Next attempt in 3 min. ${advice}`);
    all.clock.ms += 181_000;
    await attempt(refused, [180_000]);
    expect(await verdict(id)).toBe(
      `Not delivered. Your endpoint answered 503 twice. We stopped on 2026-03-01 12:03 UTC . ${advice} Then resend.`,
    );
    await store.deliveries.retry(shop.id, id, all.clock.ms);
    expect(await verdict(id)).toBe("The test event is sent again. The result will appear here.");
    await attempt({ statusCode: null, error: connectError("the connection was refused") });
    expect(await verdict(id)).toStartWith(
      "Not delivered. We could not connect to your endpoint: the connection was refused. We stopped on",
    );
    await store.deliveries.retry(shop.id, id, all.clock.ms);
    await attempt({ statusCode: null, error: connectError("the connection was refused") });
    expect(await verdict(id)).toContain("the connection was refused, twice. We stopped on");
    await store.deliveries.retry(shop.id, id, all.clock.ms);
    await attempt({ statusCode: 200, error: null });
    expect(await verdict(id)).toBe("Delivered in 48 ms at attempt 5.");
    const [other = ""] = await queueTests(store, shop, ["order.failed"]);
    await attempt({ statusCode: 200, error: null });
    expect(await verdict(other)).toBe("Delivered in 48 ms at the first attempt.");
  });

  test("leads to the rows that it is about", async () => {
    const { all, get, html, shop, store } = await signedIn();
    await chooseAllEvents(store, shop);
    await apply(all.app, shop, [subscription(1), order(1, 3)]);
    const [charged] = await store.deliveries.list(shop.id, { limit: 1, kind: "webhook", topic: "order.charged" });
    const page = await html(`/admin/deliveries/${charged?.id}`);
    const links = [...page.matchAll(/<a href="(\/admin\/data\/browse\?[^"]*)">(\w+)</g)];
    expect(links.map(([, , name]) => name)).toEqual(["Order", "Subscription", "Customer"]);
    for (const [, href = ""] of links) {
      const found = led(await get(href.replaceAll("&amp;", "&")));
      expect(found).toEqual([303, expect.stringMatching(/^\/admin\/data\/browse\/(?:ord|sub|cus)_/)]);
    }
    const [id] = await queueTests(store, shop, ["order.charged"]);
    expect(await html(`/admin/deliveries/${id}`)).not.toContain("/data/browse?");
  });

  test("leads to the other deliveries of the same contract or customer", async () => {
    const { all, html, shop, store } = await signedIn();
    await chooseAllEvents(store, shop);
    await apply(all.app, shop, [subscription(1), subscription(2), order(1, 3), order(1, 4), reward("r1")]);
    const about = async (topic: string) => {
      const [delivery] = await store.deliveries.list(shop.id, { limit: 1, kind: "webhook", topic });
      const page = await html(`/admin/deliveries/${delivery?.id}`);
      const text = /<a id="related"[^>]*>([^<]*)/.exec(page)?.[1];
      return text === undefined ? undefined : [text, rowsOf(await html(linkOf(page, "related"))).length];
    };
    expect(await about("order.charged")).toEqual(["See 2 more about this subscription", 3]);
    expect(await about("subscription.created")).toBeUndefined();
    expect(await about("loyalty.reward_earned")).toBeUndefined();
    await apply(all.app, shop, [reward("r2")]);
    expect((await about("loyalty.reward_earned"))?.[0]).toBe("See 1 more about this customer");
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
    expect(details).toContain(`<code>POST ${HOOK}</code>`);
  });

  test.each<[string, object]>([
    ["quotes", { a: '"'.repeat(60_000) }],
    ["tags", { a: "</code>".repeat(20_000) }],
    ["keys", Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`k${index}`, index]))],
    ["numbers", { a: Array<number>(8_000).fill(1) }],
    ["letters", { a: "x".repeat(250_000) }],
  ])("keeps its pages small, whatever the payload: %s", async (_name, data) => {
    const { html, shop, store } = await signedIn();
    await store.webhooks.set(shop.id, { url: HOOK, topics: [] }, START);
    const id = await store.deliveries.queueTest(shop, { topic: "order.failed", data: { ...data } }, START);
    const page = await html(`/admin/deliveries/${id}`);
    const { body } = await store.deliveries.show(shop.id, id);
    const shown = textOf(/<code id="body" class="body">(.*?)<\/code>/s.exec(page)?.[1] ?? "");
    const readable = JSON.stringify(JSON.parse(body), null, 2);
    expect(page.length).toBeWithin(20_000, 110_000);
    expect(readable).toStartWith(shown);
    expect(page.includes("These are the first ")).toBe(shown !== readable);
    expect((await html(`/admin/deliveries/${id}/curl`)).length).toBeLessThan(110_000);
  });

  test("colours keys, strings, numbers and words of JSON", async () => {
    const { html, shop, store } = await signedIn();
    await store.webhooks.secret(shop.id, START);
    const data = { "a:b": 'c": 1, \\', list: [-1.5e21, 0, true, false, null, "true", "5"] };
    const id = await store.deliveries.queueTest(shop, { topic: "order.failed", data }, START);
    const page = await html(`/admin/deliveries/${id}`);
    const code = /<code id="body" class="body">(.*?)<\/code>/s.exec(page)?.[1] ?? "";
    expect(JSON.parse(textOf(code))).toMatchObject({ data });
    const tokens = [...code.matchAll(/<span class="(\w+)">(.*?)<\/span>/gs)].map(([, kind, text = ""]) => [
      kind,
      textOf(text),
    ]);
    expect(tokens.slice(tokens.findIndex(([, text]) => text === '"data"'))).toEqual([
      ["key", '"data"'],
      ["key", '"a:b"'],
      ["string", '"c\\": 1, \\\\"'],
      ["key", '"list"'],
      ["number", "-1.5e+21"],
      ["number", "0"],
      ["boolean", "true"],
      ["boolean", "false"],
      ["null", "null"],
      ["string", '"true"'],
      ["string", '"5"'],
    ]);
  });

  test("shows a command that sends the webhook as it was sent", async () => {
    const { all, html, get, shop, store } = await signedIn();
    const receiver = new Receiver();
    const note = `it's "quoted", $HOME \`id\` !! \\ two\nlines, ünïcødé 🎁 \u202e\u009b31m </code><script>alert(1)</script>`;
    const data = { ...sampleEvent("cancel_flow.completed").data, reason_id: note };
    await store.webhooks.secret(shop.id, START);
    await store.webhooks.rotateSecret(shop.id, START, 3_600_000);
    const id = await store.deliveries.queueTest(shop, { topic: "cancel_flow.completed", data }, START);
    const path = `/admin/deliveries/${id}/curl`;
    expect(await html(`/admin/deliveries/${id}`)).toContain(`href="${path}"`);
    expect(await html(path)).toContain('id="no-endpoint"');
    await store.webhooks.set(shop.id, { url: `${receiver.url}?to={a,b}&in=[1-3]&x='y'`, topics: [] }, START);
    all.clock.ms = START + 60_000;
    const page = await html(path);
    expect(page).not.toContain("<script>alert");
    const written = /<code id="curl" class="body">(.*?)<\/code>/s.exec(page)?.[1] ?? "";
    const command = textOf(written);
    // Runs the command in an interactive shell, as after a paste: such a shell expands "!" outside of quotes.
    const bash = Bun.spawn(["bash", "--norc", "-i"], {
      stdin: new Blob([`${command}\nexit\n`]),
      stdout: "pipe",
      stderr: "ignore",
    });
    expect(await bash.stdout.text()).toStartWith("HTTP/1.1 200 OK");
    const delivery = await store.deliveries.show(shop.id, id);
    expect(receiver.received.map(({ body }) => body)).toEqual([delivery.body]);
    const [{ headers = {}, json } = {}] = receiver.received;
    expect(json?.data).toEqual(data);
    const [newest = "", former = ""] = await store.webhooks.secrets(shop.id);
    const now = () => START + 60_000;
    for (const secret of [newest, former])
      expect(await verify(secret, delivery.body, headers, { now })).toMatchObject({ isTest: true });
    expect(headers["x-service-signature"]).toBe((await findDelivery(store, shop, id)).signature ?? "");
    expect(headers["x-service-topic"]).toBe("cancel_flow.completed");

    all.clock.ms = START + 3_700_000;
    expect(await html(path)).toMatch(/webhook-signature: v1,[\w+/=]+'/);
    const large = await store.deliveries.queueTest(
      shop,
      { topic: "order.failed", data: { a: "漢".repeat(40_000) } },
      START,
    );
    expect(await html(`/admin/deliveries/${large}/curl`)).toContain('id="too-large"');
    expect((await get(`/admin/deliveries/whd_${"a".repeat(24)}/curl`)).status).toBe(404);
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
    expect(await html("/admin/triggers")).toContain("No workflow can be started at present. The shop is not connected");
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

  test("say in a merchant's words why a start failed, without commands", async () => {
    const { all, html, store, shop } = await signedIn();
    await chooseAllEvents(store, shop);
    await store.webhooks.set(shop.id, { topics: [] }, START);
    await apply(all.app, shop, [subscription(1)]);
    const claimed = await claimOne(store, shop);
    const error = "The platform refuses the shop's token (HTTP 401); run `sds shop connect`.";
    await record(store, [{ claim: claimed, outcome: { statusCode: 401, error }, startedAt: START, duration: 9 }]);
    for (const path of ["/admin/deliveries/workflows", `/admin/deliveries/${claimed.id}`]) {
      const page = await html(path);
      expect(page).toContain("Shopify refuses the app's access.");
      expect(page).not.toMatch(/platform refuses|sds shop/);
    }
    const details = await html(`/admin/deliveries/${claimed.id}`);
    expect(details).toContain("Open the app in Shopify's admin. If that does not help, install it there again.");
    expect(details).not.toContain("Correct what Shopify names");
  });

  test("have their own log, without webhooks", async () => {
    const { all, get, html, post, store, shop } = await signedIn();
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
    expect(details).not.toContain("/curl");
    expect((await get(`/admin/deliveries/${queued?.id}/curl`)).status).toBe(404);
    expect(led(await post(`/admin/deliveries/${queued?.id}/retry`, { log: "?status=dead" }))).toEqual([
      303,
      "/admin/deliveries/workflows?status=dead",
    ]);
  });
});

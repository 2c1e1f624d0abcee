import { describe, expect, test } from "bun:test";
import { findDelivery } from "../../src/actions/delivery.ts";
import { verify } from "../../src/client/verify.ts";
import { connectError, httpError, type Outcome } from "../../src/domain/deliveries/delivery.ts";
import { sampleEvent } from "../../src/domain/events/sample.ts";
import { chooseAllEvents } from "../conformance/fixtures.ts";
import { apply, START } from "../support/app.ts";
import { deadDelivery } from "../support/dead-delivery.ts";
import { Receiver } from "../support/receiver.ts";
import { order, reward, subscription } from "../support/records.ts";
import { led, signedIn } from "../support/signed-in.ts";
import { codeOf, linkOf } from "./page-parts.ts";
import { HOOK, queueTests, rowsOf, SCRIPT, SHOWN_SCRIPT } from "./shown-deliveries.ts";

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
    // From 99 on, they are not counted.
    await apply(
      all.app,
      shop,
      Array.from({ length: 100 }, (_, cycle) => order(2, cycle)),
    );
    expect((await about("order.charged"))?.[0]).toBe("See at least 99 more about this subscription");
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
    const shown = codeOf(/<code id="body" class="body">(.*?)<\/code>/s.exec(page)?.[1] ?? "");
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
    expect(JSON.parse(codeOf(code))).toMatchObject({ data });
    const tokens = [...code.matchAll(/<span class="(\w+)">(.*?)<\/span>/gs)].map(([, kind, text = ""]) => [
      kind,
      codeOf(text),
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
    const command = codeOf(written);
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

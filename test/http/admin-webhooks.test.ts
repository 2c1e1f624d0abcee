import { describe, expect, test } from "bun:test";
import { verifyFunctions } from "../../src/docs/verify-functions.ts";
import { TOPIC_NAMES, TOPICS } from "../../src/domain/events/event.ts";
import { EVENT_DATA } from "../../src/domain/events/event-schemas.ts";
import { HOUR } from "../conformance/fixtures.ts";
import { START } from "../support/app.ts";
import { eventually } from "../support/eventually.ts";
import { Receiver } from "../support/receiver.ts";
import { SAMPLES } from "../support/samples.ts";
import { led, signedIn } from "../support/signed-in.ts";

const SCRIPT = "<script>alert(1)</script>";
const LOCAL = { SDS_EGRESS_ALLOW: "127.0.0.0/8" };
const PUBLIC = "https://93.184.216.34/hooks";
const ENDPOINT = "/admin/webhooks";
const CATALOGUE = "/admin/webhooks/topics";
const SECRET = "/admin/webhooks/secret";

describe("the endpoint", () => {
  test("is saved without its topics; while no topic is chosen, the catalogue is next", async () => {
    const { html, post, store, shop } = await signedIn();
    expect(await html(ENDPOINT)).toContain('id="no-endpoint"');
    expect(led(await post(ENDPOINT, { url: ` ${PUBLIC} ` }))).toEqual([303, CATALOGUE]);
    expect(await html(CATALOGUE)).toContain("<p>Saved. Now choose what your endpoint gets.</p>");
    expect(await store.webhooks.settings(shop.id)).toEqual({ url: PUBLIC, topics: [] });
    await store.webhooks.set(shop.id, { topics: ["order.failed"] }, START);
    expect(led(await post(ENDPOINT, { url: `${PUBLIC}2` }))).toEqual([303, ENDPOINT]);
    const page = await html(ENDPOINT);
    expect(page).toContain("<p>Saved.</p>");
    expect(page).toContain("It gets 1 of 8 topics.");
    expect(await store.webhooks.settings(shop.id)).toEqual({ url: `${PUBLIC}2`, topics: ["order.failed"] });
  });

  test("whose name does not resolve is saved with a warning", async () => {
    const { html, post } = await signedIn();
    await post(ENDPOINT, { url: "https://hooks.example.com/" });
    expect(await html(CATALOGUE)).toContain("The name hooks.example.com does not resolve at present; the URL is kept.");
  });

  const refused: [string, string][] = [
    ["", "Enter the URL of the endpoint."],
    ["http://example.com/", "This URL is not accepted: only https:// URLs are accepted."],
    ["https://localhost/", "This URL is not accepted: localhost is a name of this machine or a private network."],
    ["https://10.0.0.1/", "This URL is not accepted: 10.0.0.1 is a private address."],
    ["https://u:p@example.com/", "This URL is not accepted: the URL has a user name or password in it."],
  ];
  test.each(refused)(
    "with the URL %p is refused, with a message at its field and what was typed",
    async (url, message) => {
      const { post, store, shop } = await signedIn();
      const answer = await post(ENDPOINT, { url });
      const html = await answer.text();
      expect(answer.status).toBe(422);
      expect(html).toContain(`<small id="url-error" class="field-error" role="alert">${message}</small>`);
      expect(html).toContain('aria-invalid="true" aria-describedby="url-error url-help"');
      if (url !== "") expect(html).toContain(`value="${url}"`);
      expect(await store.webhooks.settings(shop.id)).toEqual({ url: null, topics: [] });
    },
  );

  test("with a script in its URL is shown as text", async () => {
    const { post } = await signedIn();
    expect(await (await post(ENDPOINT, { url: `https://a.example/"${SCRIPT}` })).text()).not.toContain(SCRIPT);
  });

  test("is removed only after a question", async () => {
    const { html, post, store, shop } = await signedIn();
    await store.webhooks.set(shop.id, { url: "https://hooks.example.com/a", topics: TOPIC_NAMES }, START);
    expect(await html(`${ENDPOINT}/clear`)).toContain("<strong>https://hooks.example.com/a</strong>");
    expect(led(await post(`${ENDPOINT}/clear`))).toEqual([303, ENDPOINT]);
    expect(await store.webhooks.settings(shop.id)).toEqual({ url: null, topics: [] });
  });

  test("has forms whose addresses lead back to its page", async () => {
    const { get } = await signedIn();
    expect(led(await get(`${ENDPOINT}/test`))).toEqual([303, ENDPOINT]);
    expect(led(await get("/admin/sign-out"))).toEqual([303, "/admin/overview"]);
    expect(led(await get("/admin"))).toEqual([303, "/admin/overview"]);
  });
});

describe("a test event", () => {
  /** Signs in a visitor. The endpoint of the visitor's shop is a receiver. */
  async function withReceiver() {
    const visitor = await signedIn(LOCAL);
    const receiver = new Receiver();
    await visitor.store.webhooks.set(visitor.shop.id, { url: receiver.url, topics: [] }, START);
    const send = (topic = "order.failed") => visitor.post(`${ENDPOINT}/test`, { topic });
    /** Waits until the result contains a text. In a browser, the script reloads the result. */
    const shows = (text: string) => eventually(async () => (await result()).includes(text));
    const result = async () => (await visitor.html(ENDPOINT, { "X-Part": "live" })).replaceAll(/<[^>]+>/g, "");
    return { ...visitor, receiver, send, shows, result };
  }

  test("needs an endpoint and a topic", async () => {
    const { post, store, shop } = await signedIn(LOCAL);
    const refused = await post(`${ENDPOINT}/test`, { topic: "order.failed" });
    expect(refused.status).toBe(422);
    expect(await refused.text()).toContain(">There is no endpoint yet: set its URL first.<");
    await store.webhooks.set(shop.id, { url: PUBLIC }, START);
    expect((await post(`${ENDPOINT}/test`, { topic: "nothing" })).status).toBe(422);
    expect(await store.deliveries.list(shop.id, { limit: 1 })).toEqual([]);
  });

  test("shows its result on the page of the endpoint, where it stays", async () => {
    const { html, store, shop, receiver, send, shows, result } = await withReceiver();
    expect(await result()).toContain("The answer of your endpoint appears here.");
    const release = receiver.hold();
    expect(led(await send())).toEqual([303, `${ENDPOINT}#test`]);
    // Only the form can have woken the sender, because the test app runs no jobs.
    const [delivered] = await receiver.gets(1);
    expect(delivered?.topic).toBe("order.failed");
    expect(await html(ENDPOINT)).toContain('data-poll="on" data-announce="The test event is on its way."');
    release();
    await shows(" ms, signed with the current secret.");
    const page = await html(ENDPOINT);
    expect(page).toContain('id="test"');
    expect(page).toMatch(/data-poll="off" data-announce="200 in \d+ ms,"/);
    const [{ id } = { id: "" }] = await store.deliveries.list(shop.id, { limit: 1 });
    expect(page).toContain(`href="/admin/deliveries/${id}"`);
    expect(page).toContain('<option value="order.failed" selected>');
    expect(await receiver.allGenuine(await store.webhooks.secret(shop.id, START))).toBe(true);
    await store.webhooks.rotateSecret(shop.id, START);
    expect(await result()).toContain("signed with the former secret.");
    await store.webhooks.set(shop.id, { url: PUBLIC }, START);
    expect(await result()).toContain("This test went to a former URL.");
    expect(await html(ENDPOINT, { "X-Part": "live" })).toStartWith('<section id="live"');
  });

  test("says in words what failed, what to change and when the next attempt is", async () => {
    const { receiver, send, shows, result } = await withReceiver();
    receiver.answer = () => new Response(SCRIPT, { status: 404 });
    await send();
    await shows("Your endpoint answered 404. Your server has nothing at this path.");
    expect(await result()).toContain("The next attempt is in 2 min.");
    receiver.answer = () => new Response();
    await send("order.charged");
    await shows("200 in");
    expect(await result()).toContain("order.charged");
    expect(await result()).not.toContain("404");
  });

  test("that cannot connect says why", async () => {
    const { store, shop, send, shows } = await withReceiver();
    // Nothing listens on this port.
    await store.webhooks.set(shop.id, { url: "http://127.0.0.1:1029/" }, START);
    await send();
    await shows("We could not connect to your endpoint: the connection was refused. No program listens");
  });
});

describe("the catalogue of topics", () => {
  test("has each topic with its description, its sample and the fields of its data", async () => {
    const { html } = await signedIn();
    const page = (await html(CATALOGUE)).replaceAll(/<\/?span[^>]*>/g, "");
    for (const topic of TOPIC_NAMES) {
      const item = page.slice(page.indexOf(`id="topic-${topic}"`)).split("</li>")[0] ?? "";
      expect(item).toContain(TOPICS[topic]);
      expect(item).toContain(`"topic": "${topic}"`.replaceAll('"', "&quot;"));
      for (const field of Object.keys(EVENT_DATA[topic].properties)) expect(item).toContain(`<code>${field}</code>`);
      expect(item).toContain(`href="/admin/deliveries?topic=${topic}"`);
    }
    expect(page).toContain("gid of <code>SubscriptionContract</code>");
    expect(page).toContain("one of <code>voluntary</code>, <code>involuntary</code>");
    expect(page.length).toBeLessThan(120_000);
  });

  test("is saved without the URL", async () => {
    const { html, post, store, shop } = await signedIn();
    const saved = await post(CATALOGUE, { topics: ["order.failed", "order.charged"] });
    expect(led(saved)).toEqual([303, CATALOGUE]);
    expect(await store.webhooks.settings(shop.id)).toEqual({ url: null, topics: ["order.charged", "order.failed"] });
    const page = await html(CATALOGUE);
    expect(page).toContain("Saved. Nothing is sent yet: set the URL of your endpoint.");
    expect(page).toMatch(/value="order\.failed" checked/);
    expect(page).not.toMatch(/value="order\.recovered" checked/);
    await store.webhooks.set(shop.id, { url: PUBLIC }, START);
    await post(CATALOGUE, { topics: TOPIC_NAMES });
    expect(await html(CATALOGUE)).toContain("<p>Saved.</p>");
    await post(CATALOGUE);
    expect(await html(CATALOGUE)).toContain("No webhook is sent, because no topic is chosen.");
    expect(await store.webhooks.settings(shop.id)).toEqual({ url: PUBLIC, topics: [] });
  });

  test("refuses an unknown topic, and keeps the choice", async () => {
    const { post, store, shop } = await signedIn();
    const answer = await post(CATALOGUE, { topics: ["order.failed", SCRIPT] });
    const html = await answer.text();
    expect(answer.status).toBe(422);
    expect(html).toContain("is not a topic: choose from");
    expect(html).not.toContain(SCRIPT);
    expect(html).toMatch(/value="order\.failed" checked/);
    expect(await store.webhooks.settings(shop.id)).toEqual({ url: null, topics: [] });
  });
});

describe("the signing secret", () => {
  test("is hidden until it is asked for, and rotated only after a question", async () => {
    const { html, post, store, shop } = await signedIn();
    const secret = await store.webhooks.secret(shop.id, START);
    const hidden = /whsec_[\w+/]/;
    expect(await html(SECRET)).not.toMatch(hidden);
    expect(await (await post(SECRET)).text()).toContain(secret.replaceAll("&", "&amp;"));
    expect(await html(`${ENDPOINT}/rotate`)).toContain("Make a new signing secret?");
    expect(await store.webhooks.secret(shop.id, START)).toBe(secret);
    expect(led(await post(`${ENDPOINT}/rotate`))).toEqual([303, SECRET]);
    const next = await store.webhooks.secret(shop.id, START);
    expect(next).not.toBe(secret);
    expect(await html(SECRET)).toContain(next);
    expect(await html(SECRET)).not.toMatch(hidden);
  });

  test("can sign with the former one too after a rotation, and the page says until when", async () => {
    const { all, html, post, store, shop } = await signedIn();
    await store.webhooks.secret(shop.id, START);
    expect(await html(`${ENDPOINT}/rotate`)).toContain('<option value="24h" selected>For 24 hours</option>');
    const SHOWN = 'id="overlap-end"';
    expect(await html(SECRET)).not.toContain(SHOWN);
    expect(led(await post(`${ENDPOINT}/rotate`, { overlap: "1h" }))).toEqual([303, SECRET]);
    expect(await store.webhooks.overlapEndsAt(shop.id)).toBe(all.clock.ms + HOUR);
    expect(await html(SECRET)).toContain(SHOWN);
    all.clock.ms += HOUR;
    expect(await html(SECRET)).not.toContain(SHOWN);
    for (const overlap of ["1w", "0s", "40d"]) expect((await post(`${ENDPOINT}/rotate`, { overlap })).status).toBe(400);
    expect(await store.webhooks.secrets(shop.id)).toHaveLength(2);
    expect(led(await post(`${ENDPOINT}/rotate`, { overlap: "" }))).toEqual([303, SECRET]);
    expect(await store.webhooks.overlapEndsAt(shop.id)).toBeNull();
  });

  test("has code beside it that verifies a webhook, from the programs of the documentation", async () => {
    const { html } = await signedIn();
    const page = await html(SECRET);
    const functions = verifyFunctions();
    expect(functions.map(({ language, framework }) => [language, framework])).toEqual([
      ["Node", "Express"],
      ["Python", "Flask"],
      ["Ruby", "Rails"],
      ["PHP", undefined],
      ["Go", undefined],
    ]);
    const programs = SAMPLES.filter((each) => each.page === "webhooks.md" && each.code.includes('"genuine"'));
    for (const [index, { language, highlighting, code }] of functions.entries()) {
      expect(programs[index]).toMatchObject({ language: highlighting, code: expect.stringContaining(code) });
      expect(code).toMatch(/(function|def|func) verify\(/);
      expect(code).not.toContain("genuine");
      const shown = new RegExp(`<code id="verify-${highlighting}">(.*?)</code></pre>`, "s").exec(page)?.[1] ?? "";
      const text = shown
        .replaceAll(/<[^>]+>/g, "")
        .replaceAll("&lt;", "<")
        .replaceAll("&quot;", '"');
      expect(text.replaceAll("&amp;", "&")).toBe(code);
      expect(page).toContain(`<summary>${language}</summary>`);
    }
    expect(page.match(/<details name="code"/g)).toHaveLength(5);
    expect(page.match(/<details name="code" open/g)).toHaveLength(1);
  });
});

test("the question whether to remove the endpoint leads back where none is set", async () => {
  const { get, store, shop, html } = await signedIn();
  expect((await get("/admin/webhooks/clear")).headers.get("location")).toBe("/admin/webhooks");
  await store.webhooks.set(shop.id, { url: "https://hooks.example.com/x" }, START);
  expect(await html("/admin/webhooks/clear")).toContain("<strong>https://hooks.example.com/x</strong>");
});

import { expect, test } from "bun:test";
import { TRIGGER_HANDLES } from "../../src/domain/events/trigger.ts";
import { ASKED_SCOPES } from "../../src/domain/platform/connection.ts";
import { end, queueRewards } from "../conformance/delivery-fixtures.ts";
import { receiveFailed, TOKENS } from "../conformance/fixtures.ts";
import { apply, START } from "../support/app.ts";
import { deadDelivery } from "../support/dead-delivery.ts";
import { subscription } from "../support/records.ts";
import { signedIn } from "../support/signed-in.ts";

const OVERVIEW = "/admin/overview";

function verdictIn(page: string): string {
  const [, text = ""] = /id="verdict" class="[^"]*"><p>(.*?)<\/p>/.exec(page) ?? [];
  return text.replaceAll(/<[^>]*>/g, "").trim();
}

function figuresIn(page: string): Record<string, string> {
  const [list = ""] = /<dl class="stats".*?<\/dl>/s.exec(page) ?? [];
  const found = [...list.matchAll(/<dt>(.*?)<\/dt><dd>(.*?)<\/dd>/gs)];
  return Object.fromEntries(
    found.map(([, name = "", value = ""]) => [name, value.replaceAll(/<span class="hint">.*|<[^>]*>/g, "")]),
  );
}

test("a new shop is told what to do next, and a done step is ticked", async () => {
  const { html, store, shop } = await signedIn();
  for (const { id } of await store.keys.list(shop.id)) await store.keys.revoke(shop.id, id, START);
  const page = await html(OVERVIEW);
  expect(verdictIn(page)).toBe("Nothing reads this shop's data yet. Begin with an API key or an endpoint.");
  expect(page.match(/○ /g)).toHaveLength(4);
  // Without deliveries there are no statistics.
  expect(page).not.toContain('id="stats"');
  expect(page).toContain('id="overview-sample"');
  await store.webhooks.set(shop.id, { url: "https://hooks.example.com/in" }, START);
  const later = await html(OVERVIEW);
  expect(later).toContain('id="stats"');
  expect([later.match(/○ /g)?.length, later.match(/✓ /g)?.length]).toEqual([3, 1]);
  expect(verdictIn(later)).toBe("All is well. 0 deliveries in the last 24 hours.");
});

test("a shop that has done all steps is not told what to do next", async () => {
  const { html, store, shop } = await signedIn();
  await store.webhooks.set(shop.id, { url: "https://hooks.example.com/in", topics: ["loyalty.reward_earned"] }, START);
  await store.syncs.complete(shop.id, "full", START, 1, START);
  expect(await html(OVERVIEW)).toContain('id="next"');
  await queueRewards(store, shop, [1]);
  await end(store, shop, "delivered");
  expect(await html(OVERVIEW)).not.toContain('id="next"');
});

test("dead deliveries come before all else that is well, and the bars count their attempts", async () => {
  const { html, store, shop } = await signedIn();
  await deadDelivery(store, shop);
  const page = await html(OVERVIEW);
  expect(verdictIn(page)).toBe("1 delivery is dead. Repair the endpoint, then resend. See the dead deliveries");
  expect(figuresIn(page)).toMatchObject({
    Endpoint: "not set",
    "Succeeded, 24 hours": "0.0 %",
    Dead: "1",
    Waiting: "0",
  });
  expect(page).toContain("Deliveries a day, last 30 days: 0 delivered, 0 retried, 1 dead");
  expect(page).toContain("<span>at most 1 attempt a day</span>");
  expect(page).toContain("<title>2026-03-01: 0 delivered, 0 retried, 1 dead</title>");
  expect(page.match(/<rect fill="url\(#hatch-\w+\)"/g)).toEqual(['<rect fill="url(#hatch-dead)"']);
  const headings = ["Day", "Delivered", "Retried", "Dead"].map((name) => `<th scope="col">${name}</th>`);
  expect(page).toContain(`<table id="days"><thead><tr>${headings.join("")}</tr></thead>`);
  expect(page.match(/<tr><th scope="row">\d{4}-\d\d-\d\d<\/th>/g)).toHaveLength(30);
});

test("a shop that is loaded is ticked, also without a subscription, and its load is told once", async () => {
  const { html, store, shop } = await signedIn();
  await store.connections.connect(shop.id, "token", TOKENS, ASKED_SCOPES, START);
  const loading = await html(OVERVIEW);
  expect(verdictIn(loading)).toStartWith("Loading your shop:");
  expect(loading).not.toContain('id="load-notice"');
  expect(loading).not.toContain("Last comparison with Shopify");
  await store.syncs.complete(shop.id, "full", START, 0, START);
  const loaded = await html(OVERVIEW);
  expect(loaded).toContain("</span>Load the shop's data");
  expect(loaded).toContain("Last comparison with Shopify");
});

test("workflows that were not started lead to their own log", async () => {
  const { all, html, store, shop } = await signedIn();
  await store.connections.connect(shop.id, "token", TOKENS, [], START);
  await store.shops.set(shop.domain, { triggers: TRIGGER_HANDLES });
  await apply(all.app, shop, [subscription(1)]);
  await end(store, shop, "dead");
  // Disconnects the shop. Otherwise the page would only say that the shop is being loaded.
  await store.connections.disconnect(shop.id, START + 1);
  expect(await html(OVERVIEW)).toContain(
    '1 workflow was not started. Read why, then resend. <a href="/admin/deliveries/workflows?status=dead">',
  );
});

test("a trouble of the connection is the first thing that the page says, and then the end of the connection", async () => {
  const { html, store, shop } = await signedIn();
  await deadDelivery(store, shop);
  await store.connections.connect(shop.id, "token", TOKENS, [], START);
  await store.connections.setTrouble(shop.id, "the shop is frozen (HTTP 402); run `sds x`", START);
  expect(verdictIn(await html(OVERVIEW))).toBe(
    "Shopify has frozen the shop, because a bill is unpaid. " +
      "Pay the bill in Shopify's admin. Then the connection comes back by itself. See the data",
  );
  await store.connections.uninstall(shop.id, START + 1);
  expect(verdictIn(await html(OVERVIEW))).toStartWith("The app was uninstalled on 2026-03-01.");
});

test("all is not well while a change from Shopify cannot be processed", async () => {
  const { html, store, shop } = await signedIn();
  await store.webhooks.set(shop.id, { url: "https://hooks.example.com/", topics: [] }, START);
  expect(verdictIn(await html(OVERVIEW))).toBe("All is well. 0 deliveries in the last 24 hours.");
  await receiveFailed(store, shop);
  expect(verdictIn(await html(OVERVIEW))).toBe("1 change from Shopify could not be processed. See why, and try again");
});

test("more than 10,000 waiting deliveries are not all counted, and the page says so", async () => {
  const { html, store, shop } = await signedIn();
  await store.webhooks.set(shop.id, { url: "https://hooks.example.com/", topics: ["loyalty.reward_earned"] }, START);
  await queueRewards(store, shop, [...Array(10_001).keys()]);
  const page = await html(OVERVIEW);
  expect(verdictIn(page)).toStartWith("At least 10,000 deliveries wait for an attempt.");
  expect(figuresIn(page)).toMatchObject({ Waiting: "10,000", Retrying: "0" });
  expect(page).toContain('10,000<span class="hint">or more</span>');
});

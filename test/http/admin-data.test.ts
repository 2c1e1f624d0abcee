import { describe, expect, test } from "bun:test";
import { dataRequest } from "../../src/domain/people/data-request.ts";
import { ASKED_SCOPES as ALL_SCOPES } from "../../src/domain/platform/connection.ts";
import { NO_COUNTS } from "../../src/domain/platform/sync.ts";
import { receipt, receiveFailed, TOKENS } from "../conformance/fixtures.ts";
import { apply, START } from "../support/app.ts";
import { customer, order, subscription } from "../support/records.ts";
import { signedIn } from "../support/signed-in.ts";
import { factsIn, textIn, textOf } from "./page-parts.ts";

describe("the summary", () => {
  test("counts the rows, and leads to them", async () => {
    const { all, html, shop } = await signedIn();
    await apply(all.app, shop, [customer(1), customer(2), subscription(1), order(1, 1)]);
    const page = await html("/admin/data");
    expect(factsIn(page, "counts")).toEqual({ Subscriptions: "1 Browse", Customers: "2 Browse", Orders: "1 Browse" });
    expect(page).toContain('href="/admin/data/browse?resource=orders"');
  });

  test("says since when the data is in step, with the last comparison and its corrections", async () => {
    const { all, html, store, shop } = await signedIn();
    await apply(all.app, shop, [subscription(1)]);
    await store.connections.connect(shop.id, "token", TOKENS, [], START);
    await store.syncs.complete(shop.id, "full", START, 1, START);
    await store.syncs.complete(shop.id, "changes", START, 7, START);
    all.clock.ms = START + 40_000;
    expect(textIn(await html("/admin/data"), "verdict")).toStartWith("The shop does not allow the app to use");
    await store.connections.connect(shop.id, "token", TOKENS, ALL_SCOPES, START);
    const page = await html("/admin/data");
    expect(textIn(page, "verdict")).toBe("In step with Shopify 40 s ago, 7 corrections at the last comparison.");
    expect(factsIn(page, "mirror-facts")).toMatchObject({
      Shopify: "connected",
      "Last change from Shopify": "none in the last seven days",
      "Last comparison with Shopify": "40 s ago",
      "Corrections by the last comparison": "7",
    });
    await store.inbox.receive([receipt(shop, "1")], START);
    const later = await html("/admin/data");
    expect(textIn(later, "verdict")).toBe("1 change from Shopify will be processed next.");
    expect(factsIn(later, "mirror-facts")).toMatchObject({
      "Last change from Shopify": "40 s ago",
      "Waiting in the inbox": "1",
      "Failed in the inbox": "0",
    });
  });

  test("says what to do next: connect, load, or look into the inbox", async () => {
    const { all, html, store, shop } = await signedIn();
    const shows = async () => (await html("/admin/data")).match(/id="(empty-mirror|no-subscriptions|loading)"/g);
    expect(await shows()).toEqual(['id="empty-mirror"']);
    expect(await html("/admin/data")).not.toContain("This data was imported");
    expect(textIn(await html("/admin/data"), "empty-mirror")).toContain("Install the app in Shopify's admin");
    await store.connections.connect(shop.id, "token", TOKENS, ALL_SCOPES, START);
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
    const failed = await html("/admin/data");
    expect(textIn(failed, "verdict")).toStartWith("1 change from Shopify could not be processed.");
    expect(/<p id="todo">(.*?)<\/p>/.exec(failed)?.[1]).toContain('href="/admin/data/inbox"');
    await store.connections.disconnect(shop.id, Number.MAX_SAFE_INTEGER);
    const page = await html("/admin/data");
    expect(factsIn(page, "mirror-facts")["Shopify"]).toBe("not connected");
    expect(textIn(page, "verdict")).toBe(
      "The shop is not connected to Shopify. This data was imported, or sent by the billing system.",
    );
  });

  test("a trouble of the connection is told in words, with what to do and without commands", async () => {
    const { html, store, shop } = await signedIn();
    await store.connections.connect(shop.id, "token", TOKENS, ALL_SCOPES, START);
    await store.connections.setTrouble(shop.id, "the shop is locked (HTTP 423); run `sds shop connect`", START);
    const page = await html("/admin/data");
    expect(textIn(page, "verdict")).toBe(
      "Shopify has locked the shop. Nothing new has arrived since 2026-03-01 12:00 UTC. Ask Shopify's support why.",
    );
    expect(factsIn(page, "mirror-facts")["Shopify"]).toBe("connection refused");
    expect(textOf(await html("/admin/triggers"))).toContain(
      "No workflow can be started at present. Shopify has locked the shop. Ask Shopify's support why.",
    );
    await store.connections.uninstall(shop.id, START + 1);
    expect(textIn(await html("/admin/data"), "verdict")).toStartWith("The app was uninstalled on 2026-03-01");
  });
});

test.each([
  "/admin/data",
  "/admin/data/browse",
  "/admin/data/inbox",
  "/admin/data/requests",
  "/admin/plan",
  "/admin/triggers",
  "/admin/overview",
])("%s has no command and no jargon", async (path) => {
  const { html, store, shop } = await signedIn();
  await store.connections.connect(shop.id, "token", TOKENS, [], START);
  await receiveFailed(store, shop);
  const dataRequests = [dataRequest("1", "gid://shopify/Customer/7", START)];
  await store.mirror.applyRecords([{ shop, records: [], dataRequests }], START, []);
  for (const connect of [true, false]) {
    if (!connect) await store.connections.disconnect(shop.id, Number.MAX_SAFE_INTEGER);
    expect(textOf(await html(path))).not.toMatch(/\bsds [a-z]|mirror|reconcil/i);
  }
});

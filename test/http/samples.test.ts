import { expect, test } from "bun:test";
import { TOKENS } from "../conformance/fixtures.ts";
import { START } from "../support/app.ts";
import { signedIn } from "../support/signed-in.ts";

/** Sections that show a sample if the shop has no data: the page, the section's id, and a part of the sample. */
const SAMPLES: [path: string, id: string, text: string][] = [
  ["/admin/keys", "no-keys", "/api/v1/subscriptions?limit=1"],
  ["/admin/webhooks", "no-endpoint", "&quot;topic&quot;: &quot;order.charged&quot;"],
  ["/admin/deliveries", "no-deliveries", "subscription.updated"],
  ["/admin/deliveries/workflows", "no-starts", "subscription-created"],
  ["/admin/data", "no-subscriptions", "&quot;status&quot;: &quot;ACTIVE&quot;"],
  ["/admin/data/browse", "no-rows", "&quot;status&quot;: &quot;ACTIVE&quot;"],
  ["/admin/data/inbox", "no-failed", "Customer updated"],
  ["/admin/data/requests", "no-requests", "Customer 7001"],
  ["/admin/fields", "no-fields", "&quot;gift_note&quot;"],
];

test.each(SAMPLES)(
  "%s of an empty shop says what it would show, with a sample that is marked",
  async (path, id, text) => {
    const { html, store, shop } = await signedIn();
    await store.connections.connect(shop.id, "token", TOKENS, [], START);
    await store.syncs.complete(shop.id, "full", START, 0, START);
    for (const { id: key } of await store.keys.list(shop.id)) await store.keys.revoke(shop.id, key, START);
    const page = await html(path);
    const sample = new RegExp(`<figure class="sample" id="${id}-sample">(.*?)</figure>`, "s").exec(page)?.[1] ?? "";
    expect(page).toContain(`id="${id}"`);
    expect(sample).toStartWith('<figcaption><span class="badge">Sample</span> ');
    expect(sample.replaceAll(/<\/?span[^>]*>/g, "")).toContain(text);
    // A sample has no links, forms or buttons, and names no shop.
    expect(sample).not.toMatch(/<a |<form|<button|href=|myshopify/);
  },
);

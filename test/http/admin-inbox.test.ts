import { describe, expect, test } from "bun:test";
import { receipt, receiveFailed } from "../conformance/fixtures.ts";
import { START } from "../support/app.ts";
import { gid } from "../support/records.ts";
import { led, signedIn } from "../support/signed-in.ts";
import { textIn } from "./page-parts.ts";

const BROWSE = "/admin/data/browse";

describe("the inbox", () => {
  const INBOX = "/admin/data/inbox";

  test("lists failed items with what they are about and why, and one or all of them are tried again", async () => {
    const { html, post, store, shop } = await signedIn();
    expect(textIn(await html(INBOX), "no-failed")).toBe("No item has failed.");
    const about = (n: number) => receipt(shop, `w${n}`, { topic: "orders/paid", subject: gid.contract(n) });
    await store.inbox.receive([about(1), about(2), about(3)], START);
    const items = await store.inbox.list(shop.id, { limit: 3 });
    const numbers = items.map(({ number }) => number).toReversed();
    await store.inbox.postpone(shop.id, numbers.slice(0, 1), "the platform sent an invalid amount: <b>x", null);
    await store.inbox.postpone(shop.id, numbers.slice(1, 2), "refused (HTTP 423); run `sds shop connect`", null);
    const page = await html(INBOX);
    expect(textIn(page, "waiting")).toBe("1 item waits. You need not do anything.");
    expect(textIn(page, `item-${numbers[0]}`)).toStartWith(
      "Order paid Subscription 1 Shopify sent an invalid amount: <b>x.",
    );
    expect(textIn(page, `item-${numbers[1]}`)).toContain("Shopify has locked the shop. Ask Shopify's support why.");
    expect(page).toContain(`href="${BROWSE}?find=${encodeURIComponent(gid.contract(1))}"`);
    expect(led(await post(`${INBOX}/${numbers[0]}/retry`))).toEqual([303, INBOX]);
    expect(await store.inbox.count(shop.id)).toEqual({ waiting: 2, failed: 1 });
    expect(await html(INBOX)).toContain("The item is processed again now.");
    expect(await html(INBOX)).not.toContain('id="retry-failed"');
    await store.inbox.postpone(shop.id, numbers.slice(0, 1), "again", null);
    expect(await html(INBOX)).toContain('id="retry-failed"');
    expect(led(await post(`${INBOX}/retry`))).toEqual([303, INBOX]);
    expect(await store.inbox.count(shop.id)).toEqual({ waiting: 3, failed: 0 });
  });

  test("another shop's items, and items that are none, are not found", async () => {
    const { all, html, post, store } = await signedIn();
    const beta = await all.addShop("beta.myshopify.com");
    await receiveFailed(store, beta.shop);
    const [item] = await store.inbox.list(beta.shop.id, { limit: 1 });
    for (const id of [String(item?.number), "0", "x", "9".repeat(16)])
      expect((await post(`${INBOX}/${id}/retry`)).status).toBe(404);
    await post(`${INBOX}/retry`);
    expect(await store.inbox.count(beta.shop.id)).toEqual({ waiting: 0, failed: 1 });
    expect(await html(INBOX)).toContain('id="no-failed"');
  });
});

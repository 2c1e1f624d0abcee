import { test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { TOPIC_NAMES } from "../../src/domain/events/event.ts";
import { TRIGGER_HANDLES } from "../../src/domain/events/trigger.ts";
import { customerId, subscriptionId } from "../../src/domain/ids.ts";
import { dataRequest } from "../../src/domain/people/data-request.ts";
import { ASKED_SCOPES } from "../../src/domain/platform/connection.ts";
import { receipt, receiveFailed, TOKENS } from "../conformance/fixtures.ts";
import { apply, START, temporaryFolder } from "../support/app.ts";
import { deadDelivery } from "../support/dead-delivery.ts";
import { cancelFlow, customer, fieldValue, gid, order, reward, subscription } from "../support/records.ts";
import { signedIn } from "../support/signed-in.ts";
import { expectStored, withPlaceholders } from "../support/stored-text.ts";
import { outlineOf, pageFrom } from "./outline.ts";

const ADDRESS = { SDS_PUBLIC_URL: "https://sds.example.com" };
const DOMAIN = "alpha.myshopify.com";
/** Pages that are compared for both shops. */
const PAGES = (
  "overview keys webhooks webhooks/secret deliveries deliveries?status=dead deliveries/workflows triggers data " +
  "data/browse data/browse?resource=customers data/browse?resource=orders data/inbox data/requests audit alerts plan " +
  "style fields"
).split(" ");
const PLACEHOLDERS: [RegExp, string][] = [
  [/(?<=csrf=|once=)[\w-]+/g, "<token>"],
  [/(?<=session )[0-9a-f]{6}/g, "<session>"],
  [/v1,[A-Za-z0-9+/]{43}=/g, "<signature>"],
  [/(?<=shown\.\w+=)\w+/g, "<hash>"],
];
type SignedIn = Awaited<ReturnType<typeof signedIn>>;

/** Gives the shop something for each page. @returns the id of a dead delivery */
async function fillShop({ all, post, store, shop }: SignedIn): Promise<string> {
  await store.connections.connect(shop.id, "token", TOKENS, ASKED_SCOPES, START);
  await post("/admin/webhooks", { url: "https://hooks.example.com/in?a=1" });
  await store.webhooks.set(shop.id, { topics: TOPIC_NAMES }, START);
  await store.shops.set(DOMAIN, { triggers: TRIGGER_HANDLES });
  // Keys of the same time come in the order of their random ids.
  all.clock.ms = START + 1;
  await post("/admin/keys", { label: "Warehouse" });
  await post("/admin/fields", { key: "size", label: "Size", type: "choice", options: "S\nM", personal: "yes" });
  await post("/admin/fields", { key: "note", label: "Gift note", type: "text", subscriberEditable: "on" });
  const dead = await deadDelivery(store, shop);
  await apply(all.app, shop, [
    ...[customer(1), customer(2, { email: "ben@example.com", marketingConsent: false }), subscription(1)],
    subscription(2, { customer: gid.customer(2), status: "PAUSED", nextBillingDate: null }),
    ...[
      order(1, 0, { source: "checkout" }),
      order(1, 1),
      order(1, 2, { status: "FAILED", shopifyId: null, reason: "card_declined" }),
    ],
    ...[reward("r1", { source: "loyalty" }), cancelFlow("f1"), fieldValue(1, "size", "M")],
  ]);
  await receiveFailed(store, shop);
  await store.inbox.receive([receipt(shop, "1")], START);
  const request = dataRequest("7", gid.customer(1), START);
  await store.mirror.applyRecords([{ shop, records: [], dataRequests: [request] }], START, []);
  await store.alerts.addAddress(shop.id, "ada@example.com", START);
  await store.styles.set(shop.id, { source: ".sds { color: red }", hash: "a" });
  return dead;
}

/** Expects the stored outlines of pages. Only the first page has the header that all pages share. */
async function expectOutlines({ get }: SignedIn, file: string, paths: readonly string[]): Promise<void> {
  const pages = [];
  for (const [index, path] of paths.entries()) {
    const answer = await get(`/admin/${path}`);
    const html = await answer.text();
    pages.push(`== ${answer.status} /admin/${path}\n${outlineOf(index === 0 ? html : pageFrom(html, "main"))}\n`);
  }
  await expectStored(join(import.meta.dir, "stored", file), withPlaceholders(pages.join("\n"), PLACEHOLDERS));
}

test("the pages of a new shop show what is stored here", async () => {
  const all = await signedIn(ADDRESS);
  await all.store.keys.revoke(all.shop.id, all.keyId, START);
  await expectOutlines(all, "new-shop.txt", PAGES);
});

test("the pages of a shop with data show what is stored here", async () => {
  const mailServer = join(temporaryFolder(), "smtp");
  writeFileSync(mailServer, "smtp://mail.example.com/?from=sds@example.com\n", { mode: 0o600 });
  const all = await signedIn({ ...ADDRESS, SDS_SMTP_URL_FILE: mailServer });
  const delivery = await fillShop(all);
  all.all.clock.ms = START + 3_600_000;
  const contract = subscriptionId(DOMAIN, gid.contract(1));
  await expectOutlines(all, "full-shop.txt", [
    ...PAGES,
    ...["webhooks/topics", "webhooks/rotate", "webhooks/clear", "deliveries/retry-dead", "style/clear"],
    ...[`keys/${all.keyId}/revoke`, `deliveries/${delivery}`, `deliveries/${delivery}/curl`],
    ...[`data/browse/${contract}`, `data/browse/${customerId(DOMAIN, gid.customer(1))}`, "data/requests/1/answered"],
    ...["fields/edit/size", `fields/values/${contract}`],
  ]);
});

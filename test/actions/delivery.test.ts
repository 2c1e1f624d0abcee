import { expect, test } from "bun:test";
import { findDelivery, retryDeadDeliveries, retryDelivery, retryResultText } from "../../src/actions/delivery.ts";
import { verifySignature } from "../../src/client/signature.ts";
import { chooseAllEvents } from "../conformance/fixtures.ts";
import { OPERATOR } from "../support/actors.ts";
import { apply, START, testShop } from "../support/app.ts";
import { deadDelivery } from "../support/dead-delivery.ts";
import { subscription } from "../support/records.ts";

async function opened() {
  const all = await testShop();
  const { shop: other } = await all.addShop("beta.myshopify.com");
  return { ...all, store: all.app.store, other };
}

test("a delivery is found with its attempts and the signature that every attempt has", async () => {
  const { store, shop, other } = await opened();
  const id = await deadDelivery(store, shop);
  const { delivery, signature } = await findDelivery(store, shop, id);
  expect(delivery).toMatchObject({ id, status: "dead", attempts: 1, history: [{ statusCode: 500 }] });
  expect(await verifySignature(await store.webhooks.secret(shop.id, START), delivery.body, signature)).toBe(true);
  await expect(findDelivery(store, other, id)).rejects.toMatchObject({ code: "not_found" });
});

test("a workflow start has no signature", async () => {
  const { app, store, shop } = await opened();
  await chooseAllEvents(store, shop);
  await apply(app, shop, [subscription(1)]);
  const [queued] = await store.deliveries.list(shop.id, { limit: 1, kind: "trigger" });
  const { delivery, signature } = await findDelivery(store, shop, queued?.id ?? "");
  expect([delivery.kind, signature]).toEqual(["trigger", null]);
});

test("a retried delivery is due now, with the same body and signature", async () => {
  const { store, shop, other } = await opened();
  const id = await deadDelivery(store, shop);
  const before = await findDelivery(store, shop, id);
  await expect(retryDelivery(store, { shop: other, actor: OPERATOR }, id, START)).rejects.toMatchObject({
    code: "not_found",
  });
  const { delivery, signature } = await retryDelivery(store, { shop, actor: OPERATOR }, id, START + 5);
  const { body } = before.delivery;
  expect(delivery).toMatchObject({ status: "pending", attempts: 1, nextAttemptAt: START + 5, body });
  expect(signature).toBe(before.signature);
});

test.each([
  [0, "0 deliveries are sent again now."],
  [1, "1 delivery is sent again now."],
  [2, "2 deliveries are sent again now."],
  [1_000, "1,000 deliveries are sent again now."],
])("the message about %d deliveries agrees with their number", (count, text) => {
  expect(retryResultText(count)).toBe(text);
});

test("a retry of all dead deliveries that breaks off in the middle is in the audit list", async () => {
  const { store, shop } = await opened();
  await deadDelivery(store, shop);
  const brokenOff = async () => {
    throw new Error("the process ends here");
  };
  const broken = { audit: store.audit, deliveries: { ...store.deliveries, retryDead: brokenOff } };
  await expect(retryDeadDeliveries(broken, { shop, actor: OPERATOR }, {}, START)).rejects.toThrow("ends here");
  const entries = () => store.audit.list(shop.id, {}, {}, 10);
  const resent = { action: "deliveries.resent", after: { deliveries: 1 } };
  expect(await entries()).toMatchObject([resent]);
  expect(await retryDeadDeliveries(store, { shop, actor: OPERATOR }, {}, START)).toBe(1);
  expect(await retryDeadDeliveries(store, { shop, actor: OPERATOR }, {}, START)).toBe(0);
  expect(await entries()).toMatchObject([resent, resent]);
});

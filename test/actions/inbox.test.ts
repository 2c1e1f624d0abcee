import { expect, test } from "bun:test";
import { retryFailedItems } from "../../src/actions/inbox.ts";
import { receiveFailed } from "../conformance/fixtures.ts";
import { OPERATOR } from "../support/actors.ts";
import { START, testShop } from "../support/app.ts";

test("a retry of all failed items that breaks off is in the audit list, and one without failed items is not", async () => {
  const { app, shop } = await testShop();
  const { store } = app;
  const by = { shop, actor: OPERATOR };
  expect(await retryFailedItems(store, by, START)).toBe(0);
  await receiveFailed(store, shop, 2);
  const brokenOff = async () => {
    throw new Error("the process ends here");
  };
  const broken = { audit: store.audit, inbox: { ...store.inbox, retryFailed: brokenOff } };
  await expect(retryFailedItems(broken, by, START)).rejects.toThrow("ends here");
  expect(await store.audit.list(shop.id, {}, {}, 10)).toMatchObject([{ action: "item.retried", after: { items: 2 } }]);
  expect(await retryFailedItems(store, by, START)).toBe(2);
});

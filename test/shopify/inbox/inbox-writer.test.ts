import { expect, test } from "bun:test";
import { createInboxWriter } from "../../../src/shopify/inbox/inbox-writer.ts";
import type { Receipt } from "../../../src/store/port/inbox.ts";
import { receipt } from "../../conformance/fixtures.ts";
import { START } from "../../support/app.ts";

const ALPHA = { id: 1, domain: "alpha.myshopify.com", firstDomain: "alpha.myshopify.com" };
const BETA = { id: 2, domain: "beta.myshopify.com", firstDomain: "beta.myshopify.com" };

/** Makes a writer. Its shop alpha is locked until the test unlocks it. */
function opened(isShared: boolean) {
  const { promise: unlocked, resolve: unlock } = Promise.withResolvers<void>();
  const kept: (string | null)[] = [];
  const locked = Promise.withResolvers<void>();
  const store = {
    async receive(receipts: readonly Receipt[]) {
      if (receipts.some(({ shopId }) => shopId === ALPHA.id)) {
        locked.resolve();
        await unlocked;
      }
      kept.push(...receipts.map(({ webhookId }) => webhookId));
      return receipts.map(() => true);
    },
  };
  const writer = createInboxWriter(
    store,
    () => START,
    () => {},
    isShared,
  );
  return { ...writer, kept, unlock, locked: locked.promise };
}

test.each([
  ["keeps platform webhooks of others while another node has locked a shop", true, ["b", "a"]],
  ["keeps them in their order where nobody else can lock a shop", false, ["a", "b"]],
])("%s", async (_name, isShared, order) => {
  const { submit, drain, kept, unlock, locked } = opened(isShared);
  const first = submit(receipt(ALPHA, "a"));
  await locked;
  const second = submit(receipt(BETA, "b"));
  if (isShared) expect(await second).toBe(true);
  unlock();
  expect(await Promise.all([first, second])).toEqual([true, true]);
  await drain();
  expect(kept).toEqual(order);
});

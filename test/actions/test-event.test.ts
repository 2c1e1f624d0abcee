import { expect, test } from "bun:test";
import { noAccess } from "../../src/actions/access.ts";
import { queueTestEvent } from "../../src/actions/test-event.ts";
import { TOPIC_NAMES } from "../../src/domain/events/event.ts";
import { MERCHANT } from "../support/actors.ts";
import { START, testShop } from "../support/app.ts";

async function opened(plan: "pro" | "free" = "pro") {
  const { app, shop } = await testShop({}, plan);
  const { store } = app;
  return { store, shop, queue: (topic: string) => queueTestEvent(store, { shop, actor: MERCHANT, topic }, START) };
}

test.each(TOPIC_NAMES)(
  "a test event of %s is queued once and marked as a test, although no topic is chosen",
  async (topic) => {
    const { store, shop, queue } = await opened();
    await store.webhooks.set(shop.id, { url: "https://hooks.example.com/", topics: [] }, START);
    const id = await queue(topic);
    expect(await store.deliveries.list(shop.id, { limit: 10 })).toMatchObject([
      { id, topic, test: true, status: "pending", createdAt: START },
    ]);
    expect(JSON.parse((await store.deliveries.show(shop.id, id)).body)).toMatchObject({ id, topic, shop: shop.domain });
  },
);

test("a test event is refused for an unknown topic, then for the plan, then for a missing endpoint", async () => {
  const free = await opened("free");
  const unknown = expect.stringContaining('"order.paid" is not a topic');
  await expect(free.queue("order.paid")).rejects.toMatchObject({ code: "invalid", message: unknown });
  const plan = { code: "plan_required", message: noAccess("webhooks") };
  await expect(free.queue("order.failed")).rejects.toMatchObject(plan);
  const pro = await opened();
  const missing = { code: "failed", message: "there is no endpoint yet: set its URL first" };
  await expect(pro.queue("order.failed")).rejects.toMatchObject(missing);
  expect(await pro.store.deliveries.list(pro.shop.id, { limit: 10 })).toEqual([]);
});

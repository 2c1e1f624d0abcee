import { expect, test } from "bun:test";
import { START } from "../support/app.ts";
import { subscription } from "../support/records.ts";
import { newestId, retrying, sending, settled } from "./sending.ts";

const MINUTE = 60_000;

/** Makes a delivery that is dead after two attempts. */
async function dead() {
  const sent = await retrying({ SDS_RETRY_WAITS: "1ms" });
  sent.advance(1);
  await settled(sent.log, "dead", 2);
  return { ...sent, id: await newestId(sent.log) };
}

test("a dead delivery gets a new round of attempts; the count goes on, and body and signature stay", async () => {
  const { test, receiver, log, id, advance } = await dead();
  const retried = await test.app.store.deliveries.retry(1, id, test.clock.ms);
  expect(retried).toMatchObject({ status: "pending", attempts: 2, nextAttemptAt: test.clock.ms });
  test.app.sender.wake();
  await settled(log, "retrying", 3);
  receiver.answer = () => new Response();
  advance(1);
  await settled(log, "delivered", 4);
  expect(new Set(receiver.received.map(({ body, signature }) => body + signature)).size).toBe(1);
});

test("a delivered delivery is sent once more", async () => {
  const { test, intake, receiver, log } = await sending(["subscription.created"]);
  await intake(subscription(1));
  await settled(log, "delivered", 1);
  await test.app.store.deliveries.retry(1, await newestId(log), test.clock.ms);
  test.app.sender.wake();
  await settled(log, "delivered", 2);
  expect(receiver.received).toHaveLength(2);
});

test("a retrying delivery is attempted now instead of at its planned time", async () => {
  const { test, log } = await retrying();
  test.clock.ms += 1_000;
  await test.app.store.deliveries.retry(1, await newestId(log), test.clock.ms);
  test.app.sender.wake();
  expect(await settled(log, "retrying", 2)).toMatchObject({ nextAttemptAt: test.clock.ms + 4 * MINUTE });
});

test("a delivery with an attempt under way is refused", async () => {
  const { test, intake, receiver, log } = await sending(["subscription.created"]);
  receiver.answer = () => new Promise(() => undefined);
  await intake(subscription(1));
  await receiver.gets(1);
  const id = await newestId(log);
  await expect(test.app.store.deliveries.retry(1, id, test.clock.ms)).rejects.toThrow(
    `an attempt of ${id} is under way`,
  );
});

test("all dead deliveries of one shop since a time are counted and retried", async () => {
  const { test } = await dead();
  const { deliveries } = test.app.store;
  const counts = [
    await deliveries.countDead(1, 0),
    await deliveries.countDead(1, START + 1),
    await deliveries.countDead(2, 0),
  ];
  expect(counts).toEqual([1, 0, 0]);
  expect([await deliveries.retryDead(2, 0, test.clock.ms), await deliveries.retryDead(1, 0, test.clock.ms)]).toEqual([
    0, 1,
  ]);
});

test("another shop's delivery is not found", async () => {
  const { test, id } = await dead();
  const { shop } = await test.addShop("beta.myshopify.com");
  await expect(test.app.store.deliveries.retry(shop.id, id, 0)).rejects.toThrow(`there is no delivery ${id}`);
  await expect(test.app.store.deliveries.show(shop.id, id)).rejects.toThrow(`there is no delivery ${id}`);
});

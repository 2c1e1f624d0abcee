import { TOPIC_NAMES, type Topic } from "../../src/domain/events/event.ts";
import { START, type TestApp, testApp } from "../support/app.ts";
import { eventually } from "../support/eventually.ts";
import { Receiver } from "../support/receiver.ts";
import { subscription } from "../support/records.ts";

/** Starts the program with one shop, whose endpoint is on this machine. */
export async function sending(topics: Topic[] = TOPIC_NAMES, env: Record<string, string> = {}) {
  const test = await testApp({ SDS_EGRESS_ALLOW: "127.0.0.0/8", SDS_DELIVERY_TIMEOUT: "500ms", ...env });
  const shop = await test.addShop();
  const receiver = new Receiver();
  await test.app.store.webhooks.set(shop.shop.id, { url: receiver.url, topics }, START);
  const secret = await test.app.store.webhooks.secret(shop.shop.id, START);
  /** Moves the clock, and lets the sender look for due deliveries. */
  function advance(ms: number): void {
    test.clock.ms += ms;
    test.app.sender.wake();
  }
  return { test, ...shop, receiver, secret, advance, log: deliveryLog(test, shop.shop.id) };
}

/** Sends a webhook whose first attempt fails. From then on the endpoint fails until the test changes its answer. */
export async function retrying(env: Record<string, string> = {}) {
  const sent = await sending(["subscription.created"], env);
  sent.receiver.answer = () => new Response(null, { status: 500 });
  await sent.intake(subscription(1));
  await settled(sent.log, "retrying", 1);
  return sent;
}

/** Reads a shop's deliveries, newest first. */
export function deliveryLog({ app }: TestApp, shopId: number) {
  return async () => app.store.deliveries.list(shopId, { limit: 20 });
}

/** Waits until the newest delivery has this status, after this many attempts. */
export async function settled(log: ReturnType<typeof deliveryLog>, status: string, attempts: number) {
  return eventually(async () => {
    const [newest] = await log();
    return newest?.status === status && newest.attempts === attempts ? newest : undefined;
  });
}

/** Returns the id of the newest delivery. */
export async function newestId(log: ReturnType<typeof deliveryLog>): Promise<string> {
  const [newest] = await log();
  if (newest === undefined) throw new Error("there is no delivery");
  return newest.id;
}

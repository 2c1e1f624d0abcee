import type { Topic } from "../../src/domain/events/event.ts";
import type { Store } from "../../src/store/port/store.ts";
import { START } from "./app.ts";

interface DeadDelivery {
  error?: string;
  url?: string;
  answer?: string;
  topic?: Topic;
  /** Epoch milliseconds. */
  queuedAt?: number;
}

/** Queues a test event, and makes its only attempt fail. @returns the delivery's id */
export async function deadDelivery(
  { deliveries, webhooks }: Store,
  shop: { id: number; domain: string },
  {
    error = "The endpoint responded with HTTP 500.",
    topic = "order.failed",
    queuedAt = START,
    ...exchange
  }: DeadDelivery = {},
): Promise<string> {
  await webhooks.secret(shop.id, START);
  const id = await deliveries.queueTest(shop, { topic, data: { a: 1 } }, queuedAt);
  const {
    claimed: [claim],
  } = await deliveries.recordAndClaim(
    [],
    [{ shopId: shop.id, kind: "webhook", count: 1 }],
    queuedAt,
    queuedAt + 60_000,
    [],
  );
  if (claim?.id !== id) throw new Error("the test event was not claimed");
  await deliveries.recordAndClaim(
    [{ claim, outcome: { statusCode: 500, error, ...exchange }, startedAt: queuedAt, duration: 12 }],
    [],
    queuedAt,
    queuedAt,
    [],
  );
  return id;
}

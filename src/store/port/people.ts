import { mentions } from "../../domain/people/person.ts";
import type { ShopRef } from "../../domain/shop.ts";
import { parseExact } from "../../lib/json.ts";
import { isoUtc } from "../../lib/time.ts";

/** Everything that is stored about a person, to answer their request. */
interface PersonExport {
  customer: unknown;
  subscriptions: unknown[];
  orders: unknown[];
  rewards: unknown[];
  cancelFlows: unknown[];
  /** Bodies that were queued about the person, sent or not, and what receivers answered. */
  deliveries: { id: string; kind: string; topic: string; createdAt: string; body: unknown; answers: string[] }[];
  /** Platform webhooks in the inbox that name the person. */
  inbox: { topic: string; receivedAt: string; body: string }[];
}

export interface PersonStore {
  /** @returns undefined for a customer that is not in the mirror */
  export(shop: ShopRef, gid: string): Promise<PersonExport | undefined>;
}

/**
 * The stored texts that may be about a person: JSON of rows by ascending id, bodies in the order in which they came.
 * Rewards, cancellation flows and items of the inbox can be others' too. Times in epoch milliseconds.
 */
interface PersonTexts {
  customer: string;
  subscriptions: readonly string[];
  orders: readonly string[];
  rewards: readonly string[];
  cancelFlows: readonly string[];
  /** The answers as a JSON array. */
  deliveries: readonly {
    id: string;
    kind: string;
    topic: string;
    createdAt: number;
    body: string;
    answers: string;
  }[];
  inbox: readonly { topic: string; receivedAt: number; body: string }[];
}

/** The person's own of what was found. */
export function personExport(gid: string, found: PersonTexts): PersonExport {
  const parsed = (text: string) => JSON.parse(text) as Record<string, string>;
  const subscriptions = found.subscriptions.map(parsed);
  const contracts = new Set(subscriptions.map(({ shopifyId }) => shopifyId));
  return {
    customer: parsed(found.customer),
    subscriptions,
    orders: found.orders.map(parsed),
    rewards: found.rewards.map(parsed).filter(({ customer }) => customer === gid),
    cancelFlows: found.cancelFlows.map(parsed).filter(({ subscription }) => contracts.has(subscription)),
    deliveries: found.deliveries.map(({ id, kind, topic, createdAt, body, answers }) => ({
      id,
      kind,
      topic,
      createdAt: isoUtc(createdAt),
      body: parsed(body),
      answers: JSON.parse(answers) as string[],
    })),
    inbox: found.inbox
      .filter(({ body }) => mentions(parseExact(body), gid))
      .map(({ topic, receivedAt, body }) => ({ topic, receivedAt: isoUtc(receivedAt), body })),
  };
}

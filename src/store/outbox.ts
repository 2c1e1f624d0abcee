import type { Database } from "bun:sqlite";
import { envelope } from "../domain/delivery.ts";
import type { Event } from "../domain/event.ts";
import { timeOrderedId } from "../domain/ids.ts";
import { hasAccess, type Plan } from "../domain/shop.ts";

/** What a shop wants sent, and which secret signs it; null if nothing is. */
type Wanted = { topics: Set<string>; version: number } | null;

/** Lasts for one transaction, for which it remembers what the shops want. */
export type OutboxSession = Map<number, Wanted>;

/** Queues events as deliveries, inside the caller's transaction: a change and what is sent for it are kept together or not at all. */
export interface Outbox {
  /**
   * Queues what the shop has chosen, if it has a URL and a plan with access.
   * @param now epoch milliseconds
   * @returns how many deliveries
   */
  queue(session: OutboxSession, shop: { id: number; domain: string }, events: readonly Event[], now: number): number;
  /** Queues one event whatever the shop has chosen, marked as a test. @returns the delivery's id */
  queueTest(shop: { id: number; domain: string }, event: Event, now: number): string;
}

interface Target {
  plan: Plan;
  url: string | null;
  topics: string | null;
  version: number | null;
}

export function openOutbox(db: Database, random: (bytes: number) => Uint8Array): Outbox {
  const target = db.prepare<Target, [number]>(
    `SELECT plan, url, topics, (SELECT max(version) FROM webhook_secrets WHERE shop_id = shops.id) AS version
     FROM shops LEFT JOIN webhook_endpoints ON webhook_endpoints.shop_id = shops.id WHERE shops.id = +?`,
  );
  const insert = db.prepare(
    `INSERT INTO deliveries (id, shop_id, kind, topic, test, body, secret_version, status, next_attempt_at, claimable_at, created_at)
     VALUES (?, ?, 'webhook', ?, ?, ?, ?, 'pending', ?, ?, ?)`,
  );

  function add(shop: { id: number; domain: string }, event: Event, version: number, test: boolean, now: number): string {
    const id = timeOrderedId("whd_", now, random);
    insert.run(id, shop.id, event.topic, test, envelope(id, event, now, shop.domain), version, now, now, now);
    return id;
  }

  function wantedBy(shopId: number): Wanted {
    const { plan, url, topics, version } = target.get(shopId) ?? {};
    if (plan === undefined || !hasAccess(plan) || typeof url !== "string" || typeof topics !== "string" || typeof version !== "number") return null;
    return { topics: new Set<string>(JSON.parse(topics)), version };
  }

  return {
    queue(session, shop, events, now) {
      if (events.length === 0) return 0;
      if (!session.has(shop.id)) session.set(shop.id, wantedBy(shop.id));
      const wanted = session.get(shop.id) ?? null;
      if (wanted === null) return 0;
      const chosen = events.filter(({ topic }) => wanted.topics.has(topic));
      for (const event of chosen) add(shop, event, wanted.version, false, now);
      return chosen.length;
    },

    queueTest(shop, event, now) {
      return add(shop, event, target.get(shop.id)?.version ?? 0, true, now);
    },
  };
}

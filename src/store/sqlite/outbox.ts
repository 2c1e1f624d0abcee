import type { Database } from "bun:sqlite";
import { envelope } from "../../domain/delivery.ts";
import type { Event } from "../../domain/event.ts";
import { timeOrderedId } from "../../domain/ids.ts";
import { hasAccess, type Plan } from "../../domain/shop.ts";
import { type Trigger, triggerBody } from "../../domain/trigger.ts";

/** What a shop wants sent: topics and the secret that signs them, and workflows to start. */
interface Wanted {
  topics: Set<string>;
  version: number;
  triggers: Set<string>;
}
const NOTHING_WANTED: Wanted = { topics: new Set(), version: 0, triggers: new Set() };

/** Lasts for one transaction, for which it remembers what the shops want. */
export type OutboxSession = Map<number, Wanted>;

/** Queues events as deliveries, inside the caller's transaction: a change and what is sent for it are kept together or not at all. */
export interface Outbox {
  /**
   * Queues what the shop has chosen, if it has a plan with access: webhooks if it has a URL, triggers if it is connected to the platform.
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
  triggers: string;
  connected: number;
}

export function openOutbox(db: Database, random: (bytes: number) => Uint8Array): Outbox {
  const target = db.prepare<Target, [number]>(
    `SELECT plan, url, topics, triggers, (SELECT max(version) FROM webhook_secrets WHERE shop_id = shops.id) AS version,
       EXISTS (SELECT 1 FROM connections WHERE shop_id = shops.id) AS connected
     FROM shops LEFT JOIN webhook_endpoints ON webhook_endpoints.shop_id = shops.id WHERE shops.id = +?`,
  );
  const insert = db.prepare(
    `INSERT INTO deliveries (id, shop_id, kind, topic, test, body, secret_version, status, next_attempt_at, claimable_at, created_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, 'pending', ?, ?, ?)`,
  );

  function addWebhook(shop: { id: number; domain: string }, event: Event, version: number, test: boolean, now: number): string {
    const id = timeOrderedId("whd_", now, random);
    insert.run(id, shop.id, "webhook", event.topic, test, envelope(id, event, now, shop.domain), version, now, now, now);
    return id;
  }

  /** A trigger has the token of its time and no signature. */
  function addTrigger(shopId: number, trigger: Trigger, now: number): void {
    insert.run(timeOrderedId("whd_", now, random), shopId, "trigger", trigger.handle, false, triggerBody(trigger), 0, now, now, now);
  }

  function wantedBy(shopId: number): Wanted {
    const found = target.get(shopId);
    if (found === null || !hasAccess(found.plan)) return NOTHING_WANTED;
    const { url, topics, version, triggers, connected } = found;
    return {
      ...(url === null || topics === null || version === null ? NOTHING_WANTED : { topics: new Set<string>(JSON.parse(topics)), version }),
      triggers: connected === 1 ? new Set<string>(JSON.parse(triggers)) : NOTHING_WANTED.triggers,
    };
  }

  return {
    queue(session, shop, events, now) {
      if (events.length === 0) return 0;
      if (!session.has(shop.id)) session.set(shop.id, wantedBy(shop.id));
      const { topics, version, triggers } = session.get(shop.id) ?? NOTHING_WANTED;
      let queued = 0;
      for (const event of events) {
        if (topics.has(event.topic)) {
          addWebhook(shop, event, version, false, now);
          queued += 1;
        }
        if (event.trigger !== undefined && triggers.has(event.trigger.handle)) {
          addTrigger(shop.id, event.trigger, now);
          queued += 1;
        }
      }
      return queued;
    },

    queueTest(shop, event, now) {
      return addWebhook(shop, event, target.get(shop.id)?.version ?? 0, true, now);
    },
  };
}

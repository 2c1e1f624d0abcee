import type { Database } from "bun:sqlite";
import { customerId } from "../../domain/ids.ts";
import { mentions } from "../../domain/person.ts";
import { parseExact } from "../../lib/exact-json.ts";
import { isoUtc } from "../../lib/time.ts";
import type { PersonStore } from "../people.ts";

type Json = { json: string };

/** This is rarely needed, so it has no indexes of its own and reads all rows of the shop. */
export function personStore(db: Database): PersonStore {
  const ofCustomer = (table: string) =>
    db.query<Json, [number, string]>(
      `SELECT json FROM ${table} WHERE shop_id = ? AND json ->> '$.customerId' = ? ORDER BY id`,
    );
  const parsed = ({ json }: Json): unknown => JSON.parse(json);

  return {
    async export(shop, gid) {
      const id = customerId(shop.domain, gid);
      const customer = db
        .query<Json, [number, string]>("SELECT json FROM customers WHERE shop_id = ? AND id = ?")
        .get(shop.id, id);
      if (customer === null) return undefined;
      const subscriptions = ofCustomer("subscriptions").all(shop.id, id).map(parsed);
      const contracts = new Set(subscriptions.map((each) => (each as { shopifyId: string }).shopifyId));
      const occurrences = db
        .query<Json & { type: string }, [number]>("SELECT type, json FROM occurrences WHERE shop_id = ? ORDER BY id")
        .all(shop.id);
      const of = (type: string) =>
        occurrences.filter((each) => each.type === type).map(parsed) as Record<string, string>[];
      const number = gid.slice(gid.lastIndexOf("/") + 1);
      const deliveries = db.query<
        { id: string; kind: string; topic: string; createdAt: number; body: string },
        [number, string, string]
      >(
        `SELECT id, kind, topic, created_at AS createdAt, body FROM deliveries
         WHERE shop_id = ? AND (instr(body, ?) > 0 OR instr(body, ?) > 0) ORDER BY number`,
      );
      const inbox = db.query<{ topic: string; receivedAt: number; body: string }, [number, string]>(
        `SELECT topic, received_at AS receivedAt, body FROM inbox
         WHERE shop_id = ? AND instr(body, ?) > 0 ORDER BY number`,
      );
      return {
        customer: parsed(customer),
        subscriptions,
        orders: ofCustomer("orders").all(shop.id, id).map(parsed),
        rewards: of("reward").filter((each) => each["customer"] === gid),
        cancelFlows: of("cancel_flow").filter((each) => contracts.has(each["subscription"] ?? "")),
        deliveries: deliveries
          .all(shop.id, id, `"customer_id":${number},`)
          .map((each) => ({ ...each, createdAt: isoUtc(each.createdAt), body: JSON.parse(each.body) as unknown })),
        inbox: inbox
          .all(shop.id, number)
          .filter(({ body }) => mentions(parseExact(body), gid))
          .map((each) => ({ ...each, receivedAt: isoUtc(each.receivedAt) })),
      };
    },
  };
}

import type { Database } from "bun:sqlite";
import { customerId } from "../../domain/ids.ts";
import { type PersonStore, personExport } from "../port/people.ts";

type Json = { json: string };

/** This is rarely needed, so it has no indexes of its own and reads all rows of the shop. */
export function personStore(db: Database): PersonStore {
  const ofCustomer = (table: string) =>
    db.query<Json, [number, string]>(
      `SELECT json FROM ${table} WHERE shop_id = ? AND json ->> '$.customerId' = ? ORDER BY id`,
    );

  return {
    async export(shop, gid) {
      const id = customerId(shop.domain, gid);
      const customer = db
        .query<Json, [number, string]>("SELECT json FROM customers WHERE shop_id = ? AND id = ?")
        .get(shop.id, id);
      if (customer === null) return undefined;
      const occurrences = db.query<Json, [number, string]>(
        "SELECT json FROM occurrences WHERE shop_id = ? AND type = ? ORDER BY id",
      );
      const number = gid.slice(gid.lastIndexOf("/") + 1);
      const deliveries = db.query<
        { id: string; kind: string; topic: string; createdAt: number; body: string; answers: string },
        [number, string, string]
      >(
        `SELECT id, kind, topic, created_at AS createdAt, body, (
           SELECT json_group_array(answer) FROM (
             SELECT answer FROM attempts
             WHERE attempts.shop_id = deliveries.shop_id AND delivery = deliveries.number AND answer <> ''
             ORDER BY attempts.number
           )
         ) AS answers FROM deliveries
         WHERE shop_id = ? AND (instr(body, ?) > 0 OR instr(body, ?) > 0) ORDER BY number`,
      );
      const inbox = db.query<{ topic: string; receivedAt: number; body: string }, [number, string]>(
        `SELECT topic, received_at AS receivedAt, body FROM inbox
         WHERE shop_id = ? AND instr(body, ?) > 0 ORDER BY number`,
      );
      const texts = (rows: Json[]) => rows.map(({ json }) => json);
      return personExport(gid, {
        customer: customer.json,
        subscriptions: texts(ofCustomer("subscriptions").all(shop.id, id)),
        orders: texts(ofCustomer("orders").all(shop.id, id)),
        rewards: texts(occurrences.all(shop.id, "reward")),
        cancelFlows: texts(occurrences.all(shop.id, "cancel_flow")),
        deliveries: deliveries.all(shop.id, id, `"customer_id":${number},`),
        inbox: inbox.all(shop.id, number),
      });
    },
  };
}

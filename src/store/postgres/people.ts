import { customerId } from "../../domain/ids.ts";
import { type PersonStore, personExport } from "../port/people.ts";
import type { Database } from "./database.ts";

type Part = "customer" | "subscription" | "order" | "reward" | "cancel_flow" | "delivery" | "inbox";

/**
 * A stored text. Only deliveries have a kind and a JSON array of answers, items of the inbox have no id, and only
 * bodies have a topic and a time.
 */
interface Found {
  part: Part;
  text: string;
  id: string;
  kind: string;
  topic: string;
  at: number;
  answers: string;
}

/**
 * All texts that may be about a person ($2 is the internal id, $3 the gid, $4 its number). One statement sees the
 * database at one moment. The JSON of rows is ours, so a field with its value is found as text: quotes inside strings
 * are escaped.
 */
const FIND = `WITH contracts AS (
    SELECT id, json, substring(json FROM '"shopifyId":("[^"]*")') AS gid FROM subscriptions
    WHERE shop_id = $1::bigint AND strpos(json, '"customerId":"' || $2::text || '"') > 0
  ), texts AS (
    SELECT 'customer' AS part, json AS text, id, '' AS kind, '' AS topic, 0::bigint AS at, 0::bigint AS number,
      '[]' AS answers
    FROM customers WHERE shop_id = $1::bigint AND id = $2::text
    UNION ALL SELECT 'subscription', json, id, '', '', 0, 0, '[]' FROM contracts
    UNION ALL SELECT 'order', json, id, '', '', 0, 0, '[]' FROM orders
    WHERE shop_id = $1::bigint AND strpos(json, '"customerId":"' || $2::text || '"') > 0
    UNION ALL SELECT type, json, id, '', '', 0, 0, '[]' FROM occurrences
    WHERE shop_id = $1::bigint AND type = 'reward' AND strpos(json, '"' || $3::text || '"') > 0
    UNION ALL SELECT type, json, id, '', '', 0, 0, '[]' FROM occurrences
    WHERE shop_id = $1::bigint AND type = 'cancel_flow'
      AND EXISTS (SELECT 1 FROM contracts WHERE strpos(occurrences.json, gid) > 0)
    UNION ALL SELECT 'delivery', body, id, kind, topic, created_at, number, (
      SELECT coalesce(json_agg(answer ORDER BY attempts.number), '[]')::text FROM attempts
      WHERE attempts.shop_id = deliveries.shop_id AND delivery = deliveries.number AND answer <> ''
    ) FROM deliveries
    WHERE shop_id = $1::bigint AND (strpos(body, $2::text) > 0 OR strpos(body, '"customer_id":' || $4::text || ',') > 0)
    UNION ALL SELECT 'inbox', body, '', '', topic, received_at, number, '[]' FROM inbox
    WHERE shop_id = $1::bigint AND strpos(body, $4::text) > 0
  )
  SELECT part, text, id, kind, topic, at::float8 AS at, answers FROM texts
  WHERE EXISTS (SELECT 1 FROM texts AS known WHERE known.part = 'customer') ORDER BY number, id COLLATE "C"`;

/** This is rarely needed, so it has no indexes of its own and reads all rows of the shop. */
export function personStore(db: Database): PersonStore {
  return {
    async export(shop, gid) {
      const number = gid.slice(gid.lastIndexOf("/") + 1);
      const found = await db.all<Found>(FIND, [shop.id, customerId(shop.domain, gid), gid, number]);
      const rowsOf = (part: Part) => found.filter((each) => each.part === part);
      const textsOf = (part: Part) => rowsOf(part).map(({ text }) => text);
      const [customer] = textsOf("customer");
      if (customer === undefined) return undefined;
      return personExport(gid, {
        customer,
        subscriptions: textsOf("subscription"),
        orders: textsOf("order"),
        rewards: textsOf("reward"),
        cancelFlows: textsOf("cancel_flow"),
        deliveries: rowsOf("delivery").map(({ text, at, ...delivery }) => ({ ...delivery, createdAt: at, body: text })),
        inbox: rowsOf("inbox").map(({ text, at, topic }) => ({ topic, receivedAt: at, body: text })),
      });
    },
  };
}

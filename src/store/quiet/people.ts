import type { SQL } from "drizzle-orm";
import { customerId } from "../../domain/ids.ts";
import { mentions } from "../../domain/people/person.ts";
import { parseExact } from "../../lib/json.ts";
import { createKeyedMutex } from "../../lib/keyed-mutex.ts";
import { isoUtc } from "../../lib/time.ts";
import { nextTurn } from "../../lib/waits.ts";
import type { PersonExport, PersonStore } from "../port/people.ts";
import { either, type QuietDatabase, sql } from "./quiet-database.ts";

type PersonTextPart = "customer" | "subscription" | "order" | "reward" | "cancel_flow" | "delivery" | "inbox";

/**
 * A stored text about a person. Only deliveries have a kind and answers; the answers are a JSON array. Items of the
 * inbox have no id. Only deliveries and items of the inbox have a topic and a time.
 */
interface PersonText {
  part: PersonTextPart;
  text: string;
  id: string;
  kind: string;
  topic: string;
  /** Epoch milliseconds. */
  at: number;
  number: number;
  answers: string;
}

/**
 * Makes the store. Exports are rare, so an export reads all deliveries. In PostgreSQL it also reads all rows of the
 * shop. In SQLite an export blocks the program, so it finds the rows through the customer's lists. Other work runs
 * between two exports.
 */
export function personStore(db: QuietDatabase): PersonStore {
  const mutex = createKeyedMutex();
  return {
    export: (shop, gid) =>
      mutex.run(["export"], async () => {
        await nextTurn();
        const texts = await db.all<PersonText>(textsAbout(db, shop.id, gid, customerId(shop.firstDomain, gid)));
        texts.sort((a, b) => a.number - b.number || (a.id < b.id ? -1 : 1));
        return personExport(gid, texts);
      }),
  };
}

/**
 * Returns a query for all texts that may be about a person. If the customer's row is missing, the query finds nothing.
 * One statement reads all texts from the same moment. Searching the JSON of rows for a field with its value is safe,
 * because quotes inside strings are escaped.
 */
function textsAbout(db: QuietDatabase, shopId: number, gid: string, id: string) {
  const number = gid.slice(gid.lastIndexOf("/") + 1);
  const position = either(db, { sqlite: sql`instr`, postgres: sql`strpos` });
  const isOfCustomer = sql`shop_id = ${shopId} AND ${position}(json, ${`"customerId":"${id}"`}) > 0`;
  const ofCustomer = (list: SQL, rows: SQL, date: SQL) =>
    either(db, {
      sqlite: sql`${list} AS listed CROSS JOIN ${rows} USING (shop_id, ${date}, id)
        WHERE listed.shop_id = ${shopId} AND listed.customer_id = ${id}`,
      postgres: sql`${rows} WHERE ${isOfCustomer}`,
    });
  const contractGid = either(db, { sqlite: sql`json ->> 'shopifyId'`, postgres: sql`json::json ->> 'shopifyId'` });
  const answers = either(db, {
    sqlite: sql`json_group_array(answer ORDER BY attempts.number)`,
    postgres: sql`coalesce(json_agg(answer ORDER BY attempts.number), '[]')::text`,
  });
  const fields = sql`SELECT json FROM subscription_fields AS fields
    WHERE fields.shop_id = subscriptions.shop_id AND fields.started_at = subscriptions.started_at
      AND fields.id = subscriptions.id`;
  return sql`WITH contracts AS (
      SELECT id, substr(json, 1, length(json) - 1) || ',"customFields":' || coalesce((${fields}), '{}') || '}' AS json,
        ${contractGid} AS gid
      FROM ${ofCustomer(sql`customer_subscriptions`, sql`subscriptions`, sql`started_at`)}
    ), texts AS (
      SELECT 'customer' AS part, json AS text, id, '' AS kind, '' AS topic, 0 AS at, 0 AS number, '[]' AS answers
      FROM customers WHERE shop_id = ${shopId} AND id = ${id}
      UNION ALL SELECT 'subscription', json, id, '', '', 0, 0, '[]' FROM contracts
      UNION ALL SELECT 'order', json, id, '', '', 0, 0, '[]'
      FROM ${ofCustomer(sql`customer_orders`, sql`orders`, sql`billed_at`)}
      UNION ALL SELECT type, json, id, '', '', 0, 0, '[]' FROM occurrences
      WHERE shop_id = ${shopId} AND type = 'reward' AND ${position}(json, ${`"${gid}"`}) > 0
      UNION ALL SELECT type, json, id, '', '', 0, 0, '[]' FROM occurrences
      WHERE shop_id = ${shopId} AND type = 'cancel_flow'
        AND EXISTS (SELECT 1 FROM contracts WHERE ${position}(occurrences.json, '"' || gid || '"') > 0)
      UNION ALL SELECT 'delivery', body, id, kind, topic, created_at, number, (
        SELECT ${answers} FROM attempts
        WHERE attempts.shop_id = deliveries.shop_id AND delivery = deliveries.number AND answer <> ''
      ) FROM deliveries
      WHERE shop_id = ${shopId}
        AND (${position}(body, ${id}) > 0 OR ${position}(body, ${`"customer_id":${number},`}) > 0)
      UNION ALL SELECT 'inbox', body, '', '', topic, received_at, number, '[]' FROM inbox
      WHERE shop_id = ${shopId} AND ${position}(body, ${number}) > 0
    )
    SELECT * FROM texts WHERE EXISTS (SELECT 1 FROM texts AS known WHERE known.part = 'customer')`;
}

/**
 * Makes the export, without texts about other people.
 * @param texts rows sorted by id, deliveries and inbox items sorted by number
 */
function personExport(gid: string, texts: readonly PersonText[]): PersonExport | undefined {
  const textsOf = (part: PersonTextPart) => texts.filter((each) => each.part === part);
  const rowsOf = (part: PersonTextPart) => textsOf(part).map(({ text }) => JSON.parse(text) as Record<string, string>);
  const [customer] = rowsOf("customer");
  if (customer === undefined) return undefined;
  const subscriptions = rowsOf("subscription");
  const contracts = new Set(subscriptions.map(({ shopifyId }) => shopifyId));
  return {
    customer,
    subscriptions,
    orders: rowsOf("order"),
    rewards: rowsOf("reward").filter((reward) => reward["customer"] === gid),
    cancelFlows: rowsOf("cancel_flow").filter(({ subscription }) => contracts.has(subscription)),
    deliveries: textsOf("delivery").map(({ id, kind, topic, at, text, answers }) => ({
      id,
      kind,
      topic,
      createdAt: isoUtc(at),
      body: JSON.parse(text) as unknown,
      answers: JSON.parse(answers) as string[],
    })),
    inbox: textsOf("inbox")
      .filter(({ text }) => mentions(parseExact(text), gid))
      .map(({ topic, at, text }) => ({ topic, receivedAt: isoUtc(at), body: text })),
  };
}

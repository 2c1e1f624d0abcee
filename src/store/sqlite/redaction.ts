import type { Database } from "bun:sqlite";
import { customerId } from "../../domain/ids.ts";
import { knownPerson, mentions, withoutPerson } from "../../domain/person.ts";
import type { Customer } from "../../domain/resources.ts";
import { parseExact } from "../../lib/exact-json.ts";

/** Empties what is held of a person outside the customer's own row, inside the caller's transaction. */
export type Redaction = (shop: { id: number; domain: string }, gid: string, before: Customer | undefined) => void;

interface Found {
  key: string | number;
  text: string;
}

/**
 * Rewards carry whatever fields their sender gave them, and what waits in the inbox are whole payloads of the platform. Rewriting a queued body changes its signature with
 * it: what the law wants emptied is not kept for the sake of equal bytes.
 */
export function openRedaction(db: Database): Redaction {
  const places = [
    {
      find: db.prepare<Found, [number, string]>(
        "SELECT number AS key, body AS text FROM deliveries WHERE shop_id = ? AND topic = 'loyalty.reward_earned' AND instr(body, ?) > 0",
      ),
      mention: (id: string, _gid: string) => id,
      rewrite: db.prepare("UPDATE deliveries SET body = ? WHERE shop_id = ? AND number = ?"),
    },
    {
      find: db.prepare<Found, [number, string]>("SELECT id AS key, json AS text FROM occurrences WHERE shop_id = ? AND type = 'reward' AND instr(json, ?) > 0"),
      mention: (_id: string, gid: string) => `"${gid}"`,
      rewrite: db.prepare("UPDATE occurrences SET json = ? WHERE shop_id = ? AND type = 'reward' AND id = ?"),
    },
    {
      find: db.prepare<Found, [number, string]>("SELECT number AS key, body AS text FROM inbox WHERE shop_id = ? AND instr(body, ?) > 0"),
      mention: (_id: string, gid: string) => gid.slice(gid.lastIndexOf("/") + 1),
      rewrite: db.prepare("UPDATE inbox SET body = ? WHERE shop_id = ? AND number = ?"),
    },
  ];
  return (shop, gid, before) => {
    const person = knownPerson(before);
    const id = customerId(shop.domain, gid);
    for (const { find, mention, rewrite } of places) {
      for (const { key, text } of find.all(shop.id, mention(id, gid))) {
        // What is no JSON object is of no use to anybody.
        const value = parseExact(text) ?? {};
        // The statement finds the digits within other numbers too.
        if (!mentions(value, gid) && !mentions(value, id)) continue;
        const redacted = JSON.stringify(withoutPerson(value, person));
        if (redacted !== text) rewrite.run(redacted, shop.id, key);
      }
    }
  };
}

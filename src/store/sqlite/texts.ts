import type { Database } from "bun:sqlite";
import { REWARD_TOPIC } from "../../domain/event-queue.ts";
import { type StoredText, searchTexts, TEXT_PLACES, type TextPlace } from "../../domain/redaction.ts";
import type { ShopRef } from "../../domain/shop.ts";

/** The stored texts that can hold a person's data, inside the caller's transaction. */
export interface MentioningTexts {
  /** The texts that may be about a person; each engine searches with the same `searchTexts`. */
  mentioning(shop: ShopRef, gid: string): StoredText[];
  write(shopId: number, text: StoredText): void;
}

/** This is rarely needed, so there are no indexes for it: it searches every text of the shop. */
export function mentioningTexts(db: Database): MentioningTexts {
  const statements = {
    delivery: statementsOf(db, {
      table: "deliveries",
      key: "number",
      text: "body",
      where: `topic = '${REWARD_TOPIC}'`,
    }),
    reward: statementsOf(db, { table: "occurrences", key: "id", text: "json", where: "type = 'reward'" }),
    inbox: statementsOf(db, { table: "inbox", key: "number", text: "body", where: "true" }),
  } satisfies Record<TextPlace, unknown>;
  return {
    mentioning(shop, gid) {
      const searched = searchTexts(shop.domain, gid);
      return TEXT_PLACES.flatMap((place) =>
        statements[place].find.all(shop.id, searched[place]).map((found) => ({ place, ...found })),
      );
    },
    write(shopId, { place, key, text }) {
      statements[place].write.run(text, shopId, key);
    },
  };
}

function statementsOf(db: Database, { table, key, text, where }: Record<"table" | "key" | "text" | "where", string>) {
  return {
    find: db.prepare<Omit<StoredText, "place">, [number, string]>(
      `SELECT ${key} AS key, ${text} AS text FROM ${table} WHERE shop_id = ? AND ${where} AND instr(${text}, ?) > 0`,
    ),
    write: db.prepare(`UPDATE ${table} SET ${text} = ? WHERE shop_id = ? AND ${where} AND ${key} = ?`),
  };
}

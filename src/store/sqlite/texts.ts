import type { Database } from "bun:sqlite";
import type { TextChange } from "../../domain/commit.ts";
import { REWARD_TOPIC } from "../../domain/event-queue.ts";
import { type StoredText, searchTexts, TEXT_PLACES, type TextPlace } from "../../domain/redaction.ts";
import type { ShopRef } from "../../domain/shop.ts";

/** The stored texts that can hold a person's data, inside the caller's transaction. */
export interface MentioningTexts {
  /** Those that may be about one of these people, each once; each engine searches with the same `searchTexts`. */
  mentioning(shop: ShopRef, gids: Iterable<string>): StoredText[];
  write(shopId: number, change: TextChange): void;
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
    intake: statementsOf(db, { table: "intake_parts", key: "number", text: "records", where: "true" }),
  } satisfies Record<TextPlace, unknown>;
  return {
    mentioning(shop, gids) {
      const texts = new Map<string, StoredText>();
      for (const gid of gids) {
        const searched = searchTexts(shop.domain, gid);
        for (const place of TEXT_PLACES) {
          const found = searched[place].flatMap((text) => statements[place].find.all(shop.id, text));
          for (const each of found) texts.set(`${place} ${each.key}`, { place, ...each });
        }
      }
      return [...texts.values()];
    },
    write(shopId, { before, after }) {
      statements[before.place].write.run(after.text, after.key, shopId, before.key);
    },
  };
}

function statementsOf(db: Database, { table, key, text, where }: Record<"table" | "key" | "text" | "where", string>) {
  return {
    find: db.prepare<Omit<StoredText, "place">, [number, string]>(
      `SELECT ${key} AS key, ${text} AS text FROM ${table} WHERE shop_id = ? AND ${where} AND instr(${text}, ?) > 0`,
    ),
    write: db.prepare(`UPDATE ${table} SET ${text} = ?, ${key} = ? WHERE shop_id = ? AND ${where} AND ${key} = ?`),
  };
}

import type { Database } from "bun:sqlite";
import type { TextChange } from "../../domain/commit.ts";
import { REWARD_TOPIC } from "../../domain/event-queue.ts";
import { createTextSearch, type StoredText, TEXT_PLACES, type TextPlace } from "../../domain/redaction.ts";
import type { ShopRef } from "../../domain/shop.ts";
import { nextTurn } from "../../lib/next-turn.ts";

/** The stored texts that can hold a person's data. */
export interface MentioningTexts {
  /**
   * Finds the texts that may be about one of these people. It reads every text of the shop once, however many people
   * they are: this is rarely needed, so there are no indexes for it. It reads in slices and lets others work in between.
   */
  search(shop: ShopRef, gids: ReadonlySet<string>): Promise<FoundTexts>;
  /** Notes that this process stores rewards: a search that is under way has to look for them. */
  noteRewards(): void;
  /** Inside the caller's transaction. */
  write(shopId: number, change: TextChange): void;
}

export interface FoundTexts {
  /** The texts as they are now, inside the caller's transaction, with those that were stored since the search. */
  read(): StoredText[];
}

/** The texts of one slice: about a millisecond. A platform webhook can have megabytes. */
const TEXTS_PER_SLICE: Record<TextPlace, number> = { delivery: 500, reward: 500, inbox: 10, intake: 10 };
const FIRST_KEY: Record<TextPlace, string | number> = { delivery: 0, reward: "", inbox: 0, intake: 0 };

type Row = { key: string | number; text: string | null };

export function mentioningTexts(db: Database): MentioningTexts {
  const statements = {
    // The index has the deliveries of a shop by kind; rewards are webhooks. The body of another topic is not read.
    delivery: statementsOf(db, {
      table: "deliveries",
      key: "number",
      text: "body",
      where: "kind = 'webhook'",
      searched: `CASE WHEN topic = '${REWARD_TOPIC}' THEN body END`,
      sliceSize: TEXTS_PER_SLICE.delivery,
    }),
    reward: statementsOf(db, {
      table: "occurrences",
      key: "id",
      text: "json",
      where: "type = 'reward'",
      sliceSize: TEXTS_PER_SLICE.reward,
    }),
    inbox: statementsOf(db, {
      table: "inbox",
      key: "number",
      text: "body",
      where: "true",
      sliceSize: TEXTS_PER_SLICE.inbox,
    }),
    intake: statementsOf(db, {
      table: "intake_parts",
      key: "number",
      text: "records",
      where: "true",
      sliceSize: TEXTS_PER_SLICE.intake,
    }),
  } satisfies Record<TextPlace, unknown>;
  const dataVersion = db.prepare<{ data_version: number }, []>("PRAGMA data_version");
  let ownChanges = 0;
  /** Changes with each commit of another process, and with each reward or text that this one writes. */
  const version = () => `${dataVersion.get()?.data_version} ${ownChanges}`;

  return {
    async search(shop, gids) {
      const mentions = createTextSearch(shop.domain, gids);
      const found: Record<TextPlace, Set<string | number>> = {
        delivery: new Set(),
        reward: new Set(),
        inbox: new Set(),
        intake: new Set(),
      };
      const lastKeys = { ...FIRST_KEY };

      /** @returns whether more follow */
      function searchSlice(place: TextPlace): boolean {
        const rows = statements[place].slice.all(shop.id, lastKeys[place]);
        for (const { key, text } of rows) if (text !== null && mentions(place, text)) found[place].add(key);
        lastKeys[place] = rows.at(-1)?.key ?? lastKeys[place];
        return rows.length === TEXTS_PER_SLICE[place];
      }

      const versionBefore = version();
      for (const place of TEXT_PLACES) {
        while (searchSlice(place)) await nextTurn();
      }
      return {
        read() {
          // New deliveries, inbox items and parts of bodies have higher numbers. The id of a new reward can be anywhere.
          if (version() !== versionBefore) lastKeys.reward = FIRST_KEY.reward;
          return TEXT_PLACES.flatMap((place) => {
            while (searchSlice(place));
            const { read } = statements[place];
            return [...found[place]].flatMap((key) => {
              const text = read.get(shop.id, key)?.text;
              return text === undefined ? [] : [{ place, key, text }];
            });
          });
        },
      };
    },

    noteRewards() {
      ownChanges += 1;
    },

    write(shopId, { before, after }) {
      ownChanges += 1;
      statements[before.place].write.run(after.text, after.key, shopId, before.key);
    },
  };
}

interface TextColumns {
  table: string;
  key: string;
  text: string;
  where: string;
  /** The text that is searched, null for none; `text` if it is left out. */
  searched?: string;
  sliceSize: number;
}

function statementsOf(db: Database, { table, key, text, where, searched = text, sliceSize }: TextColumns) {
  return {
    slice: db.prepare<Row, [number, string | number]>(
      `SELECT ${key} AS key, ${searched} AS text FROM ${table}
       WHERE shop_id = +? AND ${where} AND ${key} > +? ORDER BY ${key} LIMIT ${sliceSize}`,
    ),
    read: db.prepare<{ text: string }, [number, string | number]>(
      `SELECT ${text} AS text FROM ${table} WHERE shop_id = ? AND ${where} AND ${key} = ?`,
    ),
    write: db.prepare(`UPDATE ${table} SET ${text} = ?, ${key} = ? WHERE shop_id = ? AND ${where} AND ${key} = ?`),
  };
}

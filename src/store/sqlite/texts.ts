import type { Database } from "bun:sqlite";
import type { ShopChanges, TextChange } from "../../domain/decide/commit.ts";
import { createTextSearch, type StoredText, TEXT_PLACES, type TextPlace } from "../../domain/people/redaction.ts";
import type { MirroredShop } from "../../domain/shop.ts";
import { nextTurn } from "../../lib/waits.ts";
import { TEXT_COLUMNS, type TextColumns } from "../engine/text-searches.ts";
import type { TextSearch } from "../port/mirror.ts";

/** A search whose `end` was not called yet. */
interface OpenSearch {
  shop: MirroredShop;
  /** Reads the texts to redact, in the caller's transaction. */
  read(): StoredText[];
  noteCommit(changes: ShopChanges): void;
}

/**
 * Maximum number of texts in a slice. A slice of short texts takes about a millisecond. The inbox has a lower maximum,
 * because a platform webhook may have megabytes.
 */
const MAX_TEXTS_PER_SLICE: Record<TextPlace, number> = { delivery: 500, reward: 500, inbox: 10 };
const FIRST_TEXTS_PER_SLICE: Record<TextPlace, number> = { delivery: 50, reward: 50, inbox: 10 };
/** If a slice takes longer than this, the next slice is half as large. Otherwise the next slice is twice as large. */
const TARGET_MS = 2;
/**
 * Number of rounds of a search. Each round reads the texts that were stored during the previous round. So the
 * redacting transaction has few texts left to read. The number is fixed, because another process may store rewards all
 * the time.
 */
const ROUNDS = 3;
const FIRST_KEY: Record<TextPlace, string | number> = { delivery: 0, reward: "", inbox: 0 };

type TextRow = { key: string | number; text: string };

/** Searches and redacts stored texts that may contain personal data. */
export function mentioningTexts(db: Database) {
  const statements = {
    delivery: statementsOf(db, TEXT_COLUMNS.delivery),
    reward: statementsOf(db, TEXT_COLUMNS.reward),
    inbox: statementsOf(db, TEXT_COLUMNS.inbox),
  } satisfies Statements;
  const changeCount = db.prepare<{ n: number }, [number]>("SELECT change_count AS n FROM shops WHERE id = ?");
  const markRedacted = db.prepare("UPDATE deliveries SET redacted = 1 WHERE shop_id = ? AND number = ?");
  const emptyAnswers = db.prepare(
    "UPDATE attempts SET answer = NULL WHERE shop_id = ? AND delivery = ? AND answer IS NOT NULL",
  );
  const open = new Map<TextSearch, OpenSearch>();

  return {
    /**
     * Searches texts about these people. Redactions are rare, so this reads every text of the shop and needs no index.
     * It works in slices, so that other work can run in between.
     */
    async search(shop: MirroredShop, people: ReadonlySet<string>): Promise<TextSearch> {
      const search: TextSearch = { shop, people, end: () => void open.delete(search) };
      const { run, ...opened } = createSearch(statements, shop, people, () => changeCount.get(shop.id)?.n ?? 0);
      open.set(search, opened);
      try {
        await run();
        return search;
      } catch (thrown) {
        search.end();
        throw thrown;
      }
    },

    /**
     * Reads the texts to redact, in the caller's transaction. Returns the current versions of the texts that a shop's
     * searches found, and newer texts that match.
     */
    read(searches: readonly TextSearch[]): StoredText[] {
      const texts = new Map<string, StoredText>();
      for (const search of searches) {
        const opened = open.get(search);
        if (opened === undefined) throw new Error("the search of the texts has ended");
        for (const text of opened.read()) texts.set(`${text.place} ${text.key}`, text);
      }
      return [...texts.values()];
    },

    /** Replaces a text in the caller's transaction. If the text belongs to a reward, replaces the reward's key too. */
    write(shopId: number, { before, after }: TextChange): void {
      statements[before.place].write.run(after.text, after.key, shopId, before.key);
    },

    /** Removes receivers' answers to a delivery, and stops later answers from being stored. */
    removeAnswers(shopId: number, number: number): void {
      markRedacted.run(shopId, number);
      emptyAnswers.run(shopId, number);
    },

    /** Tells the open searches what this process committed. */
    noteCommit(changes: ShopChanges): void {
      for (const each of open.values()) if (each.shop.id === changes.shop.id) each.noteCommit(changes);
    },
  };
}

type Statements = Record<TextPlace, ReturnType<typeof statementsOf>>;

/** Makes a search. @param changeCount returns the shop's number of changes by all processes */
function createSearch(
  statements: Statements,
  shop: MirroredShop,
  people: ReadonlySet<string>,
  changeCount: () => number,
): OpenSearch & { run(): Promise<void> } {
  const mentions = createTextSearch(shop.firstDomain, people);
  const keys = () => new Set<string | number>();
  const found: Record<TextPlace, Set<string | number>> = { delivery: keys(), reward: keys(), inbox: keys() };
  const lastKeys = { ...FIRST_KEY };
  const sliceSizes = { ...FIRST_TEXTS_PER_SLICE };
  /** Rewards that this process stores during the search. Their keys may come before keys that were already searched. */
  const newRewards = keys();
  let knownChanges = changeCount();

  /** Searches the next texts. @returns whether more texts follow */
  function searchSlice(place: TextPlace): boolean {
    const began = performance.now();
    const size = sliceSizes[place];
    const rows = statements[place].slice.all(shop.id, lastKeys[place], size);
    for (const { key, text } of rows) if (mentions(place, text)) found[place].add(key);
    lastKeys[place] = rows.at(-1)?.key ?? lastKeys[place];
    const isLong = performance.now() - began > TARGET_MS;
    sliceSizes[place] = isLong ? Math.ceil(size / 2) : Math.min(MAX_TEXTS_PER_SLICE[place], size * 2);
    return rows.length === size;
  }

  /**
   * If another process changed the shop, all rewards are searched again, because a new reward may have any id. New
   * deliveries and inbox items have higher numbers, so the search finds them anyway.
   */
  function noteOthers(): void {
    const changes = changeCount();
    if (changes === knownChanges) return;
    knownChanges = changes;
    lastKeys.reward = FIRST_KEY.reward;
  }

  function textOf(place: TextPlace, key: string | number): StoredText[] {
    const text = statements[place].read.get(shop.id, key)?.text;
    return text === undefined ? [] : [{ place, key, text }];
  }

  return {
    shop,
    async run() {
      for (let round = 0; round < ROUNDS; round += 1) {
        noteOthers();
        for (const place of TEXT_PLACES) while (searchSlice(place)) await nextTurn();
      }
    },
    read() {
      noteOthers();
      for (const place of TEXT_PLACES) while (searchSlice(place));
      for (const id of newRewards) {
        if (textOf("reward", id).some(({ text }) => mentions("reward", text))) found.reward.add(id);
      }
      return TEXT_PLACES.flatMap((place) => [...found[place]].flatMap((key) => textOf(place, key)));
    },
    noteCommit({ rows, texts }) {
      knownChanges += rows.length;
      for (const { row } of rows) {
        if (row.kind === "occurrence" && row.record.type === "reward") newRewards.add(row.record.id);
      }
      // A redaction may rename a reward, so its new key is searched too.
      for (const { after } of texts) if (after.place === "reward") newRewards.add(after.key);
    },
  };
}

function statementsOf(db: Database, { table, key, text, where }: TextColumns) {
  return {
    slice: db.prepare<TextRow, [number, string | number, number]>(
      `SELECT ${key} AS key, ${text} AS text FROM ${table}
       WHERE shop_id = +? AND ${where} AND ${key} > +? ORDER BY ${key} LIMIT +?`,
    ),
    read: db.prepare<{ text: string }, [number, string | number]>(
      `SELECT ${text} AS text FROM ${table} WHERE shop_id = ? AND ${where} AND ${key} = ?`,
    ),
    write: db.prepare(`UPDATE ${table} SET ${text} = ?, ${key} = ? WHERE shop_id = ? AND ${where} AND ${key} = ?`),
  };
}

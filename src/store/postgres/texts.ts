import type { TextChange } from "../../domain/decide/commit.ts";
import { type StoredText, searchTexts, TEXT_PLACES, type TextPlace } from "../../domain/people/redaction.ts";
import type { MirroredShop } from "../../domain/shop.ts";
import { TEXT_COLUMNS, type TextColumns } from "../engine/text-searches.ts";
import { columnArrays, type Parameter, pipeline, type Queries, type Writes } from "./database.ts";

export type TextKey = string | number;

const STATEMENTS = {
  delivery: statementsOf(TEXT_COLUMNS.delivery),
  reward: statementsOf(TEXT_COLUMNS.reward),
  inbox: statementsOf(TEXT_COLUMNS.inbox),
} satisfies Record<TextPlace, ReturnType<typeof statementsOf>>;

/** Texts with keys above `above`, up to and including `upTo`. `changedAfter` limits them to higher change numbers. */
interface TextRange {
  above: TextKey;
  upTo?: TextKey | undefined;
  /** Only rewards have a change number. */
  changedAfter?: number;
}

/** Returns the last key of a slice of `size` texts; undefined if fewer texts remain. */
export async function endOfSlice(
  queries: Queries,
  shopId: number,
  place: TextPlace,
  above: TextKey,
  size: number,
): Promise<TextKey | undefined> {
  return (await queries.get<{ key: TextKey }>(STATEMENTS[place].end, [shopId, above, size]))?.key;
}

/**
 * Returns the texts of a range that contain a name of these people. The match may be a part of a longer name, so
 * callers check again.
 */
export async function textsInRange(
  queries: Queries,
  shop: MirroredShop,
  place: TextPlace,
  people: ReadonlySet<string>,
  { above, upTo, changedAfter = 0 }: TextRange,
): Promise<StoredText[]> {
  const names = Array.from(people, (gid) => searchTexts(shop.firstDomain, gid)[place]).flat();
  const parameters: Parameter[] = [shop.id, above, names, ...(place === "reward" ? [changedAfter] : [])];
  const { search, searchUpTo } = STATEMENTS[place];
  const found = await (upTo === undefined
    ? queries.all<{ key: TextKey; text: string }>(search, parameters)
    : queries.all<{ key: TextKey; text: string }>(searchUpTo, [...parameters, upTo]));
  return found.map((each) => ({ place, ...each }));
}

/** Returns the current texts with these keys. Skips keys that do not exist. */
export async function textsOf(
  queries: Queries,
  shopId: number,
  place: TextPlace,
  keys: readonly TextKey[],
): Promise<StoredText[]> {
  if (keys.length === 0) return [];
  const found = await queries.all<{ key: TextKey; text: string }>(STATEMENTS[place].read, [shopId, keys]);
  return found.map((each) => ({ place, ...each }));
}

/** Replaces texts, and keys of rewards, in the caller's transaction. */
export async function writeTexts(tx: Writes, shopId: number, changes: readonly TextChange[]): Promise<void> {
  await pipeline(
    TEXT_PLACES.map(async (place) => {
      const changed = changes.filter(({ before }) => before.place === place);
      if (changed.length === 0) return;
      const columns = columnArrays(changed, ({ before, after }) => [before.key, after.key, after.text]);
      await tx.run(STATEMENTS[place].write, [shopId, ...columns]);
    }),
  );
}

/**
 * Removes receivers' answers to these deliveries, and stops later answers from being stored. Locks the deliveries
 * first. So this waits for attempts that are being recorded, and removes their answers too.
 */
export async function removeAnswers(tx: Writes, shopId: number, deliveries: readonly number[]): Promise<void> {
  if (deliveries.length === 0) return;
  await pipeline([
    tx.run(
      `WITH locked AS (
         SELECT number FROM deliveries WHERE shop_id = $1::bigint AND number = ANY($2::bigint[])
         ORDER BY number FOR NO KEY UPDATE
       )
       UPDATE deliveries SET redacted = true FROM locked
       WHERE shop_id = $1::bigint AND deliveries.number = locked.number`,
      [shopId, deliveries],
    ),
    tx.run(
      `UPDATE attempts SET answer = NULL
       WHERE shop_id = $1::bigint AND delivery = ANY($2::bigint[]) AND answer IS NOT NULL`,
      [shopId, deliveries],
    ),
  ]);
}

function statementsOf({ table, key, keyType, text, where }: TextColumns) {
  const read = `${keyType === "text" ? key : `${key}::float8`} AS key`;
  const range = `FROM ${table} WHERE shop_id = $1::bigint AND ${where} AND ${key} > $2::${keyType}`;
  const [changed, upTo] = keyType === "text" ? [" AND change_number > $4::bigint", "$5"] : ["", "$4"];
  // Another search may already have read the range that contains the reward's new key. The new change number makes the
  // transaction of the other search read the reward again.
  const renumbered =
    keyType === "bigint"
      ? ""
      : `, change_number = CASE WHEN changed.before = changed.after THEN ${table}.change_number
           ELSE (SELECT change_count + 1 FROM shop_changes WHERE shop_id = $1::bigint) END`;
  // OFFSET 0 makes the server read a long text once, instead of once for each name.
  const search = (bound: string) =>
    `SELECT key, text FROM (
       SELECT ${read}, ${text} || '' AS text ${range}${changed}${bound} OFFSET 0
     ) AS texts WHERE EXISTS (SELECT 1 FROM unnest($3::text[]) AS name WHERE strpos(text, name) > 0)`;
  return {
    end: `SELECT ${read} ${range} ORDER BY ${table}.${key} OFFSET $3::bigint - 1 LIMIT 1`,
    search: search(""),
    searchUpTo: search(` AND ${key} <= ${upTo}::${keyType}`),
    read: `SELECT ${read}, ${text} AS text FROM ${table}
      WHERE shop_id = $1::bigint AND ${where} AND ${key} = ANY($2::${keyType}[])`,
    write: `UPDATE ${table} SET ${text} = changed.text, ${key} = changed.after${renumbered}
      FROM unnest($2::${keyType}[], $3::${keyType}[], $4::text[]) AS changed (before, after, text)
      WHERE shop_id = $1::bigint AND ${where} AND ${key} = changed.before`,
  };
}

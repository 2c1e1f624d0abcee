import { type Awaitable, andThen } from "../../lib/waits.ts";
import type { PageStore, RowForm, Snapshot } from "../port/pages.ts";

/** Returns the JSON array of the keys of a shop's archived fields; undefined if the shop never had a field. */
export type HiddenKeys = (shopId: number) => Awaitable<{ hiddenKeys: string } | undefined>;

/**
 * Removes the values of archived fields from pages. The keys of these fields are read after the rows. If a field is
 * archived in between, the page can be newer than its change count, but never older.
 */
export function withoutArchivedFields(pages: PageStore, hiddenKeys: HiddenKeys): PageStore {
  /** Removes the archived fields from a found value. @param without removes the fields with `keys` */
  function hide<T extends Snapshot | undefined>(
    shopId: number,
    form: RowForm,
    found: Awaitable<T>,
    without: (found: T & Snapshot, keys: string[]) => T,
  ): Awaitable<T> {
    if (form !== "subscriptionsWithFields") return found;
    return andThen(found, (value) =>
      andThen(hiddenKeys(shopId), (stored) => {
        const keys = stored === undefined ? [] : (JSON.parse(stored.hiddenKeys) as string[]);
        if (stored === undefined || keys.length === 0 || value === undefined) return value;
        return without({ ...value, hiddenKeys: stored.hiddenKeys }, keys);
      }),
    );
  }
  const hideRows = <T extends { rows: Uint8Array<ArrayBuffer> }>(page: T, keys: string[]): T => ({
    ...page,
    rows: rowsWithout(page.rows, keys),
  });

  return {
    list: (shopId, form, ...more) => hide(shopId, form, pages.list(shopId, form, ...more), hideRows),
    listFiltered: (shopId, form, ...more) => hide(shopId, form, pages.listFiltered(shopId, form, ...more), hideRows),
    changes: (shopId, form, ...more) => hide(shopId, form, pages.changes(shopId, form, ...more), hideRows),
    find: (shopId, form, name) =>
      hide(shopId, form, pages.find(shopId, form, name), (row, keys) => ({
        ...row,
        json: jsonWithout(JSON.parse(row.json) as RowWithFields, keys),
      })),
    changeBefore: pages.changeBefore,
  };
}

interface RowWithFields {
  customFields: Record<string, unknown>;
}

/** Returns the rows without these fields. Parsing changes nothing else, because `JSON.stringify` wrote the rows. */
function rowsWithout(rows: Uint8Array<ArrayBuffer>, keys: readonly string[]): Uint8Array<ArrayBuffer> {
  const parsed = JSON.parse(`[${new TextDecoder().decode(rows)}]`) as RowWithFields[];
  return new TextEncoder().encode(parsed.map((row) => jsonWithout(row, keys)).join(","));
}

function jsonWithout(row: RowWithFields, keys: readonly string[]): string {
  for (const key of keys) delete row.customFields[key];
  return JSON.stringify(row);
}

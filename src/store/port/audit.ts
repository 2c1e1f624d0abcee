import type { AuditEntry, AuditedAction } from "../../domain/audit.ts";

/** An entry with its number. Later entries have higher numbers. */
export interface NumberedEntry extends AuditEntry {
  number: number;
}

export interface AuditFilter {
  /** Only entries of actors whose name begins with this text. */
  who?: string | undefined;
  action?: AuditedAction | undefined;
  /** Epoch milliseconds; `to` is exclusive. */
  from?: number | undefined;
  to?: number | undefined;
}

/** Which entries a page has: older or newer than the entry with this number. Default: the newest entries. */
export type AuditPlace = { olderThan?: number; newerThan?: number };

/** Entries of a page, newest first. */
export interface AuditPage {
  entries: NumberedEntry[];
  /** If `goesOn` ended the scan early: the number of the last scanned entry. Otherwise null. */
  end: number | null;
}

/** The audit list of each shop: who did what, from where, and when. */
export interface AuditStore {
  /** Adds an entry for an action that changes no stored data. `Store.audited` writes the entries of changes. */
  add(shopId: number, entry: AuditEntry): Promise<void>;
  /** Returns up to `limit` entries, newest first. Scans until it has `limit` entries or the list ends. */
  list(shopId: number, filter: AuditFilter, place: AuditPlace, limit: number): Promise<NumberedEntry[]>;
  /**
   * Returns a page of entries. Scans the list part by part until the page is full.
   * @param goesOn called after each part; false ends the scan early
   */
  page(
    shopId: number,
    filter: AuditFilter,
    place: AuditPlace,
    limit: number,
    goesOn: () => boolean,
  ): Promise<AuditPage>;
  /** Removes the entries made before a time. @returns the number of removed entries */
  prune(before: number): Promise<number>;
}

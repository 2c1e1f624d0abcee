import type { AuditEntry, AuditedAction } from "../../domain/audit.ts";

/** An entry with its number. Numbers follow the order of the entries. */
export interface NumberedEntry extends AuditEntry {
  number: number;
}

export interface AuditFilter {
  /** The beginning of the actor's name. */
  who?: string | undefined;
  action?: AuditedAction | undefined;
  /** Epoch milliseconds; `to` is exclusive. */
  from?: number | undefined;
  to?: number | undefined;
}

/** Where a page of the audit list begins: at the newest entry, or beside an entry. */
export type AuditPlace = { olderThan?: number; newerThan?: number };

/** Entries of a page, newest first. */
export interface AuditPage {
  entries: NumberedEntry[];
  /** The number of the last scanned entry, if more entries follow; otherwise null. */
  end: number | null;
}

/** The audit list of each shop: who did what, from where, and when. */
export interface AuditStore {
  /** Adds an entry for an act that changes no stored data. `Store.audited` writes the entries of changes. */
  add(shopId: number, entry: AuditEntry): Promise<void>;
  /** Returns the entries beside a place, newest first. Scans the whole list. */
  list(shopId: number, filter: AuditFilter, place: AuditPlace, limit: number): Promise<NumberedEntry[]>;
  /**
   * Returns the entries beside a place. Scans the list part by part.
   * @param goesOn whether to scan another part while fewer entries than the limit were found
   */
  page(
    shopId: number,
    filter: AuditFilter,
    place: AuditPlace,
    limit: number,
    goesOn: () => boolean,
  ): Promise<AuditPage>;
  /** Removes the entries before a time. @returns how many */
  prune(before: number): Promise<number>;
}

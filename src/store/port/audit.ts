import type { AuditEntry, AuditedAction } from "../../domain/audit.ts";

/** An entry with its number. Numbers follow the order of the entries. */
export interface NumberedEntry extends AuditEntry {
  number: number;
}

export interface AuditFilter {
  /** The begin of the name of who did it. */
  who?: string | undefined;
  action?: AuditedAction | undefined;
  /** Epoch milliseconds; `to` is exclusive. */
  from?: number | undefined;
  to?: number | undefined;
}

/** Where a page of the audit list begins: at the newest entry, or beside an entry. */
export type AuditPlace = { olderThan?: number; newerThan?: number };

/** The audit list of each shop: who did what, from where, and when. */
export interface AuditStore {
  /** Adds an entry of what changes nothing that is stored. `Store.audited` writes the entries of changes. */
  add(shopId: number, entry: AuditEntry): Promise<void>;
  /** Returns entries, newest first. */
  list(shopId: number, filter: AuditFilter, place: AuditPlace, limit: number): Promise<NumberedEntry[]>;
  /** Removes the entries before a time. @returns how many */
  prune(before: number): Promise<number>;
}

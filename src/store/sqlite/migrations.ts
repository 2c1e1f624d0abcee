import type { Resource } from "../../domain/resources.ts";
import mirror from "./migrations/0001_mirror.sql" with { type: "text" };
import deliveries from "./migrations/0002_deliveries.sql" with { type: "text" };
import platform from "./migrations/0003_platform.sql" with { type: "text" };
import admin from "./migrations/0004_admin.sql" with { type: "text" };
import namesAndCounts from "./migrations/0005_names_and_counts.sql" with { type: "text" };
import removalBodiesAndPace from "./migrations/0006_removal_bodies_and_pace.sql" with { type: "text" };
import readsAndDataRequests from "./migrations/0007_reads_and_data_requests.sql" with { type: "text" };
import settingsPage from "./migrations/0008_settings_page.sql" with { type: "text" };
import changesAndOverlap from "./migrations/0009_changes_and_overlap.sql" with { type: "text" };

/** A row's JSON as it is served, parsed. */
export type StoredRow = Record<string, unknown>;

export interface Migration {
  /** Empty where stored rows are rendered anew and nothing else changes. */
  sql: string;
  /**
   * Renders the stored rows of a resource anew, after the SQL. A field that is added to a resource needs it, because
   * rows are stored as they are served: older rows would lack the field. Return the fields in the order of the
   * resource's schema.
   */
  render?: Partial<Record<Resource, (row: StoredRow) => StoredRow>>;
}

/** Append only: a database in the field has run the first ones of this list; PRAGMA user_version says how many. */
export const MIGRATIONS: readonly Migration[] = [
  { sql: mirror },
  { sql: deliveries },
  { sql: platform },
  { sql: admin },
  { sql: namesAndCounts },
  { sql: removalBodiesAndPace },
  { sql: readsAndDataRequests },
  { sql: settingsPage },
  { sql: changesAndOverlap },
];

import type { Database } from "bun:sqlite";
import type { Resource } from "../../domain/resources.ts";
import { applyLeftOverBodies, type UpgradeOptions } from "./left-over-bodies.ts";
import mirror from "./migrations/0001_mirror.sql" with { type: "text" };
import deliveries from "./migrations/0002_deliveries.sql" with { type: "text" };
import platform from "./migrations/0003_platform.sql" with { type: "text" };
import admin from "./migrations/0004_admin.sql" with { type: "text" };
import namesAndCounts from "./migrations/0005_names_and_counts.sql" with { type: "text" };
import removalBodiesAndPace from "./migrations/0006_removal_bodies_and_pace.sql" with { type: "text" };
import readsAndDataRequests from "./migrations/0007_reads_and_data_requests.sql" with { type: "text" };
import settingsPage from "./migrations/0008_settings_page.sql" with { type: "text" };
import changesAndOverlap from "./migrations/0009_changes_and_overlap.sql" with { type: "text" };
import newRowsWithoutTriggers from "./migrations/0011_new_rows_without_triggers.sql" with { type: "text" };
import customFieldsAndStyle from "./migrations/0012_custom_fields_and_style.sql" with { type: "text" };
import redactions from "./migrations/0013_redactions.sql" with { type: "text" };
import exchangeRates from "./migrations/0014_exchange_rates.sql" with { type: "text" };
import queuesAndConnections from "./migrations/0015_queues_and_connections.sql" with { type: "text" };
import renewalsAndInstallation from "./migrations/0016_renewals_and_installation.sql" with { type: "text" };
import auditAndAlerts from "./migrations/0017_audit_and_alerts.sql" with { type: "text" };
import unsentEvents from "./migrations/0018_unsent_events.sql" with { type: "text" };
import shopMovesAndLoads from "./migrations/0019_shop_moves_and_loads.sql" with { type: "text" };

/** The parsed JSON of a row. */
export type SqliteRow = Record<string, unknown>;

export interface Migration {
  /** SQL of the migration. Empty if the migration only renders rows. */
  sql: string;
  /**
   * Renders the stored rows of a resource again, after the SQL. A new field of a resource needs this. Rows are stored
   * as they are served, so older rows would lack the field. Return the fields in the order of the resource's schema.
   */
  render?: Partial<Record<Resource, (row: SqliteRow) => SqliteRow>>;
  /** Runs after all migrations, in their transaction. So it may use statements of today's schema. */
  finish?: (db: Database, options: UpgradeOptions) => void;
}

/** Append only, because PRAGMA user_version is the number of migrations that a database has run. */
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
  // From this version on, one commit stores a whole body of the intake. Earlier versions stored larger bodies in parts.
  // `finish` applies these bodies and drops their tables.
  { sql: "", finish: applyLeftOverBodies },
  { sql: newRowsWithoutTriggers },
  { sql: customFieldsAndStyle },
  { sql: redactions },
  { sql: exchangeRates },
  { sql: queuesAndConnections },
  { sql: renewalsAndInstallation },
  { sql: auditAndAlerts },
  { sql: unsentEvents },
  { sql: shopMovesAndLoads },
];

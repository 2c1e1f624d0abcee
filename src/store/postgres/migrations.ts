import tables from "./migrations/0001_tables.sql" with { type: "text" };
import changesAndOverlap from "./migrations/0002_changes_and_overlap.sql" with { type: "text" };
import noLargeBodies from "./migrations/0003_no_large_bodies.sql" with { type: "text" };
import customFieldsAndStyle from "./migrations/0004_custom_fields_and_style.sql" with { type: "text" };
import redactions from "./migrations/0005_redactions.sql" with { type: "text" };
import exchangeRates from "./migrations/0006_exchange_rates.sql" with { type: "text" };
import queuesAndConnections from "./migrations/0007_queues_and_connections.sql" with { type: "text" };
import renewalsAndInstallation from "./migrations/0008_renewals_and_installation.sql" with { type: "text" };
import auditAndAlerts from "./migrations/0009_audit_and_alerts.sql" with { type: "text" };
import dueWork from "./migrations/0010_due_work.sql" with { type: "text" };
import unsentEvents from "./migrations/0011_unsent_events.sql" with { type: "text" };
import shopMovesAndLoads from "./migrations/0012_shop_moves_and_loads.sql" with { type: "text" };

/**
 * Append only, because databases have already run the entries. The row `schema` of the table `meta` has the number of
 * entries that a database has run. During an upgrade, a node may run beside an older program that lacks the last entry.
 * So each entry keeps what the previous version needs. The next entry may remove that.
 */
export const MIGRATIONS: readonly string[] = [
  tables,
  changesAndOverlap,
  noLargeBodies,
  customFieldsAndStyle,
  redactions,
  exchangeRates,
  queuesAndConnections,
  renewalsAndInstallation,
  auditAndAlerts,
  dueWork,
  unsentEvents,
  shopMovesAndLoads,
];

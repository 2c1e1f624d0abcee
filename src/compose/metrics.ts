import { Counter, Gauge, Histogram, Registry } from "prom-client";
import { DELIVERY_KINDS, type DeliveryKind } from "../domain/deliveries/delivery.ts";
import { FAILURE_STATUSES } from "../http/respond.ts";
import type { Route } from "../http/routes.ts";
import { type AnsweredRequest, labelOf } from "../http/server.ts";
import type { Figures } from "./figures.ts";

const OUTCOMES = ["delivered", "failed"] as const;
const REQUEST_BUCKETS_S = [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10];
const ATTEMPT_BUCKETS_S = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

export type Metrics = ReturnType<typeof createMetrics>;

/** The values that each scrape reads from the program. */
export interface MetricsSource {
  version: string;
  engine: "sqlite" | "postgres";
  /** Whether the program can take work. */
  isReady: () => boolean;
  /** The lowest number of platform points that a shop has left; undefined before the platform's first answer. */
  fewestPoints: () => number | undefined;
  /** The last figures of the database; undefined before the first reading. */
  figures: () => Figures | undefined;
  /** Epoch milliseconds. */
  now: () => number;
}

/**
 * Creates the metrics of docs/operating.md. Counters that an alert reads have all their series from the start, because
 * `rate` misses the first increase of a new series. No label names a shop, a host, a path or a person.
 */
export function createMetrics(source: MetricsSource) {
  const { version, engine } = source;
  const registry = new Registry();
  const registers = [registry];
  new Gauge({
    name: "sds_build_info",
    help: "Version and database engine of the program; always 1",
    labelNames: ["version", "engine"],
    registers,
  }).set({ version, engine }, 1);
  addGauges(registers, source);
  return {
    ...requestMetrics(registers),
    ...workMetrics(registers),
    text: () => registry.metrics(),
  };
}

type GaugeValue = number | null | undefined;

/** Returns functions that add a gauge, which is read at each scrape. */
function gaugesOf(registers: Registry[]) {
  /** Adds a gauge. While `read` returns no value, there is no series. */
  function gauge(name: string, help: string, read: () => GaugeValue): void {
    new Gauge({
      name,
      help,
      registers,
      collect() {
        const value = read();
        if (value === undefined || value === null) this.remove();
        else this.set(value);
      },
    });
  }
  function gaugeByState(name: string, help: string, read: () => Record<string, number> | undefined): void {
    new Gauge({
      name,
      help,
      labelNames: ["state"],
      registers,
      collect() {
        for (const [state, value] of Object.entries(read() ?? {})) this.set({ state }, value);
      },
    });
  }
  return { gauge, gaugeByState };
}

function addGauges(registers: Registry[], { isReady, fewestPoints, figures, now }: MetricsSource): void {
  const { gauge, gaugeByState } = gaugesOf(registers);
  /** Returns the seconds from a time until now. */
  const since = (at: GaugeValue) => (at === undefined || at === null ? at : Math.max(0, now() - at) / 1_000);
  const figure = (read: (last: Figures) => GaugeValue) => () => {
    const last = figures();
    return last && read(last);
  };

  gauge("sds_ready", "1 if the program can take work", () => (isReady() ? 1 : 0));
  gaugeByState("sds_deliveries", "Deliveries of all shops that wait or are dead", () => figures()?.totals.deliveries);
  gauge(
    "sds_delivery_oldest_due_seconds",
    "How long the oldest due delivery has been due; 0 if none is due",
    figure(({ totals }) => since(totals.firstDueAt) ?? 0),
  );
  gaugeByState("sds_inbox", "Items in the inboxes of all shops", () => figures()?.totals.inbox);
  gauge("sds_platform_points_available", "The platform's points of the shop that has the fewest", fewestPoints);
  gauge(
    "sds_shops_disconnected",
    "Shops whose connection the platform refuses",
    figure(({ totals }) => totals.refusedShops),
  );
  gauge(
    "sds_oldest_reconciliation_seconds",
    "Age of the oldest reconciliation of the shops that the platform accepts",
    figure(({ totals }) => since(totals.reconciledAt)),
  );
  gauge(
    "sds_database_bytes",
    "Size of the database",
    figure(({ database }) => database.bytes),
  );
  gauge(
    "sds_wal_bytes",
    "Size of the write-ahead log of SQLite",
    figure(({ database }) => database.walBytes),
  );
  gauge(
    "sds_disk_free_bytes",
    "Free space on the disk of the data folder",
    figure((last) => last.diskFreeBytes),
  );
  gauge(
    "sds_last_backup_timestamp_seconds",
    "When the last complete sds backup began; 0 without one",
    // PostgreSQL has no such series, because its own tools make the backups.
    figure(({ database }) => (database.walBytes === null ? null : (database.lastBackupAt ?? 0) / 1_000)),
  );
}

function requestMetrics(registers: Registry[]) {
  const requests = new Counter({
    name: "sds_http_requests_total",
    help: "Answered requests by route and status",
    labelNames: ["route", "status"],
    registers,
  });
  const durations = new Histogram({
    name: "sds_http_request_duration_seconds",
    help: "Time until a request's answer was made, by route",
    labelNames: ["route"],
    buckets: REQUEST_BUCKETS_S,
    registers,
  });
  return {
    /**
     * Sets the counters of failed requests to 0 for each route, because an alert must see the first failure. Other
     * series begin with the first request, because most routes are rarely requested.
     */
    addRoutes(routes: readonly Route[]): void {
      for (const route of new Set([undefined, ...routes].map(labelOf)))
        for (const status of FAILURE_STATUSES) requests.inc({ route, status }, 0);
    },
    noteAnswer({ route, response: { status }, tookMs }: AnsweredRequest): void {
      requests.inc({ route, status });
      durations.observe({ route }, tookMs / 1_000);
    },
  };
}

function workMetrics(registers: Registry[]) {
  const attempts = new Counter({
    name: "sds_delivery_attempts_total",
    help: "Recorded attempts to deliver, by kind and outcome",
    labelNames: ["kind", "outcome"],
    registers,
  });
  for (const kind of DELIVERY_KINDS) for (const outcome of OUTCOMES) attempts.inc({ kind, outcome }, 0);
  const durations = new Histogram({
    name: "sds_delivery_attempt_duration_seconds",
    help: "Duration of attempts to deliver",
    buckets: ATTEMPT_BUCKETS_S,
    registers,
  });
  const commits = new Counter({
    name: "sds_commits_total",
    help: "Commits of records to the mirror",
    registers,
  });
  const records = new Counter({
    name: "sds_commit_records_total",
    help: "Records in the commits to the mirror",
    registers,
  });
  return {
    noteAttempt(kind: DeliveryKind, hasSucceeded: boolean, durationMs: number): void {
      attempts.inc({ kind, outcome: hasSucceeded ? "delivered" : "failed" });
      durations.observe(durationMs / 1_000);
    },
    noteCommit(count: number): void {
      commits.inc();
      records.inc(count);
    },
  };
}

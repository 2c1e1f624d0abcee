import { Counter, Gauge, Histogram, Registry } from "prom-client";
import { DELIVERY_KINDS, type DeliveryKind } from "../domain/deliveries/delivery.ts";
import { ANSWER_STATUSES } from "../http/respond.ts";
import { type AnsweredRequest, OTHER_ROUTE } from "../http/server.ts";

const OUTCOMES = ["delivered", "failed"] as const;
const REQUEST_BUCKETS_S = [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10];
const ATTEMPT_BUCKETS_S = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

export type Metrics = ReturnType<typeof createMetrics>;

interface Facts {
  version: string;
  engine: "sqlite" | "postgres";
  /** Whether the program can take work. */
  isReady: () => boolean;
}

/**
 * Creates the metrics of docs/operating.md. Counters have all their labels from the start: `rate` misses the first
 * increase of a series that begins with it. No label tells a shop, a host, a path or a person.
 */
export function createMetrics({ version, engine, isReady }: Facts) {
  const registry = new Registry();
  const registers = [registry];
  new Gauge({
    name: "sds_build_info",
    help: "Version and database engine of the program; always 1",
    labelNames: ["version", "engine"],
    registers,
  }).set({ version, engine }, 1);
  new Gauge({
    name: "sds_ready",
    help: "1 if the program can take work",
    registers,
    collect() {
      this.set(isReady() ? 1 : 0);
    },
  });
  const work = workMetrics(registers);
  return {
    ...requestMetrics(registers),
    ...work,
    text: () => registry.metrics(),
  };
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
    /** Notes the paths of the table of routes. */
    addRoutes(paths: readonly string[]): void {
      for (const route of [...paths, OTHER_ROUTE]) {
        for (const status of ANSWER_STATUSES) requests.inc({ route, status }, 0);
        durations.zero({ route });
      }
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

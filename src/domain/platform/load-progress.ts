import { counted } from "../../lib/text.ts";
import type { SyncCounts, SyncRun } from "./sync.ts";

/** How far a sync is. */
export interface SyncProgress {
  counts: SyncCounts;
  stage: SyncRun["stage"];
  /** The finished part of the stage, 0 to 1; undefined if unknown. */
  done: number | undefined;
  /** The bulk operation that the platform prepares now, or whose file is read now. */
  bulk?: BulkProgress;
}

export interface BulkProgress {
  what: "customers" | "orders";
  /** First the platform prepares a file, and then the file is read. */
  state: "preparing" | "reading";
  /** The number of objects that the platform has prepared, or that were read. */
  count: number;
}

/** How far the load of a shop is. Stored, so that every node and command can show it. */
export interface LoadProgress extends Partial<SyncProgress> {
  /** Estimated time until the current stage ends, in milliseconds. */
  leftMs?: number;
  /** Why the load was interrupted. */
  error?: string;
}

/** A progress that was stored as JSON, which drops undefined fields. */
type Progress = Omit<SyncProgress, "done"> & Pick<LoadProgress, "done">;

/** The stages of a load, in their order. */
const LOAD_STAGES: SyncRun["stage"][] = ["customers", "orders", "subscriptions"];
const MINUTE_MS = 60_000;
/** The estimated total is shown once this part of a stage is finished. Earlier, the estimate is too rough. */
const MIN_DONE = 0.02;

/** Says how far a load is: "1,240 of about 5,000 subscriptions, 2 minutes left". */
export function loadText(progress: LoadProgress): string {
  const { stage, counts, leftMs } = progress;
  if (stage === undefined || counts === undefined) return "it begins now";
  const left = leftMs === undefined ? "" : `, ${leftText(leftMs)}`;
  return `${progressText({ ...progress, stage, counts })}${left}`;
}

/** Says which of the three steps of a load this is. */
export function stepText({ stage }: Pick<SyncProgress, "stage">): string {
  return `step ${LOAD_STAGES.indexOf(stage) + 1} of ${LOAD_STAGES.length}`;
}

/** Says how far a sync is, without the time left. */
export function progressText({ stage, counts, done, bulk }: Progress): string {
  if (bulk?.state === "preparing")
    return `the platform prepares the file of ${bulk.what}, ${bulk.count.toLocaleString("en")} so far`;
  if (bulk?.what === "orders") return countText(bulk.count, totalOf(bulk.count, done), "order", "orders");
  if (stage === "customers")
    return countText(counts.customers, totalOf(counts.customers, done), "customer", "customers");
  const { subscriptions } = counts;
  const total = done === undefined || done < MIN_DONE ? undefined : totalOf(subscriptions, done);
  const isEstimate = done !== 1;
  return countText(subscriptions, isEstimate ? rounded(total) : total, "subscription", "subscriptions", isEstimate);
}

function countText(count: number, total: number | undefined, one: string, many: string, isEstimate = false): string {
  if (total === undefined || total < count) return counted(count, one, many);
  return `${count.toLocaleString("en")} of ${isEstimate ? "about " : ""}${counted(total, one, many)}`;
}

function totalOf(count: number, done: number | undefined): number | undefined {
  return done !== undefined && done > 0 ? Math.round(count / Math.min(done, 1)) : undefined;
}

/** Rounds an estimate up, to two significant digits. */
function rounded(total: number | undefined): number | undefined {
  if (total === undefined) return undefined;
  const unit = 10 ** Math.max(0, String(total).length - 2);
  return Math.ceil(total / unit) * unit;
}

function leftText(leftMs: number): string {
  if (leftMs < MINUTE_MS) return "less than a minute left";
  const minutes = Math.ceil(leftMs / MINUTE_MS);
  return minutes < 120
    ? `${counted(minutes, "minute", "minutes")} left`
    : `${counted(Math.ceil(minutes / 60), "hour", "hours")} left`;
}

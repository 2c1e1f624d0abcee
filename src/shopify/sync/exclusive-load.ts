import { readlinkSync } from "node:fs";
import { hostname } from "node:os";
import { messageOf } from "../../domain/error.ts";
import type { LoadProgress, SyncProgress } from "../../domain/platform/load-progress.ts";
import type { SyncCounts } from "../../domain/platform/sync.ts";
import type { Shop } from "../../domain/shop.ts";
import { createPace, type PaceMeter, timeLeft } from "../../lib/pace.ts";
import type { LoadState, SyncStore } from "../../store/port/syncs.ts";
import type { LoadOptions } from "./full-sync.ts";
import type { OnProgress } from "./progress.ts";
import type { Synchronizer } from "./synchronizer.ts";

interface Dependencies {
  syncs: Pick<SyncStore, "claimLoad" | "keepLoad" | "releaseLoad" | "loadState" | "unfinished">;
  synchronizer: Pick<Synchronizer, "load">;
  now: () => number;
  /** Milliseconds of a clock that only goes forward. */
  clock: () => number;
}

/** After this time, another process may continue the load of a dead process. */
const CLAIM_MS = 15_000;
/** Interval at which the claim is extended and the progress is stored. */
const KEEP_INTERVAL_MS = 2_000;

/**
 * Loads a shop, unless another process loads it. Stores the load's progress. The claim only saves work: two loads of a
 * shop at the same time are harmless.
 * @returns undefined if another process loads the shop @throws PlatformError; then the next load continues
 */
export async function loadExclusively(
  { syncs, synchronizer, now, clock }: Dependencies,
  shop: Shop,
  options: LoadOptions,
  onProgress: OnProgress = () => {},
): Promise<SyncCounts | undefined> {
  const holder = `${machine()} ${process.pid} ${crypto.randomUUID()}`;
  const current = await syncs.loadState(shop.id, now());
  if (isLoading(current)) return undefined;
  const deadHolder = current?.holder ?? undefined;
  if (!(await syncs.claimLoad(shop.id, { holder, now: now(), until: now() + CLAIM_MS, deadHolder }))) return undefined;
  const pace = createPace();
  const run = await syncs.unfinished(shop.id, "full");
  let progress: LoadProgress = run === undefined ? {} : { stage: run.stage, counts: run.counts };
  const keep = () => syncs.keepLoad(shop.id, holder, now() + CLAIM_MS, progress);
  // A failure is ignored: either the next call works, or the load fails too.
  const timer = setInterval(() => void keep().catch(() => undefined), KEEP_INTERVAL_MS);
  try {
    await keep();
    const counts = await synchronizer.load(shop, options, (update) => {
      progress = withTimeLeft(pace, update, clock());
      onProgress(update);
    });
    progress = { ...progress, counts };
    return counts;
  } catch (thrown) {
    progress = { ...progress, error: messageOf(thrown) };
    throw thrown;
  } finally {
    clearInterval(timer);
    // If the release fails, the claim expires later.
    await syncs.releaseLoad(shop.id, holder, progress).catch(() => undefined);
  }
}

function withTimeLeft(pace: PaceMeter, update: SyncProgress, at: number): LoadProgress {
  const { done } = update;
  const from = pace.note(done, at);
  const leftMs = done === undefined ? undefined : timeLeft(from, { done, at });
  return { ...update, ...(leftMs !== undefined && { leftMs }) };
}

/** Whether some process loads the shop. */
export function isLoading(state: LoadState | undefined): boolean {
  return state !== undefined && state.holder !== null && !isDead(state.holder);
}

/** Whether the process of a claim is dead. Returns false for a process of another machine, because we cannot know. */
function isDead(holder: string): boolean {
  const [host, pid] = holder.split(" ");
  if (host !== machine()) return false;
  try {
    process.kill(Number(pid), 0);
    return false;
  } catch (thrown) {
    return (thrown as NodeJS.ErrnoException).code === "ESRCH";
  }
}

/** Returns the host's name and, on Linux, the pid namespace, because containers can share the host's name. */
function machine(): string {
  try {
    return `${hostname()}/${readlinkSync("/proc/self/ns/pid")}`;
  } catch {
    return hostname();
  }
}

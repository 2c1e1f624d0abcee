import type { Membership } from "../cluster/membership.ts";
import type { Pace } from "../domain/deliveries/delivery.ts";
import type { Log } from "../lib/log.ts";
import { createTurnLoop, type TurnLoop } from "../lib/turn-loop.ts";
import { nextTurn, type Sleep } from "../lib/waits.ts";
import type { AttemptResult, Claim, DeliveryQueue } from "../store/port/deliveries.ts";
import { failureFields } from "../store/port/store-error.ts";
import type { AttemptOutcome } from "./attempt.ts";
import { type ConcurrencyLimiter, createConcurrencyLimiter } from "./concurrency-limiter.ts";
import { createFailureLog, type FailureLog } from "./failure-log.ts";

export interface SenderSettings {
  /** Maximum number of attempts at the same time, for all shops together. */
  concurrency: number;
  /** Maximum number of a shop's webhook attempts at the same time. Its workflow triggers have the same limit. */
  perShop: number;
  /** The time limit of an attempt. */
  timeoutMs: number;
  /** Whether other nodes claim deliveries too. Then a lease needs a longer margin, because the nodes' clocks differ. */
  isShared: boolean;
  /** The wait after each attempt, except the last attempt of a round: see `afterAttempt`. */
  waitsMs: readonly number[];
}

interface Dependencies {
  deliveries: DeliveryQueue;
  attempt: (claim: Claim) => Promise<AttemptOutcome>;
  membership: Pick<Membership, "mayBegin">;
  /** The wall clock, which somebody can set. */
  now: () => number;
  /** Milliseconds of a clock that only goes forward. */
  clock: () => number;
  sleep: Sleep;
  log: Log;
  /** Called for each attempt that was recorded. */
  onRecorded?: ((result: AttemptResult) => void) | undefined;
}

export interface Sender {
  /** Whether the last turn failed to record results or to read due deliveries. */
  readonly failing: boolean;
  /** Requests a turn. Called once a second, and when something was queued. */
  wake(): void;
  /** Stops claiming, waits for the attempts under way, and records them. May be called twice. */
  stop(): Promise<void>;
}

/** A lease ends this long after the timeout of its attempt, so that the result can be recorded in time. */
const LEASE_MARGIN_MS = 5_000;
/**
 * The margin of a lease if several nodes share the database. It covers a claim and a signature (two seconds each), the
 * difference of the clocks (four seconds), and the recording.
 */
const SHARED_LEASE_MARGIN_MS = 10_000;
/**
 * Maximum time of a claim if several nodes share the database. Deliveries of a slower claim are not attempted, because
 * their leases could end during the attempts.
 */
const LONGEST_CLAIM_MS = 2_000;
/** Maximum difference between the clocks of two nodes. Each may differ from the database's clock by half of this. */
const CLOCK_SLACK_MS = 4_000;
/** A turn waits for this many results, but at most for `GATHER_ROUNDS` rounds of the event loop. */
const GATHERED_RESULTS = 200;
const GATHER_ROUNDS = 20;
/** A turn also stops waiting after this many consecutive rounds in which no attempt ended. */
const QUIET_ROUNDS = 3;

/** An attempt that ended. `startedAt` is computed only at the recording: until then, the wall clock can be changed. */
type EndedAttempt = Pick<AttemptResult, "claim" | "outcome" | "duration"> & {
  /** The start, by the clock that only goes forward. */
  beganMs: number;
  timedOut: boolean;
  pace: Pace | undefined;
};

interface SenderState extends Dependencies {
  settings: SenderSettings;
  loop: TurnLoop;
  limiter: ConcurrencyLimiter;
  failureLog: FailureLog;
  /** How long an attempt and its recording may take. */
  leaseMs: number;
  /** The deliveries that are being attempted, by id. */
  claims: Map<string, Claim>;
  /** Results that are not recorded yet. */
  results: EndedAttempt[];
  /** Whether the stored paces were read. */
  isRestored: boolean;
  /** Whether `wake` was called since the last turn. */
  isAsked: boolean;
  /** The wall clock at the last turn. */
  lastTurnAt: number;
}

/**
 * Claims due deliveries, attempts them, and records the results. It works in turns. One transaction records the results
 * since the last turn and claims the next deliveries. So one sync of the disk serves many attempts. The end of an
 * attempt also requests a turn.
 *
 * If a result cannot be recorded, the sender keeps it and records it in the next turn. If the process ends before that,
 * the delivery is attempted again after its lease. The lost attempt is not counted.
 */
export function createSender(dependencies: Dependencies, settings: SenderSettings): Sender {
  const { sleep, log } = dependencies;
  const state: SenderState = {
    ...dependencies,
    settings,
    loop: createTurnLoop({
      turn: () => makeTurn(state),
      sleep,
      onFailure: (thrown) => {
        const fields = { ...failureFields(thrown), kept: state.results.length };
        log.error("cannot record or claim deliveries; nothing is lost, the next turn tries again", fields);
      },
    }),
    limiter: createConcurrencyLimiter(settings.concurrency, settings.perShop, dependencies.clock),
    failureLog: createFailureLog(log, settings.waitsMs, dependencies.clock),
    leaseMs: settings.timeoutMs + (settings.isShared ? SHARED_LEASE_MARGIN_MS : LEASE_MARGIN_MS),
    claims: new Map(),
    results: [],
    isRestored: false,
    isAsked: false,
    lastTurnAt: Number.POSITIVE_INFINITY,
  };
  const { loop } = state;
  return {
    get failing() {
      return loop.failing;
    },
    wake() {
      state.isAsked = true;
      loop.wake();
    },
    async stop() {
      await loop.stop();
      state.failureLog.reportAll();
    },
  };
}

async function makeTurn(state: SenderState): Promise<void> {
  const { settings, limiter, failureLog, onRecorded, claims, loop, log } = state;
  await gather(state);
  state.isAsked = false;
  const ended = state.results;
  state.results = [];
  try {
    const { recorded, claimed, claimMs } = await recordAndClaim(state, ended);
    for (const result of recorded) {
      failureLog.note(result);
      onRecorded?.(result);
    }
    failureLog.report();
    const isLate = settings.isShared && claimMs > LONGEST_CLAIM_MS;
    // After a late claim, no new attempt begins. But a claimed delivery can still have a running attempt. This attempt
    // gets the new lease, because its result must have that lease.
    const launched = isLate ? claimed.filter(({ id }) => claims.has(id)) : claimed;
    for (const claim of launched) launch(state, claim);
    const count = claimed.length - launched.length;
    if (count > 0) log.warn("deliveries are attempted later, because the database took long", { count, claimMs });
    if (limiter.heldBack && claimed.length > 0) loop.wake();
  } catch (thrown) {
    state.results = [...ended, ...state.results];
    throw thrown;
  }
}

/**
 * Waits for more results, so that one transaction records them and writes each page of the database once. Without load,
 * the wait takes microseconds. A turn that `wake` requested does not wait.
 */
async function gather(state: SenderState): Promise<void> {
  let quietRounds = 0;
  for (let round = 0; round < GATHER_ROUNDS && quietRounds < QUIET_ROUNDS; round += 1) {
    const count = state.results.length;
    const isEnough = count === 0 || count >= Math.min(GATHERED_RESULTS, state.claims.size);
    if (state.isAsked || state.loop.stopping || isEnough) break;
    await nextTurn();
    quietRounds = state.results.length === count ? quietRounds + 1 : 0;
  }
}

async function recordAndClaim(state: SenderState, ended: readonly EndedAttempt[]) {
  const { settings, limiter, loop, deliveries, membership, leaseMs, now, clock } = state;
  const at = now();
  const results = ended.map((each) => resultOf(each, at - clock()));
  if (!state.isRestored) await restorePaces(state, at);
  if (at < state.lastTurnAt) await bringForward(state, at);
  state.lastTurnAt = at;
  const due = loop.stopping || limiter.free === 0 ? [] : await deliveries.dueQueues(at);
  const claims = limiter.share(due.filter(({ shopId }) => membership.mayBegin(shopId)));
  if (ended.length === 0 && claims.length === 0) return { recorded: [], claimed: [], claimMs: 0 };
  const beganMs = clock();
  const turn = await deliveries.recordAndClaim(results, claims, at, now() + leaseMs, settings.waitsMs);
  return { ...turn, claimMs: Math.round(clock() - beganMs) };
}

/** @param aheadMs how far the wall clock is ahead of `clock`, which only goes forward */
function resultOf({ beganMs, timedOut, pace, ...ended }: EndedAttempt, aheadMs: number): AttemptResult {
  const startedAt = Math.round(aheadMs + beganMs);
  const timedOutAt = timedOut ? startedAt + ended.duration : null;
  return { ...ended, startedAt, ...(pace !== undefined && { pace: { pace, timedOutAt } }) };
}

/** Restores the stored paces before the first turn. */
async function restorePaces(state: SenderState, at: number): Promise<void> {
  for (const { shopId, url, pace, timedOutAt } of await state.deliveries.listPaces()) {
    // A stored timeout is in the future if the clock was ahead. Such a timeout is treated as one that happened now.
    const ageMs = timedOutAt === null ? Number.POSITIVE_INFINITY : Math.max(0, at - timedOutAt);
    state.limiter.restore(shopId, url, pace, ageMs);
  }
  state.isRestored = true;
}

/**
 * Corrects times that were stored while a clock was ahead. Called at the first turn, and after a clock was set back.
 */
async function bringForward({ deliveries, settings, leaseMs, log }: SenderState, at: number): Promise<void> {
  const longestMs = Math.max(...settings.waitsMs, leaseMs) + CLOCK_SLACK_MS;
  const count = await deliveries.bringForward(at + longestMs, at);
  if (count > 0) log.warn("the clock was ahead: deliveries that were planned at that time are due now", { count });
}

function launch(state: SenderState, claim: Claim): void {
  const running = state.claims.get(claim.id);
  if (running === undefined) {
    state.claims.set(claim.id, claim);
    state.loop.track(makeAttempt(state, claim));
    return;
  }
  // The clock was set forward, so the lease ended early. The running attempt continues under the new lease.
  const { lease, attempts, round } = claim;
  Object.assign(running, { lease, attempts, round });
}

async function makeAttempt(state: SenderState, claim: Claim): Promise<void> {
  const { attempt, limiter, claims, clock, log } = state;
  const isWebhook = claim.kind === "webhook";
  const giveBack = limiter.take(claim.shopId, claim.kind, isWebhook ? claim.url : null);
  const beganMs = clock();
  let ended: AttemptOutcome;
  try {
    ended = await attempt(claim);
  } catch (thrown) {
    // This process failed, not the endpoint. Nothing is recorded, so the delivery is attempted again after its lease.
    giveBack();
    log.error("cannot attempt a delivery", { delivery: claim.id, ...failureFields(thrown) });
    return;
  } finally {
    claims.delete(claim.id);
  }
  const { timedOut, ...outcome } = ended;
  const { statusCode, error } = outcome;
  const duration = Math.round(clock() - beganMs);
  const pace = giveBack({ timedOut });
  state.results.push({ claim, outcome, beganMs, duration, timedOut, pace: isWebhook ? pace : undefined });
  log.debug("attempted a delivery", { delivery: claim.id, statusCode, error });
}

import type { Membership } from "../cluster/membership.ts";
import type { Log } from "../lib/log.ts";
import { createTurnLoop } from "../lib/turn-loop.ts";
import { nextTurn } from "../lib/turns.ts";
import type { Sleep } from "../lib/waits.ts";
import type { AttemptResult, Claim, DeliveryStore } from "../store/port/deliveries.ts";
import { failureFields } from "../store/port/store-error.ts";
import type { AttemptOutcome } from "./attempt.ts";
import { createConcurrencyLimiter } from "./concurrency-limiter.ts";
import { createFailureLog } from "./failure-log.ts";

export interface SenderSettings {
  /** Attempts at once, of all shops together. */
  concurrency: number;
  /** Attempts at once of one shop. */
  perShop: number;
  /** The longest time that an attempt takes. */
  timeoutMs: number;
  /**
   * Whether other nodes claim deliveries too. Then a lease must outlast its attempt by more: their clocks differ.
   */
  isShared: boolean;
  /** The wait after each attempt, except the last attempt of a round: see `afterAttempt`. */
  waitsMs: readonly number[];
}

interface Dependencies {
  deliveries: Pick<DeliveryStore, "dueShops" | "turn" | "paces" | "bringForward">;
  attempt: (claim: Claim) => Promise<AttemptOutcome>;
  membership: Pick<Membership, "mayBegin">;
  now: () => number;
  sleep: Sleep;
  log: Log;
}

export interface Sender {
  /** Whether the last turn could not record results or could not read due deliveries. */
  readonly failing: boolean;
  /** Asks for a turn: once a second, and when something was queued. */
  wake(): void;
  /** Claims nothing more, waits for the attempts that run, and records them. May be called twice. */
  stop(): Promise<void>;
}

/** A lease ends this long after the timeout of its attempt, so that the result can be recorded in time. */
const LEASE_MARGIN_MS = 5_000;
/**
 * The same between nodes: for a claim and a signature of two seconds each, clocks that differ by four, and some time to
 * record.
 */
const SHARED_LEASE_MARGIN_MS = 10_000;
/**
 * What was claimed is attempted if the claim took no longer. Else another node's clock could end the lease too early.
 */
const LONGEST_CLAIM_MS = 2_000;
/** The clocks of two nodes differ by no more: each may differ from the database's by half of it. */
const CLOCK_SLACK_MS = 4_000;
/** A turn waits for more results until it has so many, for so many rounds of the event loop at most. */
const GATHERED_RESULTS = 200;
const GATHER_ROUNDS = 20;
/** It waits no longer once no attempt ended in so many rounds. */
const QUIET_ROUNDS = 3;

/**
 * Claims deliveries that are due, attempts them, and records the results. It works in turns: one transaction records
 * the results since the last turn and claims the next deliveries, so that one sync of the disk serves many attempts.
 * The end of an attempt makes a turn too.
 *
 * It keeps a result that it cannot record, and records it with the next turn. If the process ends before that, the
 * delivery is attempted again after its lease; the lost attempt does not count.
 */
export function createSender(dependencies: Dependencies, settings: SenderSettings): Sender {
  const { deliveries, attempt, membership, now, sleep, log } = dependencies;
  const leaseMarginMs = settings.isShared ? SHARED_LEASE_MARGIN_MS : LEASE_MARGIN_MS;
  const limiter = createConcurrencyLimiter(settings.concurrency, settings.perShop, () => performance.now());
  const logFailure = createFailureLog(log, settings.waitsMs);
  /** The deliveries that are being attempted, by id. */
  const claims = new Map<string, Claim>();
  let results: AttemptResult[] = [];
  /** Whether the paces of before the start are known. */
  let isRestored = false;
  /** Whether somebody asked for a turn since the last one. */
  let isAsked = false;
  /** The wall clock at the last turn. */
  let lastTurnAt = Number.POSITIVE_INFINITY;
  const loop = createTurnLoop({
    turn,
    sleep,
    onFailure: (thrown) => {
      const fields = { ...failureFields(thrown), kept: results.length };
      log.error("cannot record or claim deliveries; nothing is lost, the next turn tries again", fields);
    },
  });

  /**
   * Waits while attempts go on ending, so that more of them share one transaction: it writes each page of the database
   * once. This takes time only under load, because a round in which nothing happens takes microseconds. A turn that
   * somebody asked for does not wait.
   */
  async function gather(): Promise<void> {
    let quietRounds = 0;
    for (let round = 0; round < GATHER_ROUNDS && quietRounds < QUIET_ROUNDS; round += 1) {
      const count = results.length;
      if (isAsked || loop.stopping || count === 0 || count >= Math.min(GATHERED_RESULTS, claims.size)) break;
      await nextTurn();
      quietRounds = results.length === count ? quietRounds + 1 : 0;
    }
  }

  async function turn(): Promise<void> {
    await gather();
    isAsked = false;
    const ended = results;
    results = [];
    try {
      const { recorded, claimed, claimMs } = await recordAndClaim(ended);
      for (const result of recorded) logFailure(result);
      const isLate = settings.isShared && claimMs > LONGEST_CLAIM_MS;
      // An attempt that runs goes on in any case, and needs its new lease to be recorded.
      const launched = isLate ? claimed.filter(({ id }) => claims.has(id)) : claimed;
      for (const claim of launched) launch(claim);
      const count = claimed.length - launched.length;
      if (count > 0) log.warn("deliveries are attempted later, because the database took long", { count, claimMs });
      if (limiter.heldBack && claimed.length > 0) loop.wake();
    } catch (thrown) {
      results = [...ended, ...results];
      throw thrown;
    }
  }

  async function recordAndClaim(ended: readonly AttemptResult[]) {
    const at = now();
    await prepare(at);
    const due = loop.stopping || limiter.free === 0 ? [] : await deliveries.dueShops(at);
    const shares = limiter.share(due.filter(({ shopId }) => membership.mayBegin(shopId)));
    if (ended.length === 0 && shares.size === 0) return { recorded: [], claimed: [], claimMs: 0 };
    const began = performance.now();
    const leaseEndsAt = now() + settings.timeoutMs + leaseMarginMs;
    // What another process attempts counts too: for a while, two may believe that a shop is theirs.
    const shared = due.filter(({ shopId }) => shares.has(shopId));
    const limits = new Map(shared.map((shop) => [shop.shopId, limiter.limitOf(shop)]));
    const answer = await deliveries.turn(ended, shares, at, leaseEndsAt, settings.waitsMs, limits);
    return { ...answer, claimMs: Math.round(performance.now() - began) };
  }

  /** Before the first turn, and whenever the clock was set back. */
  async function prepare(at: number): Promise<void> {
    if (!isRestored) {
      for (const { shopId, url, pace, timedOutAt } of await deliveries.paces()) {
        // A timeout in the future predates a clock change. It counts as one of now.
        const ageMs = timedOutAt === null ? Number.POSITIVE_INFINITY : Math.max(0, at - timedOutAt);
        limiter.restore(shopId, url, pace, ageMs);
      }
      isRestored = true;
    }
    if (at < lastTurnAt) {
      const longestMs = Math.max(...settings.waitsMs, settings.timeoutMs + leaseMarginMs) + CLOCK_SLACK_MS;
      const count = await deliveries.bringForward(at + longestMs, at);
      if (count > 0) log.warn("deliveries that were planned by a clock that was ahead are due now", { count });
    }
    lastTurnAt = at;
  }

  function launch(claim: Claim): void {
    const running = claims.get(claim.id);
    if (running !== undefined) {
      // The clock was set forward, so the lease ended early. The attempt that runs goes on, under the new lease.
      const { lease, attempts, round } = claim;
      Object.assign(running, { lease, attempts, round });
      return;
    }
    claims.set(claim.id, claim);
    loop.track(makeAttempt(claim));
  }

  function makeAttempt(claim: Claim): Promise<void> {
    const isWebhook = claim.kind === "webhook";
    const giveBack = limiter.take(claim.shopId, claim.kind, isWebhook ? claim.url : null);
    const startedAt = now();
    const began = performance.now();
    return attempt(claim).then(
      ({ timedOut, ...outcome }) => {
        const durationMs = Math.round(performance.now() - began);
        const pace = giveBack({ timedOut, error: outcome.error });
        claims.delete(claim.id);
        const timedOutAt = timedOut ? startedAt + durationMs : null;
        results.push({
          claim,
          outcome,
          startedAt,
          duration: durationMs,
          ...(isWebhook && pace !== undefined && { pace: { pace, timedOutAt } }),
        });
        log.debug("attempted a delivery", { delivery: claim.id, statusCode: outcome.statusCode, error: outcome.error });
      },
      (thrown: unknown) => {
        // The fault is ours, not the endpoint's. It is not recorded: after its lease the delivery is attempted again.
        giveBack();
        claims.delete(claim.id);
        log.error("cannot attempt a delivery", { delivery: claim.id, ...failureFields(thrown) });
      },
    );
  }

  return {
    get failing() {
      return loop.failing;
    },
    wake() {
      isAsked = true;
      loop.wake();
    },
    stop: loop.stop,
  };
}

import type { Outcome } from "../domain/delivery.ts";
import { messageOf } from "../domain/error.ts";
import type { Log } from "../log.ts";
import type { AttemptResult, Claim, DeliveryStore } from "../store/deliveries.ts";
import { ConcurrencyLimiter } from "./concurrency-limiter.ts";

export interface SenderSettings {
  /** Attempts at once, in all and for one shop. */
  concurrency: number;
  perShop: number;
  /** Milliseconds that an attempt takes at most. */
  timeout: number;
  /** Milliseconds after each attempt but the last, see `afterAttempt`. */
  waits: readonly number[];
}

/** How much longer than an attempt a lease holds: time to record it. Milliseconds. */
const LEASE_MARGIN = 5_000;
/** Milliseconds; a little less than the second after which it is woken anyway. */
const PAUSE_AFTER_FAILURE = 900;

/**
 * Claims what is due, attempts it, records what came of it. It works in turns: what ended since the last turn is recorded and what comes next is
 * claimed in one transaction, so that a sync of the disk serves many attempts. It turns when woken: once a second, when something was
 * queued, and when an attempt ended.
 *
 * A result that could not be recorded is kept and recorded with the next turn. If the process ends before, the delivery's lease runs out
 * and it is attempted again, not counted.
 */
export class Sender {
  /** Whether the last turn failed. */
  failing = false;
  private readonly store: DeliveryStore;
  private readonly attempt: (claim: Claim) => Promise<Outcome & { timedOut: boolean }>;
  private readonly settings: SenderSettings;
  private readonly now: () => number;
  private readonly log: Log;
  private readonly places: ConcurrencyLimiter;
  private finished: AttemptResult[] = [];
  private readonly underWay = new Set<Promise<void>>();
  /** What is being attempted, by delivery id. */
  private readonly claims = new Map<string, Claim>();
  /** After a failed turn the next is not made before this, on the clock of performance.now(): a locked database blocks whoever asks. */
  private pauseUntil = 0;
  private turning: Promise<void> | undefined;
  private wanted = false;
  private stopping = false;

  constructor(
    store: DeliveryStore,
    attempt: (claim: Claim) => Promise<Outcome & { timedOut: boolean }>,
    settings: SenderSettings,
    now: () => number,
    log: Log,
  ) {
    this.store = store;
    this.attempt = attempt;
    this.settings = settings;
    this.now = now;
    this.log = log;
    this.places = new ConcurrencyLimiter(settings.concurrency, settings.perShop);
  }

  /** Has a turn made soon; many calls at once come to one. */
  wake(): void {
    if (performance.now() < this.pauseUntil) return;
    this.wanted = true;
    this.turning ??= this.run();
  }

  /** Takes up nothing more, waits for the attempts that run, records them. May be called twice. */
  async stop(): Promise<void> {
    this.stopping = true;
    await Promise.all(this.underWay);
    await this.turning;
    if (this.finished.length > 0) await this.turn();
  }

  private async run(): Promise<void> {
    while (this.wanted) {
      // What else ends in this turn of the event loop is in the same transaction.
      await new Promise((resolve) => setImmediate(resolve));
      this.wanted = false;
      await this.turn();
    }
    this.turning = undefined;
  }

  private async turn(): Promise<void> {
    const finished = this.finished;
    this.finished = [];
    try {
      const now = this.now();
      const due = this.stopping || this.places.free === 0 ? [] : await this.store.dueShops(now);
      const shares = this.places.share(due);
      if (finished.length === 0 && shares.size === 0) {
        this.failing = false;
        return;
      }
      const leaseUntil = now + this.settings.timeout + LEASE_MARGIN;
      const claims = await this.store.turn(finished, shares, now, leaseUntil, this.settings.waits);
      this.failing = false;
      for (const claim of claims) this.launch(claim);
    } catch (thrown) {
      this.finished = [...finished, ...this.finished];
      this.failing = true;
      this.pauseUntil = performance.now() + PAUSE_AFTER_FAILURE;
      this.log.error("cannot record or claim deliveries; nothing is lost, the next turn tries again", { error: messageOf(thrown), kept: this.finished.length });
    }
  }

  private launch(claim: Claim): void {
    const same = this.claims.get(claim.id);
    if (same !== undefined) {
      // The clock was set forward and ended its lease before its time: the attempt that runs goes on, under the new one.
      same.lease = claim.lease;
      return;
    }
    this.claims.set(claim.id, claim);
    const giveBack = this.places.take(claim.shopId);
    const startedAt = this.now();
    const began = performance.now();
    const running = this.attempt(claim)
      .then(
        ({ timedOut, ...outcome }) => {
          const duration = Math.round(performance.now() - began);
          giveBack(duration, timedOut);
          this.finished.push({ claim, outcome, startedAt, duration });
          this.log.debug("attempted a delivery", { delivery: claim.id, statusCode: outcome.statusCode, error: outcome.error });
        },
        (thrown: unknown) => {
          // Our fault and not the endpoint's: not recorded, so made again and not counted once the lease has run out.
          giveBack(performance.now() - began, false);
          this.log.error("cannot attempt a delivery", { delivery: claim.id, error: messageOf(thrown) });
        },
      )
      .finally(() => {
        this.underWay.delete(running);
        this.claims.delete(claim.id);
        this.wake();
      });
    this.underWay.add(running);
  }
}

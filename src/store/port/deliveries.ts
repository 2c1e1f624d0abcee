import {
  DELIVERY_KINDS,
  type DeliveryKind,
  type DeliveryStatus,
  type Outcome,
  type Pace,
} from "../../domain/deliveries/delivery.ts";
import { holdsReward } from "../../domain/deliveries/event-queue.ts";
import type { NewestSecret } from "../../domain/deliveries/signing-secret.ts";
import type { Event } from "../../domain/events/event.ts";
import type { ShopRef } from "../../domain/shop.ts";

/** An entry of the delivery log. Times in epoch milliseconds. */
export interface Delivery {
  id: string;
  kind: DeliveryKind;
  topic: string;
  test: boolean;
  status: DeliveryStatus;
  /** In all, over all rounds. */
  attempts: number;
  nextAttemptAt: number | null;
  lastStatusCode: number | null;
  error: string | null;
  createdAt: number;
}

export interface Attempt extends Pick<Outcome, "statusCode" | "error"> {
  number: number;
  startedAt: number;
  /** Milliseconds. */
  duration: number;
  /** Where it went; null if there was nowhere to go, and for an attempt of a version that did not keep it. */
  url: string | null;
  /** The beginning of the answer's body; null if none came, if it was redacted, and as for `url`. */
  answer: string | null;
}

export interface DeliveryDetails extends Delivery {
  body: string;
  secretVersion: number;
  history: Attempt[];
}

/** A delivery that this process, and no other, may attempt until its lease ends. */
export interface Claim {
  id: string;
  /** Its place in the order of queueing. */
  number: number;
  kind: DeliveryKind;
  shopId: number;
  /** The shop's. */
  domain: string;
  body: string;
  topic: string;
  test: boolean;
  /** The version that was the newest when it was queued. */
  secretVersion: number;
  /** The shop's newest signing secret now. */
  newestSecret: NewestSecret;
  /** The shop's URL now; null if it has none any more. */
  url: string | null;
  /** Attempts so far, over all rounds. */
  attempts: number;
  /** Attempts in this round so far. */
  round: number;
  lease: string;
}

/** A shop with something to attempt, and the kind of what is due longest. */
export interface DueShop {
  shopId: number;
  kind: DeliveryKind;
}

/** What is known of an endpoint from its attempts so far. */
export interface EndpointPace {
  shopId: number;
  url: string;
  pace: Pace;
  /** The last timeout, in epoch milliseconds; null if there was none. */
  timedOutAt: number | null;
}

/** An attempt that ended. */
export interface AttemptResult {
  claim: Claim;
  outcome: Outcome;
  startedAt: number;
  /** Milliseconds. */
  duration: number;
  /** What is known of a webhook's endpoint now. It is kept while the endpoint has the claim's URL. */
  pace?: Pick<EndpointPace, "pace" | "timedOutAt">;
}

/** What one transaction of the sender did. */
interface Turn {
  recorded: AttemptResult[];
  claimed: Claim[];
}

interface DeliveryFilter {
  limit: number;
  status?: DeliveryStatus;
  kind?: DeliveryKind;
}

export interface DeliveryStore {
  /** The shops with something to attempt, by ascending id. */
  dueShops(now: number): Promise<DueShop[]>;
  /** The paces of all endpoints that were tried. */
  paces(): Promise<EndpointPace[]>;
  /**
   * Makes due what a clock that was ahead planned: what is planned or leased beyond `latest`, and what was never
   * attempted and is planned after now. It works in steps. Stopped between them, it goes on with the next call.
   * @param latest after `now`: the longest time that a retry or a lease may be planned for
   * @returns how many
   */
  bringForward(latest: number, now: number): Promise<number>;
  /**
   * Records the attempts that ended and claims the next deliveries, in one transaction. An attempt whose lease another
   * process took over meanwhile is not recorded.
   * @param shares how many deliveries to claim for each shop, at most. All that are claimed for a shop have the kind of
   *   the one that is due longest.
   * @param waits see `afterAttempt`
   * @param limits how many deliveries of a shop may be under a lease at once, in all processes together. A shop that is
   *   missing has no such limit. An engine that one machine uses leaves this to the shares.
   */
  turn(
    ended: readonly AttemptResult[],
    shares: ReadonlyMap<number, number>,
    now: number,
    leaseUntil: number,
    waits: readonly number[],
    limits?: ReadonlyMap<number, number>,
  ): Promise<Turn>;
  /** Newest first. */
  list(shopId: number, filter: DeliveryFilter): Promise<Delivery[]>;
  /** @throws SdsError `not_found` */
  show(shopId: number, id: string): Promise<DeliveryDetails>;
  /** Retries by hand, now. @throws SdsError `not_found`, or `conflict` while an attempt is under way */
  retry(shopId: number, id: string, now: number): Promise<Delivery>;
  /** How many wait for their first attempt, and for another one. */
  countWaiting(shopId: number): Promise<{ pending: number; retrying: number }>;
  /** How many are dead, of those queued since a time, of one kind or both. */
  countDead(shopId: number, since: number, kind?: DeliveryKind): Promise<number>;
  /**
   * Retries them, in steps. Those that an interruption left are still dead, so the next call retries them.
   * @returns how many
   */
  retryDead(shopId: number, since: number, now: number, kind?: DeliveryKind): Promise<number>;
  /** Queues one event as a test, even if the shop did not choose its topic. @returns the delivery's id */
  queueTest(shop: ShopRef, event: Event, now: number): Promise<string>;
  /** Forgets what was delivered before a time, in steps. The next call finishes what is left. Dead deliveries stay. */
  prune(before: number): Promise<void>;
}

/**
 * The body that was sent, where a redaction may have changed the stored one meanwhile; else null. The answer to a body
 * that was changed is not kept: it can repeat what was removed.
 */
export function changeableBody({ claim }: AttemptResult): string | null {
  return holdsReward(claim) ? claim.body : null;
}

/** The kinds of deliveries that are asked for. @param kind undefined for all */
export function kindsOf(kind: DeliveryKind | undefined): readonly DeliveryKind[] {
  return kind === undefined ? DELIVERY_KINDS : [kind];
}

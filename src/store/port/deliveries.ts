import {
  DELIVERY_KINDS,
  type DeliveryKind,
  type DeliveryStatus,
  type NewestSecret,
  type Outcome,
  type Pace,
} from "../../domain/deliveries/delivery.ts";
import type { Event } from "../../domain/events/event.ts";
import type { ShopRef } from "../../domain/shop.ts";

/** An entry of the delivery log. Times in epoch milliseconds. */
export interface Delivery {
  id: string;
  kind: DeliveryKind;
  topic: string;
  test: boolean;
  status: DeliveryStatus;
  /** Number of attempts in all rounds. */
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
  /** The URL of the attempt. null if the shop had no endpoint, or if an older version made the attempt. */
  url: string | null;
  /** The beginning of the answer's body. null without an answer, after a redaction, or if `url` is null. */
  answer: string | null;
}

export interface DeliveryDetails extends Delivery {
  body: string;
  secretVersion: number;
  history: Attempt[];
}

/** A delivery that only this process may attempt until the lease ends. */
export interface Claim {
  id: string;
  /** The delivery's number, in the order of queueing. */
  number: number;
  kind: DeliveryKind;
  shopId: number;
  domain: string;
  body: string;
  topic: string;
  test: boolean;
  /** Version of the newest signing secret when the delivery was queued. */
  secretVersion: number;
  /** The shop's newest signing secret now. */
  newestSecret: NewestSecret;
  /** The shop's current URL; null without an endpoint. */
  url: string | null;
  /** Attempts so far, in all rounds. */
  attempts: number;
  /** Attempts so far, in this round. */
  round: number;
  lease: string;
}

/** The deliveries of one kind of a shop. A slow queue does not delay the shop's other queue. */
export interface SendQueue {
  shopId: number;
  kind: DeliveryKind;
}

/** How many due deliveries of a queue to claim. */
export interface QueueClaim extends SendQueue {
  count: number;
  /**
   * The most leased deliveries of the queue in all processes together: for a while two nodes may believe that they own
   * a shop. An engine for one machine ignores this limit.
   */
  limit?: number;
}

/** The pace of an endpoint. The sender learns it from the attempts. */
export interface EndpointPace {
  shopId: number;
  url: string;
  pace: Pace;
  /** The last timeout, in epoch milliseconds; null without a timeout. */
  timedOutAt: number | null;
}

/** An attempt that ended. */
export interface AttemptResult {
  claim: Claim;
  outcome: Outcome;
  startedAt: number;
  /** Milliseconds. */
  duration: number;
  /** The new pace of a webhook's endpoint. Stored only if the endpoint still has the claim's URL. */
  pace?: Pick<EndpointPace, "pace" | "timedOutAt">;
}

/** What one transaction of the sender recorded and claimed. */
interface RecordedAndClaimed {
  recorded: AttemptResult[];
  claimed: Claim[];
}

interface DeliveryFilter {
  limit: number;
  status?: DeliveryStatus;
  kind?: DeliveryKind;
}

/** Operations for the sender. */
export interface DeliveryQueue {
  /** Returns the queues with due deliveries, by ascending shop id and kind. */
  dueQueues(now: number): Promise<SendQueue[]>;
  /** Returns the paces of all endpoints that had an attempt. */
  listPaces(): Promise<EndpointPace[]>;
  /**
   * Makes deliveries due now that a clock planned while it was ahead: attempts after `latest`, leases that end after
   * `latest`, and first attempts after `now`. Works in steps: after an interruption the next call continues.
   * @param latest a correct clock cannot have planned a later time
   * @returns the number of deliveries
   */
  bringForward(latest: number, now: number): Promise<number>;
  /**
   * Records ended attempts and claims the next deliveries, in one transaction. Does not record an attempt whose lease
   * another process took over.
   * @param waits see `afterAttempt`
   */
  recordAndClaim(
    ended: readonly AttemptResult[],
    claims: readonly QueueClaim[],
    now: number,
    leaseUntil: number,
    waits: readonly number[],
  ): Promise<RecordedAndClaimed>;
}

/** Operations for operators and merchants. */
export interface DeliveryLog {
  /** Lists deliveries, newest first. */
  list(shopId: number, filter: DeliveryFilter): Promise<Delivery[]>;
  /** @throws SdsError `not_found` */
  show(shopId: number, id: string): Promise<DeliveryDetails>;
  /** Retries a delivery by hand, now. @throws SdsError `not_found`, or `conflict` during an attempt */
  retry(shopId: number, id: string, now: number): Promise<Delivery>;
  /** Counts deliveries before their first attempt (`pending`), and before a further attempt (`retrying`). */
  countWaiting(shopId: number): Promise<{ pending: number; retrying: number }>;
  /** Counts dead deliveries queued since a time. @param kind default: both kinds */
  countDead(shopId: number, since: number, kind?: DeliveryKind): Promise<number>;
  /** Retries dead deliveries in steps. After an interruption the next call continues. @returns how many */
  retryDead(shopId: number, since: number, now: number, kind?: DeliveryKind): Promise<number>;
  /** Queues a test event, even for a topic that the shop did not choose. @returns the delivery's id */
  queueTest(shop: ShopRef, event: Event, now: number): Promise<string>;
  /** Removes deliveries that succeeded before a time, in steps. After an interruption the next call continues. */
  prune(before: number): Promise<void>;
}

export interface DeliveryStore extends DeliveryQueue, DeliveryLog {}

/** Returns the kinds to search. @param kind undefined for all */
export function kindsOf(kind: DeliveryKind | undefined): readonly DeliveryKind[] {
  return kind === undefined ? DELIVERY_KINDS : [kind];
}

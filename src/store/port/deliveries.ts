import {
  type CountedOutcome,
  DELIVERY_KINDS,
  type DeliveryKind,
  type DeliveryStatus,
  type NewestSecret,
  type Outcome,
  type Pace,
} from "../../domain/deliveries/delivery.ts";
import type { DeliverySubject, SubjectSearch } from "../../domain/deliveries/subject.ts";
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
  /** How long the last attempt took, in milliseconds; null without an attempt. */
  lastDuration: number | null;
  error: string | null;
  createdAt: number;
  subject: DeliverySubject;
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
  /** The shop's newest signing secret at the time of the claim. */
  newestSecret: NewestSecret;
  /** The shop's current URL; null without an endpoint. */
  url: string | null;
  /** Attempts so far, in all rounds. */
  attempts: number;
  /** Attempts so far, in this round. */
  round: number;
  lease: string;
}

/** A shop's deliveries of one kind. A slow queue does not delay the shop's other queue. */
export interface SendQueue {
  shopId: number;
  kind: DeliveryKind;
}

/** How many due deliveries of a queue to claim. */
export interface QueueClaim extends SendQueue {
  count: number;
  /**
   * Maximum number of leased deliveries of the queue, in all processes together. The limit holds even while two nodes
   * work for the shop. An engine for one machine ignores the limit.
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

/** Which deliveries to list. Times in epoch milliseconds. */
export interface DeliveryFilter {
  limit: number;
  status?: DeliveryStatus;
  kind?: DeliveryKind;
  topic?: string;
  /** Queued at this time or later. */
  from?: number;
  /** Queued before this time. */
  to?: number;
  /** Deliveries about one of these subjects. An empty list matches no delivery (`actions/delivery-search.ts`). */
  subjects?: readonly SubjectSearch[];
  /** Only deliveries that are older than the delivery with this id. An unknown id gives the newest deliveries. */
  before?: string;
  /** Only deliveries that are newer than the delivery with this id. Lists the oldest of these, up to `limit`. */
  after?: string;
}

/** A page of the log, newest first. */
export interface DeliveryPage {
  deliveries: Delivery[];
  /** `before` of the next older page; null if no older delivery matches. */
  older: string | null;
  /** `after` of the next newer page; null on the newest page. */
  newer: string | null;
}

/** Number of attempts on one day with the same outcome. */
export interface DayCount {
  kind: DeliveryKind;
  /** The start of the day in UTC, epoch milliseconds. */
  day: number;
  outcome: CountedOutcome;
  attempts: number;
}

export interface AttemptFigures {
  attempts: number;
  succeeded: number;
  /** Milliseconds; null without an attempt. */
  medianMs: number | null;
  percentile95Ms: number | null;
  /** Whether the figures leave out some attempts, because there were too many deliveries. */
  isPart: boolean;
}

/** Figures of the log. They are cheap enough to be read at each page view. */
export interface DeliveryCounts {
  /** Returns counts for each day, from the day of `since` on. Days without attempts have no count. */
  countsByDay(shopId: number, since: number): Promise<DayCount[]>;
  /** Returns when the last successful and the last failed attempt began; null if none began in the last year. */
  lastOutcomes(shopId: number, kind: DeliveryKind): Promise<{ succeededAt: number | null; failedAt: number | null }>;
  /** Returns figures of the attempts that began at `since` or later. Reads only the newest 1,000 deliveries. */
  recentAttempts(shopId: number, kind: DeliveryKind, since: number): Promise<AttemptFigures>;
  /** Counts deliveries of both kinds that succeeded at `since` or later, at most `limit`. */
  countDelivered(shopId: number, since: number, limit: number): Promise<number>;
}

/** Operations for the sender. */
export interface DeliveryQueue {
  /** Returns the queues with due deliveries, by ascending shop id and kind. */
  dueQueues(now: number): Promise<SendQueue[]>;
  /** Returns the paces of all endpoints that had an attempt. */
  listPaces(): Promise<EndpointPace[]>;
  /**
   * Corrects deliveries that were planned while the clock was ahead: they become due now. A delivery that was not yet
   * claimed is corrected if it is planned after `now`. Any other delivery is corrected if its next attempt, or the end
   * of its lease, is after `latest`. Works in steps. An interrupted call can be repeated.
   * @param latest the latest time that can be planned with a correct clock
   * @returns the number of corrected deliveries
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
export interface DeliveryLog extends DeliveryCounts {
  /** Lists deliveries, newest first. Reads as many pages as it needs. */
  list(shopId: number, filter: DeliveryFilter): Promise<Delivery[]>;
  /** Returns a page of the log. Scans a limited number of deliveries, so an empty page can have an older page. */
  page(shopId: number, filter: DeliveryFilter): Promise<DeliveryPage>;
  /** Returns the deliveries with these ids, newest first. Leaves out unknown ids. */
  pick(shopId: number, ids: readonly string[]): Promise<Delivery[]>;
  /** Returns the id of the newest test event; undefined without one. */
  newestTest(shopId: number): Promise<string | undefined>;
  /** @throws SdsError `not_found` */
  show(shopId: number, id: string): Promise<DeliveryDetails>;
  /** Retries a delivery by hand, now. @throws SdsError `not_found`, or `conflict` during an attempt */
  retry(shopId: number, id: string, now: number): Promise<Delivery>;
  /**
   * Counts deliveries that wait for their first attempt (`pending`) or for a further attempt (`retrying`).
   * @param limit maximum of both counts together
   */
  countWaiting(shopId: number, limit?: number): Promise<{ pending: number; retrying: number }>;
  /** Counts dead deliveries queued since a time. @param kind default: both kinds */
  countDead(shopId: number, since: number, kind?: DeliveryKind): Promise<number>;
  /** Retries dead deliveries in steps. After an interruption the next call continues. @returns how many */
  retryDead(shopId: number, since: number, now: number, kind?: DeliveryKind): Promise<number>;
  /** Queues a test event, even for a topic that the shop did not choose. @returns the delivery's id */
  queueTest(shop: ShopRef, event: Event, now: number): Promise<string>;
  /**
   * Removes old rows in steps. After an interruption the next call continues.
   * @param before removes deliveries that succeeded earlier, and unsent events of earlier days
   * @param countsBefore removes the counts of earlier days
   */
  prune(before: number, countsBefore: number): Promise<void>;
}

export interface DeliveryStore extends DeliveryQueue, DeliveryLog {}

/** Returns the kinds to search. @param kind undefined for all */
export function kindsOf(kind: DeliveryKind | undefined): readonly DeliveryKind[] {
  return kind === undefined ? DELIVERY_KINDS : [kind];
}

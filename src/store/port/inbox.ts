/** A verified platform webhook, before it is stored in the inbox. Times in epoch milliseconds. */
export interface Receipt {
  shopId: number;
  /** The platform's id, which detects repetitions; null if missing. */
  webhookId: string | null;
  topic: string;
  /** Webhooks about one subject are processed one after another. */
  subject: string;
  /** Whether processing queries the platform. */
  needsPlatform: boolean;
  body: string;
  triggeredAt: number;
  /** How long it waits for others about its subject; default 0. */
  waitMs?: number;
  /** Whether it goes before all items of its queue that are not urgent. */
  isUrgent?: boolean;
}

/** When urgent items are due: before all others. */
const URGENT_AT = 0;

/** When a webhook that is received now is due. */
export function dueAtOf({ waitMs = 0, isUrgent = false }: Receipt, now: number): number {
  return isUrgent ? URGENT_AT : now + waitMs;
}

/** The waiting items of one shop that need the platform, or those that do not. */
export interface InboxQueue {
  shopId: number;
  needsPlatform: boolean;
}

export interface InboxItem {
  number: number;
  shopId: number;
  topic: string;
  subject: string;
  body: string;
  triggeredAt: number;
  /** Failed attempts so far. */
  attempts: number;
}

/** A due item, with its subject. */
export interface DueItem {
  number: number;
  subject: string;
}

export const INBOX_STATUSES = ["waiting", "failed"] as const;
export type InboxStatus = (typeof INBOX_STATUSES)[number];

/** An item in a list. */
export interface InboxEntry {
  number: number;
  topic: string;
  subject: string;
  status: InboxStatus;
  attempts: number;
  error: string | null;
  receivedAt: number;
  nextAttemptAt: number | null;
}

/** What comes in, and what is due. */
export interface InboxQueues {
  /**
   * Stores new webhooks. When it resolves, they are on the disk.
   * @returns for each whether it is new
   */
  receive(receipts: readonly Receipt[], now: number): Promise<boolean[]>;
  /** Queues with due items, by shop. */
  dueQueues(now: number): Promise<InboxQueue[]>;
  /** The due items of a queue: urgent ones first, then the longest due ones. */
  due(queue: InboxQueue, now: number, limit: number): Promise<DueItem[]>;
  /**
   * Makes items due that were planned while the clock was ahead. Works in steps.
   * @param latest the latest times that this clock can have planned: for the first attempt, and for a further one
   * @returns the number of items
   */
  bringForward(latest: { first: number; further: number }, now: number): Promise<number>;
  /** Items of a queue about one subject, due or not, by number. Of more than `limit`, the first due ones. */
  waitingAbout(queue: InboxQueue, subject: string, limit: number): Promise<InboxItem[]>;
}

export interface InboxItems {
  /** Subjects of a shop's waiting items. */
  waitingSubjects(shopId: number): Promise<Set<string>>;
  /** The items that still exist among these numbers, by number. */
  read(shopId: number, numbers: readonly number[]): Promise<InboxItem[]>;
  /** Counts a failed attempt. @param nextAttemptAt null: only a retry by hand attempts it again */
  postpone(shopId: number, numbers: readonly number[], error: string, nextAttemptAt: number | null): Promise<void>;
  /** Newest first. */
  list(shopId: number, filter: { limit: number; status?: InboxStatus }): Promise<InboxEntry[]>;
  count(shopId: number): Promise<Record<InboxStatus, number>>;
  /** When the shop's last webhook was received, in epoch milliseconds. null after a week without any. */
  lastReceivedAt(shopId: number): Promise<number | null>;
  /** Retries one by hand, now. @throws SdsError `not_found` */
  retry(shopId: number, number: number, now: number): Promise<void>;
  /** Retries all that failed. @returns the number of items */
  retryFailed(shopId: number, now: number): Promise<number>;
  /** Forgets ids of webhooks from before a time, in steps. After an interruption the next call continues. */
  forgetReceipts(before: number): Promise<void>;
}

export interface InboxStore extends InboxQueues, InboxItems {}

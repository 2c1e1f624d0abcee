/** A verified platform webhook, before it is stored in the inbox. Times in epoch milliseconds. */
export interface Receipt {
  shopId: number;
  /** The platform's id of the webhook, to detect repetitions; null if missing. */
  webhookId: string | null;
  topic: string;
  /** Webhooks about one subject are processed one after another. */
  subject: string;
  /** Whether processing the webhook queries the platform. */
  needsPlatform: boolean;
  body: string;
  triggeredAt: number;
  /** How long the webhook waits for other webhooks about its subject. Default: 0. */
  waitMs?: number;
  /** Whether the webhook is processed before all items of its queue that are not urgent. */
  isUrgent?: boolean;
  /** Why a load or a reconciliation added the webhook; undefined for all other webhooks. */
  error?: string;
}

/** Due time of urgent items. It puts them before all other items. */
const URGENT_AT = 0;

/** Returns when a webhook that arrives now is due. */
export function dueAtOf({ waitMs = 0, isUrgent = false }: Receipt, now: number): number {
  return isUrgent ? URGENT_AT : now + waitMs;
}

/** A queue of waiting items. Each shop has two queues: items that need the platform, and items that do not. */
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
  /** Why the last attempt failed, or why a load or a reconciliation added the item. */
  error: string | null;
}

/** The new content of an item that replaces several items. */
export type MergedItem = Pick<InboxItem, "number" | "topic" | "body" | "triggeredAt">;

/** A due item of a queue. */
export interface DueItem {
  number: number;
  subject: string;
}

export const INBOX_STATUSES = ["waiting", "failed"] as const;
export type InboxStatus = (typeof INBOX_STATUSES)[number];

/** An item in the list for operators. */
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

/** Operations that store webhooks and find due items. */
export interface InboxQueues {
  /** Stores new webhooks on the disk. @returns for each receipt whether it was stored */
  receive(receipts: readonly Receipt[], now: number): Promise<boolean[]>;
  /** Returns the queues with due items, sorted by shop. */
  dueQueues(now: number): Promise<InboxQueue[]>;
  /** Returns due items of a queue: first urgent items, then the items that have been due longest. */
  due(queue: InboxQueue, now: number, limit: number): Promise<DueItem[]>;
  /**
   * Corrects items that were planned while the clock was ahead: they become due now. Works in steps.
   * @param latest the latest times that can be planned with a correct clock: `first` for a first attempt, `further` for
   *   a further attempt
   * @returns the number of corrected items
   */
  bringForward(latest: { first: number; further: number }, now: number): Promise<number>;
  /**
   * Returns a queue's waiting items about one subject, due or not, sorted by number. If there are more than `limit`,
   * returns the items that are due first.
   */
  waitingAbout(queue: InboxQueue, subject: string, limit: number): Promise<InboxItem[]>;
}

export interface InboxItems {
  /** Returns the subjects of a shop's waiting items. */
  waitingSubjects(shopId: number): Promise<Set<string>>;
  /** Returns the existing items with these numbers, sorted by number. */
  read(shopId: number, numbers: readonly number[]): Promise<InboxItem[]>;
  /** Counts a failed attempt. @param nextAttemptAt null if the items wait for a retry by hand */
  postpone(shopId: number, numbers: readonly number[], error: string, nextAttemptAt: number | null): Promise<void>;
  /** Lists items, newest first. */
  list(shopId: number, filter: { limit: number; status?: InboxStatus }): Promise<InboxEntry[]>;
  count(shopId: number): Promise<Record<InboxStatus, number>>;
  /** Returns when the shop's last webhook arrived, in epoch milliseconds. null if none arrived for a week. */
  lastReceivedAt(shopId: number): Promise<number | null>;
  /** Retries an item by hand, now. @throws SdsError `not_found` */
  retry(shopId: number, number: number, now: number): Promise<void>;
  /** Replaces the content of an item. Removes the items `others`, because the new content replaces them too. */
  merge(shopId: number, item: MergedItem, others: readonly number[]): Promise<void>;
  /** Makes the failed items about a subject wait again. @returns whether the inbox has items about the subject */
  retryAbout(shopId: number, subject: string, now: number): Promise<boolean>;
  /** Notes why the waiting items about a subject are in the inbox. Counts no attempt. */
  noteError(shopId: number, subject: string, error: string): Promise<void>;
  /** Retries all failed items. @returns how many */
  retryFailed(shopId: number, now: number): Promise<number>;
  /** Forgets the ids of webhooks received before a time, in steps. After an interruption the next call continues. */
  forgetReceipts(before: number): Promise<void>;
}

export interface InboxStore extends InboxQueues, InboxItems {}

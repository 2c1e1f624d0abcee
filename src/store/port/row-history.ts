import type { UnsentEvent } from "../../domain/deliveries/event-queue.ts";
import type { SubjectSearch } from "../../domain/deliveries/subject.ts";
import type { Resource } from "../../domain/resources.ts";

/** What is stored about earlier changes of rows, in addition to deliveries. Times in epoch milliseconds. */
export interface RowHistoryStore {
  /** Returns unsent events about these subjects since `since`, oldest first. An unsent event queued no delivery. */
  unsentEvents(shopId: number, subjects: readonly SubjectSearch[], since: number): Promise<TimedUnsentEvent[]>;
  /**
   * Returns when a row changed last. The time can be up to SPAN_MS too early.
   * @returns undefined if the row does not exist, or did not change since `since`
   */
  lastChange(shopId: number, resource: Resource, id: string, since: number): Promise<number | undefined>;
  /** Returns when personal data of a customer was last removed; undefined if never. @param id the internal id */
  redactedAt(shopId: number, id: string): Promise<number | undefined>;
}

export interface TimedUnsentEvent extends UnsentEvent {
  at: number;
}

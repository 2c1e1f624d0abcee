/** Number of days within which a shop must answer a data request. */
const ANSWER_DAYS = 30;
/** Interval between the first warning in the log and the due date of a request. */
export const DATA_REQUEST_WARNING_MS = 7 * 86_400_000;
/** Number of days for which an answered request is kept. */
export const ANSWERED_RETENTION_DAYS = 30;

/** A customer's request for the data that is stored about them. Times in epoch milliseconds. */
export interface DataRequest {
  /** Identifies the request if it arrives again. */
  id: string;
  /** The customer's gid. */
  customer: string;
  requestedAt: number;
  dueAt: number;
}

/** Makes a data request. @param id the platform's id; if it is null, customer and time identify the request */
export function dataRequest(id: string | null, customer: string, requestedAt: number): DataRequest {
  const dueAt = requestedAt + ANSWER_DAYS * 86_400_000;
  return { id: id ?? `${customer} ${requestedAt}`, customer, requestedAt, dueAt };
}

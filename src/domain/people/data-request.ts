/** Days that a shop has to answer a data request. */
const ANSWER_DAYS = 30;
/** The log warns this long before a request is due. */
export const DATA_REQUEST_WARNING_MS = 7 * 86_400_000;
/** Days that an answered request is kept. */
export const ANSWERED_RETENTION_DAYS = 30;

/** A customer asked for the data that is stored about them. Times in epoch milliseconds. */
export interface DataRequest {
  /** Identifies the request if it arrives again. */
  id: string;
  /** The customer's gid. */
  customer: string;
  requestedAt: number;
  dueAt: number;
}

/** @param id the platform's id; if it is null, customer and time identify the request */
export function dataRequest(id: string | null, customer: string, requestedAt: number): DataRequest {
  const dueAt = requestedAt + ANSWER_DAYS * 86_400_000;
  return { id: id ?? `${customer} ${requestedAt}`, customer, requestedAt, dueAt };
}

/** What a delivery is about. A field is null if the delivery does not name the object. */
export interface DeliverySubject {
  /** Gid of the contract. */
  contract: string | null;
  /** Internal id of the customer; null for workflow triggers, because they have only the number of the gid. */
  customer: string | null;
  /** Gid of the order; null for a declined attempt, because it has no order. */
  order: string | null;
  /** Number of the contract's renewal: 0 for a checkout. */
  cycle: number | null;
}

/** A subject whose deliveries are searched. */
export interface SubjectSearch {
  /** The number of a contract's gid, or one of `customerSubjects`. Engines derive the same text from a stored body. */
  subject: string;
  /** Only deliveries about this order. */
  order?: { gid: string | null; cycle: number };
}

/** `subjectOf` needs only this many characters of a body, because the ids come first in every topic. */
export const SUBJECT_CHARACTERS = 1_024;

/** Reads what a delivery is about. @param body the body, or its first SUBJECT_CHARACTERS */
export function subjectOf(topic: string, body: string): DeliverySubject {
  // Quotes in strings are escaped, so the patterns match only fields. For a reward, only the customer is read, because
  // the sender can add fields with the names of the other patterns.
  const part = (pattern: RegExp) => pattern.exec(body)?.[1] ?? null;
  const isReward = topic === "loyalty.reward_earned";
  const cycle = isReward ? null : part(/"cycle_number":([0-9]+)/);
  return {
    contract: isReward ? null : part(/"(?:contract_id|Contract ID)":"(gid:[^"]+)"/),
    customer: part(/"customer_id":"(cus_[a-z2-7]{24})"/),
    order: isReward ? null : part(/"order_id":"(gid:[^"]+)"/),
    cycle: cycle === null ? null : Number(cycle),
  };
}

/** Returns the number at the end of a gid. */
export function numberOf(gid: string): string {
  return gid.slice(gid.lastIndexOf("/") + 1);
}

/** Returns the subjects of a customer's deliveries without a contract: one for webhooks, then one for triggers. */
export function customerSubjects(id: string, gid: string): string[] {
  return [id, `customer/${numberOf(gid)}`];
}

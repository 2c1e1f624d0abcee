import { cancelFlowEvent, rewardEvent } from "../events/event.ts";
import { redactedId } from "../ids.ts";
import type { MirrorRecord } from "../records/platform-records.ts";
import type { CancelFlowRecord, RewardRecord } from "../records/record-schemas.ts";
import type { OccurrenceRow } from "../rows.ts";
import { decideBillingCycle } from "./billing-cycle.ts";
import { decideCustomField } from "./custom-field.ts";
import { decideCustomer, decideRedaction, emptyCustomer } from "./customer.ts";
import { decideOrder } from "./order.ts";
import { type Decision, type MirrorView, NOTHING, unknownContract } from "./snapshot.ts";
import { decideSubscription } from "./subscription.ts";

/**
 * Decides what a record changes in the mirror. Pure. Reads only the rows that `keysOf` names, and the customers of
 * loaded contracts.
 * @param now epoch milliseconds
 */
export function decide(before: MirrorView, record: MirrorRecord, now: number): Decision {
  switch (record.type) {
    case "customer":
      return decideCustomer(before, record, now);
    case "subscription":
      return decideSubscription(before, record, now);
    case "order":
      return decideOrder(before, record);
    case "reward":
      return decideReward(before, record, now);
    case "cancel_flow":
      return decideCancelFlow(before, record);
    case "billing_cycle":
      return decideBillingCycle(before, record);
    case "custom_field":
      return decideCustomField(before, record);
    case "redaction":
      return decideRedaction(before, record, now);
  }
}

/** Adds a reward, unless its id is known. A redaction may have replaced a known id by its hash. */
function decideReward(mirror: MirrorView, record: RewardRecord, now: number): Decision {
  const isKnown = [record.id, redactedId(record.id)].some((id) => mirror.hasOccurrence("reward", id));
  if (isKnown) return NOTHING;
  const stored = mirror.customer(mirror.ids.customer(record.customer));
  const customer = stored ?? emptyCustomer(mirror.ids, record.customer, now);
  const occurrence: OccurrenceRow = { kind: "occurrence", record };
  return {
    rows: stored === undefined ? [occurrence, customer] : [occurrence],
    events: [rewardEvent(customer.resource.id, record)],
  };
}

/** Adds a finished cancellation flow, unless its id is known. Refuses a flow of an unknown contract. */
function decideCancelFlow(mirror: MirrorView, record: CancelFlowRecord): Decision {
  if (mirror.hasOccurrence("cancel_flow", record.id)) return NOTHING;
  const contract = mirror.subscription(mirror.ids.subscription(record.subscription));
  if (contract === undefined) return unknownContract(record.subscription);
  return { rows: [{ kind: "occurrence", record }], events: [cancelFlowEvent(contract.resource.customerId, record)] };
}

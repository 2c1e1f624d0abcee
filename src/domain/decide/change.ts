import type { MirrorRecord } from "../records/platform-records.ts";
import { decideBillingCycle } from "./billing-cycle.ts";
import { decideCustomer, decideRedaction } from "./customer.ts";
import type { Decision, MirrorView } from "./decision.ts";
import { decideCancelFlow, decideReward } from "./occurrence.ts";
import { decideOrder } from "./order.ts";
import { decideSubscription } from "./subscription.ts";

/**
 * Decides what a record changes in the mirror. Pure. Reads only rows that `keysOf` names, and customers of loaded
 * contracts.
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
    case "redaction":
      return decideRedaction(before, record, now);
  }
}

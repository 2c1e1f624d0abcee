import type { Outcome } from "../domain/delivery.ts";
import { sentence } from "../lib/text.ts";
import { untilAborted } from "../lib/until-aborted.ts";
import type { Claim } from "../store/deliveries.ts";
import type { ShopStore } from "../store/shops.ts";
import type { AdminGraphqlClient } from "./api/graphql-client.ts";
import { FLOW_TRIGGER } from "./api/operations.ts";
import { PlatformError } from "./api/platform-error.ts";

/**
 * Starts a workflow in the platform's automation tool with a claimed trigger: one call, for whatever fails is tried again by the schedule of all deliveries.
 * @param timeout milliseconds for all of it
 */
export function workflowStarter(api: AdminGraphqlClient, shops: ShopStore, timeout: number): (claim: Claim) => Promise<Outcome & { timedOut: boolean }> {
  return async ({ shopId, body }) => {
    const shop = await shops.byId(shopId);
    if (shop === undefined) return { statusCode: null, error: "The shop was removed.", timedOut: false };
    const signal = AbortSignal.timeout(timeout);
    // The stored text goes in as it is: the customer's number can exceed what a float holds.
    const request = `{"query":${JSON.stringify(FLOW_TRIGGER.text)},"operationName":"${FLOW_TRIGGER.name}","variables":${body}}`;
    try {
      // Waiting for points counts too, and does not listen to a signal.
      const { flowTriggerReceive } = await untilAborted(api.queryText(shop, FLOW_TRIGGER, request, { tries: 1, signal }), signal);
      const messages = (flowTriggerReceive?.userErrors ?? []).map(({ message }) => message);
      return { statusCode: 200, error: messages.length === 0 ? null : messages.join(" ").slice(0, 500), timedOut: false };
    } catch (thrown) {
      if (signal.aborted) return { statusCode: null, error: "The platform did not answer in time.", timedOut: true };
      if (!(thrown instanceof PlatformError)) throw thrown;
      return { statusCode: thrown.status, error: sentence(thrown.message), timedOut: false };
    }
  };
}

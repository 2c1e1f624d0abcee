import { keptAnswer, type Outcome } from "../domain/deliveries/delivery.ts";
import { sentence } from "../lib/text.ts";
import { createTimeLimit, untilAborted } from "../lib/waits.ts";
import type { Claim } from "../store/port/deliveries.ts";
import type { ShopStore } from "../store/port/shops.ts";
import type { AdminGraphqlClient } from "./api/graphql-client.ts";
import { FLOW_TRIGGER } from "./api/operations/app.ts";
import { PlatformError } from "./api/platform-error.ts";

/** Delivers a claimed trigger to the platform's automation tool. */
export type WorkflowStarter = (claim: Claim) => Promise<Outcome & { timedOut: boolean }>;

interface Dependencies {
  client: Pick<AdminGraphqlClient, "queryWithJson" | "urlOf">;
  shops: Pick<ShopStore, "byId">;
  timeoutMs: number;
}

const MAX_ERROR_LENGTH = 500;

/** Creates a starter, which sends one request for each attempt. The schedule of deliveries plans the next attempt. */
export function createWorkflowStarter({ client, shops, timeoutMs }: Dependencies): WorkflowStarter {
  return async ({ shopId, body }) => {
    // The attempt must end before the delivery's lease expires, even if the database does not respond.
    const { signal, isOver } = createTimeLimit(timeoutMs);
    const to: Pick<Outcome, "url"> = {};
    try {
      const shop = await untilAborted(shops.byId(shopId), signal);
      if (shop === undefined) return { statusCode: null, error: "The shop was removed.", timedOut: false };
      to.url = client.urlOf(shop);
      // The stored text is sent, because a customer's number may be too large for a float.
      const query = client.queryWithJson(shop, FLOW_TRIGGER, body, { maxRetries: 0, signal, isOver });
      // The signal does not stop all work of the client, for example a token renewal. So `untilAborted` ends the wait.
      const data = await untilAborted(query, signal);
      const messages = (data.flowTriggerReceive?.userErrors ?? []).map(({ message }) => message);
      const error = messages.length === 0 ? null : messages.join(" ").slice(0, MAX_ERROR_LENGTH);
      const answer = keptAnswer(Buffer.from(JSON.stringify({ data })));
      return { statusCode: 200, error, ...to, answer, timedOut: false };
    } catch (thrown) {
      if (isOver()) return { statusCode: null, error: "The platform did not answer in time.", ...to, timedOut: true };
      if (!(thrown instanceof PlatformError)) throw thrown;
      return { statusCode: thrown.status, error: sentence(thrown.message), ...to, timedOut: false };
    }
  };
}

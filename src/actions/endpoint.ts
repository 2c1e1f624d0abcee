import { acceptEndpoint, type Resolve } from "../delivery/address.ts";
import type { EgressAllow } from "../domain/deliveries/endpoint.ts";
import { invalid } from "../domain/error.ts";
import { parseTopics } from "../domain/events/event.ts";
import type { Shop } from "../domain/shop.ts";
import type { Store } from "../store/port/store.ts";
import type { WebhookSettings } from "../store/port/webhooks.ts";
import { type Actor, checkAccess } from "./access.ts";

interface EndpointDependencies {
  store: Pick<Store, "webhooks">;
  resolve: Resolve;
  allow: EgressAllow;
}

interface EndpointRequest {
  shop: Shop;
  /** The topics replace the stored topics. */
  change: { url?: string; topics?: readonly string[] };
  actor: Actor;
}

/**
 * Saves the URL, the topics, or both. A URL whose name does not resolve is saved with a warning.
 * @throws SdsError `plan_required` for a merchant, `invalid` for the URL or a topic; then nothing is saved
 */
export async function saveEndpoint(
  { store, resolve, allow }: EndpointDependencies,
  { shop, change, actor }: EndpointRequest,
  now: number,
): Promise<{ settings: WebhookSettings; warnings: string[] }> {
  const warnings = checkAccess(shop, "webhooks", actor);
  const { url } = change;
  const topics = change.topics === undefined ? undefined : parseTopics(change.topics);
  if (url === "") throw invalid("enter the URL of the endpoint");
  const unresolved = url === undefined ? undefined : await acceptEndpoint(url, resolve, allow);
  const settings = await store.webhooks.set(
    shop.id,
    { ...(url !== undefined && { url }), ...(topics !== undefined && { topics }) },
    now,
  );
  return { settings, warnings: unresolved === undefined ? warnings : [...warnings, unresolved] };
}

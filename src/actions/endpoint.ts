import { acceptEndpoint, type Resolve } from "../delivery/address.ts";
import type { Actor } from "../domain/audit.ts";
import type { EgressAllow } from "../domain/deliveries/endpoint.ts";
import { invalid } from "../domain/error.ts";
import { parseTopics } from "../domain/events/event.ts";
import type { Shop } from "../domain/shop.ts";
import type { Store } from "../store/port/store.ts";
import type { WebhookSettings } from "../store/port/webhooks.ts";
import { checkAccess } from "./access.ts";
import { type ActorInShop, audited, noteInAudit } from "./audit.ts";

interface EndpointDependencies {
  store: Pick<Store, "webhooks" | "audited">;
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
 * Saves the URL, the topics, or both. A URL whose host name does not resolve is saved with a warning.
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
  const stored = await store.webhooks.settings(shop.id);
  const isSame = (url ?? stored.url) === stored.url && String(topics ?? stored.topics) === String(stored.topics);
  const before = auditedSettings(stored);
  const after = auditedSettings({ url: url ?? null, topics: topics ?? [] });
  const changed = {
    before,
    after: { ...before, ...(url !== undefined && { host: after.host }), ...(topics && { topics: after.topics }) },
  };
  const { webhooks } = isSame ? store : audited(store, { shop, actor }, now, "endpoint.changed", changed);
  const settings = await webhooks.set(
    shop.id,
    { ...(url !== undefined && { url }), ...(topics !== undefined && { topics }) },
    now,
  );
  return { settings, warnings: unresolved === undefined ? warnings : [...warnings, unresolved] };
}

/** Returns the settings for the audit list, which has only the host of the URL. */
function auditedSettings({ url, topics }: WebhookSettings): { host: string | null; topics: string } {
  return { host: url === null ? null : (URL.parse(url)?.host ?? null), topics: topics.join(", ") };
}

/** Removes URL and topics. */
export async function clearEndpoint(
  store: Pick<Store, "webhooks" | "audited">,
  by: ActorInShop,
  now: number,
): Promise<void> {
  const before = auditedSettings(await store.webhooks.settings(by.shop.id));
  await audited(store, by, now, "endpoint.removed", { before }).webhooks.clear(by.shop.id);
}

/** Returns the signing secret, and notes who sees it. @throws SdsError `not_found` for a removed shop */
export async function showSecret(
  store: Pick<Store, "webhooks" | "audit">,
  by: ActorInShop,
  now: number,
): Promise<string> {
  await noteInAudit(store, by, now, "secret.shown");
  return store.webhooks.secret(by.shop.id, now);
}

/** Makes a new signing secret. @param overlapMs how long webhooks are also signed with the previous secret */
export function rotateSecret(
  store: Pick<Store, "audited">,
  by: ActorInShop,
  now: number,
  overlapMs: number,
): Promise<string> {
  const after = { overlapMs };
  return audited(store, by, now, "secret.rotated", { after }).webhooks.rotateSecret(by.shop.id, now, overlapMs);
}

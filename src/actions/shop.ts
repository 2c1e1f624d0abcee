import type { Actor } from "../domain/audit.ts";
import type { DataRequest } from "../domain/people/data-request.ts";
import { missingScopes } from "../domain/platform/connection.ts";
import { loadText } from "../domain/platform/load-progress.ts";
import type { Shop, ShopSettings } from "../domain/shop.ts";
import { isoUtc } from "../lib/time.ts";
import { isLoading } from "../shopify/sync/exclusive-load.ts";
import type { ConnectionWarning } from "../store/port/connections.ts";
import type { Store } from "../store/port/store.ts";
import { checkAccess } from "./access.ts";
import { audited } from "./audit.ts";

/** A shop's connection, load, inbox and settings. Times in epoch milliseconds; null means never. */
export interface ShopStatus extends ShopSettings {
  /** Whether the shop has access tokens, also if the platform refuses them. */
  hasConnection: boolean;
  /** Why the platform refuses the connection, or which needed scopes the shop does not grant; null without trouble. */
  trouble: string | null;
  /** When the platform began to refuse the connection; null if the platform accepts it. */
  troubleSince: number | null;
  warnings: ConnectionWarning[];
  uninstalledAt: number | null;
  load: UnfinishedLoad | null;
  loadedAt: number | null;
  reconciledAt: number | null;
  /** Number of rows that the last reconciliation changed. */
  reconciledRows: number | null;
  /** Numbers of waiting and of failed items. */
  inbox: { waiting: number; failed: number };
  /** Open requests of customers for their data, ordered by their due time. */
  dataRequests: DataRequest[];
}

/** A load that is under way, or that `serve` has to begin or continue. */
export interface UnfinishedLoad {
  isUnderWay: boolean;
  /** Describes the progress of the load. */
  text: string;
  /** The finished part of the current step, 0 to 1; null if unknown. */
  done: number | null;
  /** Why the load was interrupted; null if it was not interrupted, or if the reason is unknown. */
  error: string | null;
}

export async function shopStatus(
  store: Pick<Store, "connections" | "dataRequests" | "inbox" | "shops" | "syncs">,
  shop: Shop,
  now: number,
): Promise<ShopStatus> {
  const [settings, connection, warnings, uninstallation, counts, unfinished, load, reconciliation, openRequests] =
    await Promise.all([
      store.shops.settings(shop.id),
      store.connections.find(shop.id),
      store.connections.warnings(shop.id),
      store.connections.uninstallation(shop.id),
      store.inbox.count(shop.id),
      unfinishedLoad(store, shop.id, now),
      store.syncs.lastComplete(shop.id, "full"),
      store.syncs.lastComplete(shop.id, "changes"),
      store.dataRequests.open(shop.id),
    ]);
  return {
    ...settings,
    hasConnection: connection !== undefined,
    trouble: connection === undefined ? null : (connection.trouble ?? missingText(connection.scopes)),
    troubleSince: connection?.troubleSince ?? null,
    warnings,
    uninstalledAt: uninstallation?.uninstalledAt ?? null,
    load: unfinished,
    loadedAt: load?.endedAt ?? null,
    reconciledAt: reconciliation?.endedAt ?? null,
    reconciledRows: reconciliation?.changed ?? null,
    inbox: counts,
    dataRequests: openRequests,
  };
}

/** Returns the shop's unfinished load; null if the shop is loaded, or not connected. */
export async function unfinishedLoad(
  { syncs, connections }: Pick<Store, "syncs" | "connections">,
  shopId: number,
  now: number,
): Promise<UnfinishedLoad | null> {
  const [state, complete, connection] = await Promise.all([
    syncs.loadState(shopId, now),
    syncs.lastComplete(shopId, "full"),
    connections.find(shopId),
  ]);
  const isUnderWay = isLoading(state);
  if (!isUnderWay && (complete !== undefined || connection === undefined)) return null;
  const progress = state?.progress ?? {};
  const { done = null, error = null } = progress;
  return { isUnderWay, text: loadText(progress), done, error: isUnderWay ? null : error };
}

/** Describes an unfinished load for the operator. */
export function operatorLoadText({ isUnderWay, text, error }: UnfinishedLoad): string {
  if (isUnderWay) return `the first load is under way: ${text}`;
  if (error === null) return "the shop is not loaded yet: `sds serve` does that";
  return `the load was interrupted, and \`sds serve\` goes on with it: ${text}; ${error}`;
}

/** Describes an unfinished load for the merchant. */
export function merchantLoadText({ isUnderWay, text, error }: UnfinishedLoad): string {
  if (isUnderWay) return `Loading your shop: ${text}.`;
  if (error !== null) return `Loading was interrupted, and goes on by itself. So far: ${text}.`;
  return "Loading your shop begins by itself, in a few seconds.";
}

function missingText(scopes: readonly string[]): string | null {
  const missing = missingScopes(scopes);
  return missing.length === 0 ? null : `the shop does not grant ${missing.join(", ")}`;
}

/** Describes the state of a shop's connection. */
export function connectionText({
  hasConnection,
  trouble,
  troubleSince,
  uninstalledAt,
}: Pick<ShopStatus, "hasConnection" | "trouble" | "troubleSince" | "uninstalledAt">): string {
  if (uninstalledAt !== null) return `the shop uninstalled the app at ${isoUtc(uninstalledAt)}`;
  if (trouble === null) return hasConnection ? "connected" : "not connected";
  return troubleSince === null ? trouble : sinceText(trouble, troubleSince);
}

export function sinceText(text: string, since: number): string {
  return `${text}; since ${isoUtc(since)}`;
}

type SettingsChange = Parameters<Store["shops"]["set"]>[1];

/**
 * Changes settings.
 * @throws SdsError `not_found`; `plan_required` if a merchant changes triggers that the shop's plan does not include
 */
export async function changeShop(
  store: Pick<Store, "shops" | "audited">,
  { shop, change, actor }: { shop: Shop; change: SettingsChange; actor: Actor },
  now: number,
): Promise<{ shop: Shop; warnings: string[] }> {
  const { plan = shop.plan, triggers } = change;
  const warnings = triggers === undefined ? [] : checkAccess({ plan }, "workflow triggers", actor);
  const settings = { ...shop, ...(await store.shops.settings(shop.id)) };
  const texts = (values: SettingsChange) =>
    Object.fromEntries(Object.keys(change).map((name) => [name, String(values[name as keyof SettingsChange])]));
  const action = Object.keys(change).join() === "triggers" ? "triggers.changed" : "shop.changed";
  const [before, after] = [texts(settings), texts(change)];
  const isSame = action === "triggers.changed" && before["triggers"] === after["triggers"];
  const { shops } = isSame ? store : audited(store, { shop, actor }, now, action, { before, after });
  return { shop: await shops.set(shop.domain, change), warnings };
}

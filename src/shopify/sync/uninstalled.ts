import { CONTRACTS_END_AFTER_MS } from "../../domain/platform/connection.ts";
import type { SubscriptionRecord } from "../../domain/records/record-schemas.ts";
import type { Subscription } from "../../domain/resources.ts";
import type { MirroredShop } from "../../domain/shop.ts";
import type { Log } from "../../lib/log.ts";
import { isoUtc } from "../../lib/time.ts";
import type { RecordWriter } from "../../mirror/record-writer.ts";
import type { ConnectionStore } from "../../store/port/connections.ts";
import type { MirrorStore } from "../../store/port/mirror.ts";
import type { PageStore } from "../../store/port/pages.ts";
import type { ShopStore } from "../../store/port/shops.ts";

interface Services {
  connections: Pick<ConnectionStore, "uninstalledBefore" | "uninstallation" | "noteContractsEnded">;
  shops: Pick<ShopStore, "list">;
  pages: Pick<PageStore, "listFiltered">;
  mirror: Pick<MirrorStore, "contractOf">;
  recordWriter: Pick<RecordWriter, "submit">;
  now: () => number;
  log: Log;
}

const NOT_ENDED = ["ACTIVE", "PAUSED", "PAYMENT_FAILED"];
/** Number of contracts in one commit. */
const PAGE_SIZE = 100;

/**
 * Cancels the mirrored contracts of shops that uninstalled the app two days ago, as the platform does. By then, the app
 * has no access to the contracts. No event is queued. After an interruption, the next call continues.
 */
export async function cancelUninstalled(services: Services): Promise<void> {
  const { connections, shops, now, log } = services;
  const uninstalled = await connections.uninstalledBefore(now() - CONTRACTS_END_AFTER_MS);
  if (uninstalled.length === 0) return;
  const shopsById = new Map((await shops.list()).map((shop) => [shop.id, shop]));
  for (const { shopId, uninstalledAt } of uninstalled) {
    const shop = shopsById.get(shopId);
    if (shop === undefined) continue;
    const cancelled = await cancelContracts(services, shop, uninstalledAt);
    await connections.noteContractsEnded(shopId, uninstalledAt);
    log.warn("the shop uninstalled the app two days ago, so its contracts are mirrored as cancelled", {
      shop: shop.domain,
      cancelled,
    });
  }
}

/** Cancels the contracts of a shop. @returns how many contracts were cancelled */
async function cancelContracts(services: Services, shop: MirroredShop, uninstalledAt: number): Promise<number> {
  const { connections, pages, mirror, recordWriter } = services;
  const cancelledAt = isoUtc(uninstalledAt + CONTRACTS_END_AFTER_MS);
  let cancelled = 0;
  let after: Parameters<PageStore["listFiltered"]>[4] = null;
  do {
    const page = await pages.listFiltered(shop.id, "subscriptions", { statuses: NOT_ENDED }, PAGE_SIZE, after);
    // If the shop has installed the app again in the meantime, its contracts are read from the platform instead.
    if (page === undefined || (await connections.uninstallation(shop.id)) === undefined) return cancelled;
    const rows = JSON.parse(`[${new TextDecoder().decode(page.rows)}]`) as Subscription[];
    const contracts = await Promise.all(rows.map(({ shopifyId }) => mirror.contractOf(shop, shopifyId)));
    const records = contracts.flatMap((contract) =>
      contract === undefined ? [] : [cancellation(contract, cancelledAt)],
    );
    await recordWriter.submit({ shop, records, eventsSince: Number.POSITIVE_INFINITY });
    cancelled += records.length;
    after = page.end;
  } while (after !== null);
  return cancelled;
}

function cancellation(
  { subscription, customerGid }: NonNullable<Awaited<ReturnType<MirrorStore["contractOf"]>>>,
  cancelledAt: string,
): SubscriptionRecord {
  const { shopifyId, interval, intervalCount, sellingPlanId, lines, startedAt } = subscription;
  const kept = { shopifyId, interval, intervalCount, sellingPlanId, lines, startedAt };
  return {
    type: "subscription",
    customer: customerGid,
    ...kept,
    status: "CANCELLED",
    nextBillingDate: null,
    cancelledAt,
  };
}

import { planOf } from "../../domain/app-plan.ts";
import type { Shop } from "../../domain/shop.ts";
import type { Log } from "../../log.ts";
import type { ConnectionStore } from "../../store/connections.ts";
import type { ShopStore } from "../../store/shops.ts";
import type { GraphqlClient } from "../api/graphql-client.ts";
import { INSTALLATION } from "../api/operations/app.ts";
import { isPlatformError } from "../api/platform-error.ts";

interface Dependencies {
  shops: Pick<ShopStore, "followPlan">;
  connections: Pick<ConnectionStore, "find">;
  client: GraphqlClient;
  log: Log;
}

/** The app subscription in a platform webhook. */
interface AppSubscriptionWebhook {
  topic: string;
  name: string;
  status: string;
}

/**
 * Sets the shop's plan after a platform webhook about one of its app subscriptions. The platform is queried for all of
 * them. If that is not possible, the one in the platform webhook decides.
 * @throws PlatformError
 */
export async function readPlan(
  { shops, connections, client, log }: Dependencies,
  shop: Shop,
  { topic, name, status }: AppSubscriptionWebhook,
): Promise<void> {
  const isConnected = (await connections.find(shop.id)) !== undefined;
  const active = isConnected ? await activeSubscriptions(client, shop) : undefined;
  const plan = active === undefined ? planAfter(shop, { name, status }) : planOf(active, true);
  const fields = { shop: shop.domain, topic };
  if (plan !== undefined) {
    if (await shops.followPlan(shop.id, plan)) log.info("the shop's plan changed", { ...fields, plan });
  } else if (status === "ACTIVE") {
    const message = "the shop subscribed to a plan that sds does not know; its access stays as it is";
    log.warn(message, { ...fields, plan: name.slice(0, 100) });
  }
}

/** The end of one subscription ends only the plan that it gave. */
function planAfter(shop: Shop, { name, status }: { name: string; status: string }) {
  const endsPlan = status !== "ACTIVE" && planOf([{ name, status: "ACTIVE" }], true) === shop.plan;
  return planOf([{ name, status }], endsPlan);
}

/** @returns undefined if the app has no access any more, because it is being uninstalled */
async function activeSubscriptions(client: GraphqlClient, shop: Shop) {
  try {
    return (await client.query(shop, INSTALLATION, {})).currentAppInstallation.activeSubscriptions;
  } catch (thrown) {
    if (isPlatformError(thrown, "unauthorized")) return undefined;
    throw thrown;
  }
}

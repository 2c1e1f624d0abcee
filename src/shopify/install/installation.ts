import { type AppSubscription, givesAccess, planOf, planOfSubscription } from "../../domain/platform/app-plan.ts";
import { missingScopes } from "../../domain/platform/connection.ts";
import type { Shop } from "../../domain/shop.ts";
import type { Log } from "../../lib/log.ts";
import type { ConnectionStore } from "../../store/port/connections.ts";
import type { ShopStore } from "../../store/port/shops.ts";
import type { GraphqlClient } from "../api/graphql-client.ts";
import { INSTALLATION, type Installation } from "../api/operations/app.ts";
import { isPlatformError } from "../api/platform-error.ts";
import type { ConnectionWarnings } from "../api/warnings.ts";

/** Reads the scopes that shops granted to the app, their app subscriptions and their currency. */
export interface InstallationReader {
  /** Reads and stores the installation of a connected shop. @throws PlatformError */
  read(shop: Shop): Promise<void>;
  /** Sets the plan from all app subscriptions, or from `changed` if they cannot be read. @throws PlatformError */
  readPlan(shop: Shop, changed: AppSubscription): Promise<void>;
}

interface Dependencies {
  shops: Pick<ShopStore, "followPlan" | "set">;
  connections: Pick<ConnectionStore, "find" | "setScopes">;
  client: GraphqlClient;
  warnings: Pick<ConnectionWarnings, "noteDomain">;
  log: Log;
}

export function createInstallationReader(dependencies: Dependencies): InstallationReader {
  const { shops, connections, client, warnings, log } = dependencies;
  /** For each shop: the last unknown plan that was logged. */
  const unknownPlans = new Map<number, string>();

  async function read(shop: Shop): Promise<void> {
    const installation = await client.query(shop, INSTALLATION, {});
    await storeScopes(shop, grantedScopes(installation));
    await followPlan(shop, appSubscriptions(installation));
    const { myshopifyDomain, currencyCode: currency } = installation.shop;
    await warnings.noteDomain(shop, myshopifyDomain);
    if (currency !== shop.currency) await shops.set(shop.domain, { currency });
  }

  async function followPlan(shop: Shop, subscriptions: readonly AppSubscription[]): Promise<void> {
    const plan = planOf(subscriptions);
    if (plan !== undefined && (await shops.followPlan(shop.id, plan)))
      log.info("the shop's plan changed", { shop: shop.domain, plan });
    const unknown = plan === undefined ? subscriptions.find(givesAccess) : undefined;
    if (unknown === undefined) return;
    const name = (unknown.handle ?? unknown.name).slice(0, 100);
    if (unknownPlans.get(shop.id) === name) return;
    unknownPlans.set(shop.id, name);
    const message = "the shop subscribed to a plan that sds does not know; its access stays as it is";
    log.warn(message, { shop: shop.domain, plan: name });
  }

  async function storeScopes(shop: Shop, scopes: readonly string[]): Promise<void> {
    const before = (await connections.find(shop.id))?.scopes;
    if (before === undefined || before.toSorted().join() === scopes.toSorted().join()) return;
    await connections.setScopes(shop.id, scopes);
    const added = scopes.filter((scope) => !before.includes(scope)).join();
    const removed = before.filter((scope) => !scopes.includes(scope)).join();
    const fields = { shop: shop.domain, added, removed };
    const missing = missingScopes(scopes).join();
    if (missing !== "")
      log.error("the shop took back scopes that sds needs; ask for them again", { ...fields, missing });
    else log.info("the scopes that the shop grants changed; `sds sync` loads the data of new scopes", fields);
  }

  return {
    read,
    async readPlan(shop, changed) {
      if ((await connections.find(shop.id)) !== undefined) {
        try {
          return await read(shop);
        } catch (thrown) {
          // While the app is being uninstalled, it has no access. Then only `changed` is used.
          if (!isPlatformError(thrown, "unauthorized")) throw thrown;
        }
      }
      // An ended subscription takes away only its own plan.
      if (givesAccess(changed) || planOfSubscription(changed) === shop.plan) await followPlan(shop, [changed]);
    },
  };
}

export function grantedScopes({ currentAppInstallation }: Installation): string[] {
  return currentAppInstallation.accessScopes.map(({ handle }) => handle);
}

export function appSubscriptions({ currentAppInstallation }: Installation): AppSubscription[] {
  return currentAppInstallation.allSubscriptions.nodes.map(({ name, status, lineItems }) => {
    const handles = lineItems.flatMap(({ plan: { pricingDetails } }) => pricingDetails.planHandle ?? []);
    return { name, status, handle: handles[0] ?? null };
  });
}

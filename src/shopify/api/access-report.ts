import type { Log } from "../../lib/log.ts";
import type { ConnectionStore } from "../../store/port/connections.ts";
import type { ShopAddress } from "./address.ts";
import type { DeniedField } from "./graphql-response.ts";

/** Tells the operator what the app has no access to. */
export interface AccessReport {
  /**
   * Stores why the platform refuses the shop's connection; null if it accepts it. Logs it once when it begins and once
   * when it ends.
   */
  setTrouble(shop: ShopAddress, trouble: string | null): Promise<void>;
  /** Logs a field without access, once for each shop and field. */
  addDenied(shop: ShopAddress, field: DeniedField): void;
}

export function createAccessReport(connections: Pick<ConnectionStore, "setTrouble">, log: Log): AccessReport {
  const denied = new Set<string>();
  return {
    async setTrouble({ id, domain }, trouble) {
      if (!(await connections.setTrouble(id, trouble))) return;
      if (trouble === null) log.info("the platform accepts the shop's connection again", { shop: domain });
      else log.error("the platform refuses the shop's connection", { shop: domain, error: trouble });
    },

    addDenied({ id, domain }, { name, message: error }) {
      const key = `${id} ${name}`;
      if (denied.has(key)) return;
      denied.add(key);
      const message = "the app has no access to a field of the platform; everything else is mirrored";
      log.warn(message, { shop: domain, field: name, error: error.slice(0, 300) });
    },
  };
}

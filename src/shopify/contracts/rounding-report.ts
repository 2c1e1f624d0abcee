import type { Log } from "../../lib/log.ts";
import type { ShopAddress } from "../api/address.ts";
import type { Money } from "../api/operations/operation.ts";

/** Tells the operator that amounts were rounded. */
export interface RoundingReport {
  /** Logs the first rounded amount of each shop and currency. The amounts of one order could fill the log. */
  add(shop: ShopAddress, money: Money): void;
}

export function createRoundingReport(log: Log): RoundingReport {
  const reported = new Set<string>();
  return {
    add({ id, domain }, { amount, currencyCode }) {
      const key = `${id} ${currencyCode}`;
      if (reported.has(key)) return;
      reported.add(key);
      const message = "the platform sends amounts with fractions of a minor unit; they are rounded, half to even";
      log.warn(message, { shop: domain, amount, currency: currencyCode });
    },
  };
}

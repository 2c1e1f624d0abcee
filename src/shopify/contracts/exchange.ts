import { type ContractCurrency, type ExchangeRate, newerCurrency } from "../../domain/platform/contract-read.ts";
import type { Shop } from "../../domain/shop.ts";
import type { Log } from "../../lib/log.ts";
import type { MirrorStore } from "../../store/port/mirror.ts";
import type { ContractLineNode } from "../api/operations/contracts.ts";
import type { OrderLineNode, OrderNode } from "../api/operations/orders.ts";
import { minorUnits } from "./money.ts";
import { dateFrom } from "./values.ts";

/** A contract in another currency than its shop. */
export interface ForeignContract {
  gid: string;
  currency: string;
  /** The rate that the contract's last reading stored; undefined if the rate was for other currencies. */
  stored: ContractCurrency | undefined;
}

/** Returns the currency and stored rate of a contract; undefined for a contract in the shop's currency. */
export async function foreignContract(
  mirror: Pick<MirrorStore, "contractReads">,
  shop: Shop,
  gid: string,
  lines: readonly ContractLineNode[],
): Promise<ForeignContract | undefined> {
  const currency = lines[0]?.currentPrice.currencyCode ?? shop.currency;
  if (currency === shop.currency) return undefined;
  const stored = (await mirror.contractReads(shop, [gid])).get(gid)?.currency;
  return { gid, currency, stored: stored?.pair === pairOf(currency, shop) ? stored : undefined };
}

function pairOf(currency: string, shop: Shop): string {
  return `${currency}/${shop.currency}`;
}

/**
 * Returns the rate of the contract's newest order. If no order shows a rate, returns the newest rate of the shop. Warns
 * at the first reading that finds no rate.
 */
export async function contractCurrency(
  { mirror, log }: { mirror: Pick<MirrorStore, "newestRate">; log: Pick<Log, "warn"> },
  shop: Shop,
  { gid, currency, stored }: ForeignContract,
  orders: Iterable<{ node: OrderNode; lines: readonly OrderLineNode[] }>,
): Promise<ContractCurrency> {
  const pair = pairOf(currency, shop);
  let own = stored !== undefined && stored.ratedAt !== null ? stored : null;
  for (const { node, lines } of orders) {
    const rate = rateOf(lines, currency, shop.currency);
    const ratedAt = Date.parse(dateFrom(node.processedAt ?? node.createdAt));
    if (rate !== undefined) own = newerCurrency({ pair, rate, ratedAt }, own);
  }
  if (own !== null) return own;
  const rate = (await mirror.newestRate(shop, pair)) ?? null;
  if (rate === null && (stored === undefined || stored.rate !== null)) {
    const message = "no order has shown the rate of a contract's currency yet; its amounts are 0 until one does";
    log.warn(message, { shop: shop.domain, contract: gid, currency });
  }
  return { pair, rate, ratedAt: null };
}

/** Returns the rate from the prices of an order's lines; undefined if they are 0, or in other currencies. */
function rateOf(lines: readonly OrderLineNode[], currency: string, shopCurrency: string): ExchangeRate | undefined {
  const prices = lines.flatMap(({ originalUnitPriceSet: { shopMoney, presentmentMoney } }) => {
    const isOfPair = shopMoney.currencyCode === shopCurrency && presentmentMoney?.currencyCode === currency;
    const from = isOfPair ? minorUnits(presentmentMoney.amount, currency) : undefined;
    const to = isOfPair ? minorUnits(shopMoney.amount, shopCurrency) : undefined;
    return from === undefined || to === undefined ? [] : [{ from: from.units, to: to.units }];
  });
  const from = prices.reduce((sum, price) => sum + price.from, 0);
  const to = prices.reduce((sum, price) => sum + price.to, 0);
  return from > 0 && to > 0 && Number.isSafeInteger(from) && Number.isSafeInteger(to) ? { from, to } : undefined;
}

import type { Plan } from "../../domain/shop.ts";
import type { Awaitable } from "../../lib/waits.ts";

/** The stylesheet of a shop's storefront widget. */
export interface WidgetStyle {
  /** As the merchant wrote it. */
  source: string;
  /** SHA-256 of `source`, base64url. */
  hash: string;
}

/** A shop, and the hash of its stylesheet. A request for the stylesheet reads these first. */
export interface StyledShop {
  shopId: number;
  plan: Plan;
  /** Hash of the stylesheet's source; null if the shop has none. */
  hash: string | null;
}

export interface StyleStore {
  /** @returns undefined for an unknown shop. SQLite returns the value without a promise. */
  shopOf(domain: string): Awaitable<StyledShop | undefined>;
  find(shopId: number): Promise<WidgetStyle | undefined>;
  /** @throws StoreError `conflict` for a removed shop */
  set(shopId: number, style: WidgetStyle): Promise<void>;
  /** @returns whether there was a stylesheet */
  clear(shopId: number): Promise<boolean>;
}

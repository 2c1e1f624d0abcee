import type { ResourceCounts } from "../domain/commit.ts";
import type { Plan, Shop, ShopSettings } from "../domain/shop.ts";

interface NewShop {
  domain: string;
  plan: Plan;
  currency: string;
  planFixed?: boolean;
}

type ShopChange = Partial<Pick<Shop, "plan" | "currency"> & ShopSettings>;

export interface ShopStore {
  /** @throws SdsError `conflict` */
  add(shop: NewShop, now: number): Promise<Shop>;
  list(): Promise<Shop[]>;
  find(domain: string): Promise<Shop | undefined>;
  byId(id: number): Promise<Shop | undefined>;
  /** @throws SdsError `not_found` */
  set(domain: string, change: ShopChange): Promise<Shop>;
  /** @throws SdsError `not_found` */
  settings(shopId: number): Promise<ShopSettings>;
  /** How many rows the mirror has of each resource. */
  rowCounts(shopId: number): Promise<ResourceCounts>;
  /**
   * Sets the plan that the platform's app subscription gives, unless the operator chose one.
   * @returns whether it changed
   */
  followPlan(shopId: number, plan: Plan): Promise<boolean>;
  /** Removes a shop with everything that is stored about it. @returns whether there was one */
  remove(domain: string): Promise<boolean>;
  /** The secret that signs what the billing system posts to /intake; undefined for an unknown shop. */
  intakeSecret(domain: string): Promise<{ shop: Shop; secret: string } | undefined>;
}

import type { ResourceCounts } from "../../domain/decide/commit.ts";
import type { Plan, Shop, ShopRef, ShopSettings } from "../../domain/shop.ts";

export interface NewShop {
  domain: string;
  plan: Plan;
  currency: string;
  planFixed?: boolean;
}

type ShopChange = Partial<Pick<Shop, "plan" | "currency"> & ShopSettings>;

/** It is read at once, because every post needs it. */
export interface IntakeSecret {
  shop: Shop;
  /** What signs the posts of the shop's billing system. */
  secret: string;
}

/**
 * Removing a shop can take long, so it goes in steps. `beginRemoval` is the first; from then on only `removing` finds
 * the shop, no other operation does, and whoever found it before can add nothing to it: they are refused as if the shop
 * were gone. An interrupted removal goes on with the next `removeSome`, in any process.
 */
export interface ShopStore {
  /** @throws SdsError `conflict` for a domain that exists, or that is being removed */
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
  /**
   * Marks a shop as one that is being removed, and removes its keys, sessions, sign-in links, endpoint and tokens. For
   * a shop that is being removed already it does nothing.
   * @param now epoch milliseconds
   * @returns the shop, undefined if there is none
   */
  beginRemoval(domain: string, now: number): Promise<ShopRef | undefined>;
  /** The shops that are being removed, the one that began first in front. */
  removing(): Promise<ShopRef[]>;
  /**
   * Removes some rows of a shop that is being removed, in one short transaction. The last one removes the platform
   * webhook that asked for the removal, its id and the shop's own row together.
   * @returns whether something is left
   */
  removeSome(shopId: number): Promise<boolean>;
  /** What a post to the intake needs; undefined for an unknown shop. */
  intakeSecret(domain: string): Promise<IntakeSecret | undefined>;
}

/** Each engine removes shops in its own way, because it has other tables. */
export type ShopRemoval = Pick<ShopStore, "beginRemoval" | "removing" | "removeSome">;

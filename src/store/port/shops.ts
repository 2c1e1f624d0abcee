import type { ResourceCounts } from "../../domain/decide/commit.ts";
import type { FormerBranch } from "../../domain/pages/checkpoint.ts";
import type { Plan, Shop, ShopRef, ShopSettings } from "../../domain/shop.ts";

export interface NewShop {
  domain: string;
  plan: Plan;
  currency: string;
  planFixed?: boolean;
}

type ShopChange = Partial<Pick<Shop, "plan" | "currency"> & ShopSettings>;

/** A shop and its intake secret. Each post to the intake needs both. */
export interface IntakeSecret {
  shop: Shop;
  /** Signs the posts of the shop's billing system. */
  secret: string;
}

/**
 * Shops. The removal of a shop works in steps, because it may take long. After `beginRemoval` only `removing` finds the
 * shop. All other operations then treat the shop as missing, even for callers that found the shop before. After an
 * interruption any process can continue with `removeSome`.
 */
export interface ShopStore {
  /** @throws SdsError `conflict` if the shop exists or is being removed */
  add(shop: NewShop, now: number): Promise<Shop>;
  list(): Promise<Shop[]>;
  /** @param domain the shop's present domain, or the domain with which the shop was added */
  find(domain: string): Promise<Shop | undefined>;
  byId(id: number): Promise<Shop | undefined>;
  /**
   * Returns the shops that most need attention. Shops that the platform refuses, or that need a newer `sds`, come
   * first. Then come shops with the most dead deliveries and failed items, then shops with the most waiting work.
   */
  neediest(limit: number): Promise<Shop[]>;
  /** Finds the shop by an API key's id or fingerprint, or by a delivery's id; undefined if several shops match. */
  owning(idOrFingerprint: string): Promise<Shop | undefined>;
  /**
   * Gives a shop another domain, and keeps everything else, also the internal ids of its rows.
   * @throws SdsError `not_found`; `conflict` if another shop has the domain, or was added with it
   */
  rename(domain: string, newDomain: string): Promise<Shop>;
  /** @throws SdsError `not_found` */
  set(domain: string, change: ShopChange): Promise<Shop>;
  /** @throws SdsError `not_found` */
  settings(shopId: number): Promise<ShopSettings>;
  /** Returns the number of mirrored rows of each resource. */
  rowCounts(shopId: number): Promise<ResourceCounts>;
  /** Sets the plan, unless the operator has fixed the plan. @returns whether the plan changed */
  followPlan(shopId: number, plan: Plan): Promise<boolean>;
  /**
   * Marks a shop for removal, and removes its keys, sessions, sign-in links, endpoint and tokens. Gives up its move.
   * Does nothing for a shop that is being removed.
   * @param now epoch milliseconds
   * @returns the shop; undefined for an unknown shop
   * @throws SdsError `conflict` while a move has stopped the shop
   */
  beginRemoval(domain: string, now: number): Promise<ShopRef | undefined>;
  /** Returns the shops that are being removed, in the order in which they were marked. */
  removing(): Promise<ShopRef[]>;
  /**
   * Removes some rows of a shop that is being removed, in one short transaction. The last call removes the shop's own
   * row. This call also removes the platform webhook that requested the removal, and the webhook's id.
   * @returns whether rows are left
   */
  removeSome(shopId: number): Promise<boolean>;
  /** Lists the former branches of a shop's changes. */
  formerBranches(shopId: number): Promise<FormerBranch[]>;
  /** @returns undefined for an unknown shop */
  intakeSecret(domain: string): Promise<IntakeSecret | undefined>;
}

export type ShopRemoval = Pick<ShopStore, "beginRemoval" | "removing" | "removeSome">;

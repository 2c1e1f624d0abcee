import type { CommitResult, Submission } from "../../domain/decide/commit.ts";
import type { Order, Subscription } from "../../domain/resources.ts";
import type { ShopRef } from "../../domain/shop.ts";

/** What a search for the stored texts about people found. Only its own engine can read it. */
export interface TextSearch {
  shop: ShopRef;
  /** Their gids. */
  people: ReadonlySet<string>;
  /** Call it once, when no further commit needs the search. Until then every commit of the shop is noted. */
  end(): void;
}

/** What is stored of the readings of a contract. Times in epoch milliseconds. */
export interface StoredRead {
  /** When the last whole reading began. */
  beganAt: number;
  /** When the readings of its orders began, by their gids: of the orders that were read last. */
  orders: Record<string, number>;
}

/** A contract as the mirror has it. */
export interface MirroredContract {
  subscription: Subscription;
  customerGid: string;
}

export interface MirrorStore {
  /**
   * Searches for the stored texts that may be about people, so that `applyRecords` with their redactions is short. This
   * takes long in a large shop. It works in slices, and others can work and commit in between: `applyRecords` also
   * finds what was stored since.
   */
  searchTexts(shop: ShopRef, people: ReadonlySet<string>): Promise<TextSearch>;
  /**
   * Applies submissions in order, in one transaction. When it resolves, everything that was not refused is on the disk,
   * with the deliveries for it. A refused submission changes nothing; the others are still applied. See `planCommit`
   * for what is decided.
   * @param now epoch milliseconds
   * @throws StoreError; `conflict` also for the work of a node that another node has taken over
   * @param searches for the people whom the submissions redact. It searches by itself for those who are missing here.
   */
  applyRecords(
    submissions: readonly Submission[],
    now: number,
    searches?: readonly TextSearch[],
  ): Promise<CommitResult[]>;
  /** The stored readings of contracts, by gid, without contracts that were never read. */
  contractReads(shop: ShopRef, contractGids: readonly string[]): Promise<Map<string, StoredRead>>;
  /** The gids of the contracts that have an order with this gid in the mirror. */
  contractsOfOrder(shop: ShopRef, orderGid: string): Promise<string[]>;
  /** The mirrored orders of a contract, by cycle number; the checkout is 0. */
  ordersOf(shop: ShopRef, contractGid: string): Promise<Map<number, Order>>;
  /** undefined for a contract that is not in the mirror. */
  contractOf(shop: ShopRef, contractGid: string): Promise<MirroredContract | undefined>;
}

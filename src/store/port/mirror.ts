import type { CommitResult, Submission } from "../../domain/decide/commit.ts";
import type { ContractCurrency, ExchangeRate, RenewalRun } from "../../domain/platform/contract-read.ts";
import type { Order, Subscription } from "../../domain/resources.ts";
import type { MirroredShop } from "../../domain/shop.ts";

/** The result of a search for stored texts about people. Only the engine that made the result can read it. */
export interface TextSearch {
  shop: MirroredShop;
  /** Gids of the people. */
  people: ReadonlySet<string>;
  /**
   * Call this after the last commit that uses the search. Until then, the engine keeps the search's hits in memory.
   * SQLite's engine also notes the shop's new rewards, because the search may have missed them.
   */
  end(): void;
}

/** When a contract and its orders were read. Times in epoch milliseconds. */
export interface StoredRead {
  /** When the last reading of the whole contract began. */
  beganAt: number;
  /** When the contract changed last, according to the last reading. null if an earlier version noted the reading. */
  updatedAt: number | null;
  /** The last reading of each order, by order gid. Only the orders with the latest readings are kept. */
  orders: Record<string, Pick<StoredRead, "beganAt" | "updatedAt">>;
  /** See `ContractRead`. Empty if the number of each renewal is the number of its cycle. */
  renewals: readonly RenewalRun[];
  /** null for a contract in the shop's currency. */
  currency: ContractCurrency | null;
}

/** A contract in the mirror, with its customer's gid. */
export interface MirroredContract {
  subscription: Subscription;
  customerGid: string;
  revision: string | null;
}

export interface MirrorStore {
  /**
   * Searches the stored texts that may be about people, before `applyRecords` redacts them. This keeps the redaction's
   * transaction short. In a large shop the search takes long. It works in slices, so other commits can run in between.
   * `applyRecords` also finds texts that were stored after the search.
   */
  searchTexts(shop: MirroredShop, people: ReadonlySet<string>): Promise<TextSearch>;
  /**
   * Applies submissions in order, in one transaction. When the promise resolves, all accepted records are on the disk,
   * with their deliveries. A refused submission changes nothing, and does not affect other submissions. `planCommit`
   * decides what changes.
   * @param now epoch milliseconds
   * @param searches must cover all people whom the submissions redact
   * @throws StoreError; `conflict` also if another node has taken over this node's work for a shop
   * @throws Error for a redacted person without a search
   */
  applyRecords(
    submissions: readonly Submission[],
    now: number,
    searches: readonly TextSearch[],
  ): Promise<CommitResult[]>;
  /** Returns the stored readings of contracts, by gid. The result has no entry for a contract that was never read. */
  contractReads(shop: MirroredShop, contractGids: readonly string[]): Promise<Map<string, StoredRead>>;
  /** Returns the rate of the shop's newest order with this currency pair. @param pair see `ContractCurrency` */
  newestRate(shop: MirroredShop, pair: string): Promise<ExchangeRate | undefined>;
  /**
   * Lists contracts that were read without a rate, sorted by gid, at most `limit`.
   * @param after lists only contracts with greater gids
   */
  contractsWithoutRate(shop: MirroredShop, after: string, limit: number): Promise<{ contract: string; pair: string }[]>;
  /** Returns the gids of the contracts whose mirrored orders include the order with this gid. */
  contractsOfOrder(shop: MirroredShop, orderGid: string): Promise<string[]>;
  /** Returns the mirrored orders of a contract, by cycle number. The checkout has number 0. */
  ordersOf(shop: MirroredShop, contractGid: string): Promise<Map<number, Order>>;
  /** Returns undefined for a contract that is not in the mirror. */
  contractOf(shop: MirroredShop, contractGid: string): Promise<MirroredContract | undefined>;
}

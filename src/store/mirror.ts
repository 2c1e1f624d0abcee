import type { CommitResult, Submission } from "../domain/commit.ts";
import type { Order } from "../domain/resources.ts";
import type { ShopRef } from "../domain/shop.ts";
import type { IntakeBody } from "./intake-bodies.ts";

export interface MirrorStore {
  /**
   * Applies submissions in order, in one transaction. When it resolves, everything that was not refused is on the disk,
   * with the deliveries for it. A refused submission changes nothing; the others are still applied. See `planCommit`
   * for what is decided.
   * @param now epoch milliseconds
   */
  applyRecords(submissions: readonly Submission[], now: number): Promise<CommitResult[]>;
  /**
   * Applies the next parts of a complete body and removes them, in one transaction; the body goes with its last part.
   * @param limits how many parts, and how many characters of them, at most; one part is always applied
   * @returns undefined if nothing is left of the body
   */
  applyIntakeParts(
    body: IntakeBody,
    limits: { parts: number; characters: number },
    now: number,
  ): Promise<CommitResult | undefined>;
  /** Those of the contracts that are in the mirror, by gid. */
  knownContracts(shop: ShopRef, contractGids: readonly string[]): Promise<Set<string>>;
  /** The mirrored orders of a contract, by cycle number; the checkout is 0. */
  ordersOf(shop: ShopRef, contractGid: string): Promise<Map<number, Order>>;
  /** The gid of a contract's customer; undefined for a contract that is not in the mirror. */
  customerGidOf(shop: ShopRef, contractGid: string): Promise<string | undefined>;
}

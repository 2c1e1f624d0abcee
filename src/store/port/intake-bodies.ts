import type { ShopRef } from "../../domain/shop.ts";

/** A body of the intake whose records are not all applied yet. */
export interface IntakeBody {
  number: number;
  shop: ShopRef;
}

/** A body that can be applied. */
export interface CompleteBody extends IntakeBody {
  /** Whether another node that is alive stored it: that node applies it. */
  isOfOther: boolean;
}

/**
 * Bodies of the intake that are too large for one commit. A body is stored part by part; once it is complete, its parts
 * are applied one after another (`MirrorStore.applyIntakeParts`), also after a restart. A part is the JSON of an array
 * of records that were checked.
 */
export interface IntakeBodyStore {
  /** @returns the number of the new body; undefined if the shop was removed */
  begin(shopId: number): Promise<number | undefined>;
  /** Adds parts behind those that are there. */
  add(shopId: number, number: number, parts: readonly string[]): Promise<void>;
  /** Whether a body can begin: the shop was not removed. */
  canBegin(shopId: number): Promise<boolean>;
  /** @param parts how many parts it must have. @returns false if it was removed in between; then nothing is applied */
  complete(shopId: number, number: number, parts: number): Promise<boolean>;
  /** Whether a complete body of the shop waits to be applied, in whichever process. */
  isWaiting(shopId: number): Promise<boolean>;
  /** Of each shop the complete body that is applied first. */
  oldestOfEachShop(): Promise<CompleteBody[]>;
  /** Removes a body with what is left of it, in steps. From the first one on nothing of it is applied. */
  remove(shopId: number, number: number): Promise<void>;
  /** Removes the bodies that a program which has stopped did not complete, or did not remove to their end. */
  removeIncomplete(): Promise<void>;
}

/** The parts that one commit applies: the first, and more as far as the limits allow. */
export function firstParts<T extends { records: string }>(
  parts: readonly T[],
  limits: { parts: number; characters: number },
): readonly T[] {
  let characters = 0;
  const end = parts.findIndex(({ records }, index) => {
    characters += records.length;
    return index === limits.parts || (index > 0 && characters > limits.characters);
  });
  return end === -1 ? parts : parts.slice(0, end);
}

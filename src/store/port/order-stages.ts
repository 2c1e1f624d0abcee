/** An order as a load found it: JSON without its lines. */
export interface StagedOrder {
  gid: string;
  json: string;
}

export interface StagedLine {
  orderGid: string;
  gid: string;
  json: string;
}

/** A whole order, with its lines in the order of their numbers. */
interface OrderWithLines {
  order: string;
  lines: string[];
}

/**
 * Orders that a load has read before the contracts that they belong to. They stay only until the load ends, and have no
 * data about people. A stage is one such collection. It is read only when it is complete, and a stage that is removed
 * is not read from then on, so an order is never seen with some of its lines.
 */
export interface OrderStageStore {
  /** @returns the number of the new stage; undefined if the shop was removed */
  begin(shopId: number): Promise<number | undefined>;
  /**
   * Adds orders and lines, in any order. What is there already is replaced.
   * @returns false if the stage was removed; then nothing is added
   */
  add(shopId: number, stage: number, orders: readonly StagedOrder[], lines: readonly StagedLine[]): Promise<boolean>;
  /** Makes a stage readable. @returns false if it was removed */
  complete(shopId: number, stage: number): Promise<boolean>;
  /** An order of the newest complete stage; undefined if it has none, or if there is no such stage. */
  find(shopId: number, orderGid: string): Promise<OrderWithLines | undefined>;
  /** Removes the stages before one, in steps; without it all stages of the shop. */
  remove(shopId: number, before?: number): Promise<void>;
}

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
 * Orders that a load has read before their contracts. They stay until the load ends, and hold no data about people. A
 * stage is one such collection. Only a complete stage can be read, so an order never lacks some of its lines.
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
  /** An order of the newest complete stage; undefined without the order or without such a stage. */
  find(shopId: number, orderGid: string): Promise<OrderWithLines | undefined>;
  /** Removes the stages of a shop with numbers below `before`, in steps. Removes all its stages without `before`. */
  remove(shopId: number, before?: number): Promise<void>;
}

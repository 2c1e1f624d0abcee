/** An order that a load has read. Its JSON does not contain its lines. */
export interface StagedOrder {
  gid: string;
  json: string;
}

export interface StagedLine {
  orderGid: string;
  gid: string;
  json: string;
}

/** A whole order, with its lines sorted by the number in their gids. */
interface OrderWithLines {
  order: string;
  lines: string[];
}

/**
 * Stages of orders. A stage holds orders that a load reads before their contracts. It stays until the load ends, and
 * holds no data about people. Only a complete stage can be read, so an order never lacks lines.
 */
export interface OrderStageStore {
  /** @returns the number of the new stage; undefined if the shop was removed */
  begin(shopId: number): Promise<number | undefined>;
  /**
   * Adds orders and lines, or replaces them if they exist. Their sequence does not matter.
   * @returns false if the stage was removed: nothing is added then
   */
  add(shopId: number, stage: number, orders: readonly StagedOrder[], lines: readonly StagedLine[]): Promise<boolean>;
  /** Makes a stage readable. @returns false if the stage was removed */
  complete(shopId: number, stage: number): Promise<boolean>;
  /** Returns an order of the newest complete stage; undefined without such an order or stage. */
  find(shopId: number, orderGid: string): Promise<OrderWithLines | undefined>;
  /** Removes a shop's stages whose number is below `before`, in steps. Without `before`, removes all its stages. */
  remove(shopId: number, before?: number): Promise<void>;
}

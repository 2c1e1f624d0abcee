import type { JsonObject } from "../../lib/json.ts";
import type { OrderStageStore, StagedLine, StagedOrder } from "../../store/port/order-stages.ts";
import type { OrderLineNode, OrderNode } from "../api/operations/orders.ts";
import { BulkFailure } from "../bulk/file-bytes.ts";
import type { NodeLoader } from "../contracts/node-loader.ts";

/** An order without its lines. */
type OrderHead = Omit<OrderNode, "id" | "lineItems">;

/**
 * Sorts the objects of a file into orders and their lines. Only the listed fields are kept.
 * @throws BulkFailure for an object without an id
 */
export function sortOrders(objects: readonly JsonObject[]): { orders: StagedOrder[]; lines: StagedLine[] } {
  const orders: StagedOrder[] = [];
  const lines: StagedLine[] = [];
  for (const { id, __parentId: orderGid, ...fields } of objects) {
    if (typeof id !== "string") throw new BulkFailure("an object of the file has no id");
    const json = JSON.stringify(fields);
    if (orderGid === undefined) orders.push({ gid: id, json });
    else lines.push({ orderGid: String(orderGid), gid: id, json });
  }
  return { orders, lines };
}

/** Takes orders from the stage of the shop's load. All else comes from another loader. */
export function createStagedNodeLoader(loader: NodeLoader, orderStages: Pick<OrderStageStore, "find">): NodeLoader {
  return {
    contract: loader.contract,
    async order(shop, gid) {
      const staged = await orderStages.find(shop.id, gid);
      if (staged === undefined) return loader.order(shop, gid);
      const head = JSON.parse(staged.order) as OrderHead;
      const nodes = staged.lines.map((json) => JSON.parse(json) as OrderLineNode);
      return { id: gid, ...head, lineItems: { pageInfo: { hasNextPage: false, endCursor: null }, nodes } };
    },
  };
}

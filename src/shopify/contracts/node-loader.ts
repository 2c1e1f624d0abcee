import { createGroupCommit, type GroupCommit } from "../../lib/group-commit.ts";
import { asObject } from "../../lib/json.ts";
import type { OrderStageStore } from "../../store/port/order-stages.ts";
import type { ShopAddress } from "../api/address.ts";
import { type BatchSizes, queryInBatches, settledItems } from "../api/batches.ts";
import type { GraphqlClient } from "../api/graphql-client.ts";
import { type ContractNode, MAX_NODES_PER_QUERY, NODES } from "../api/operations/contracts.ts";
import type { OrderLineNode, OrderNode } from "../api/operations/orders.ts";
import { PlatformError } from "../api/platform-error.ts";
import { requireShape } from "./shapes.ts";
import { platformRecordError } from "./values.ts";

/** Reads contracts and orders by gid. Calls at the same time share a query. More gids cost no extra points. */
export interface NodeLoader {
  /** Returns a contract; undefined if the platform does not have it. @throws PlatformError; SdsError `bad_record` */
  contract(shop: ShopAddress, gid: string): Promise<ContractNode | undefined>;
  /** Returns an order; undefined if the platform does not have or show it. @throws PlatformError */
  order(shop: ShopAddress, gid: string): Promise<OrderNode | undefined>;
}

type LoadedNode = ContractNode | OrderNode;

type NodeResult = PromiseSettledResult<LoadedNode | null>;

export function createNodeLoader(client: GraphqlClient, sizes: BatchSizes): NodeLoader {
  /**
   * Groups of calls that share queries, by shop and domain. A group always queries the same domain, so a renamed shop
   * needs a new group.
   */
  const groups = new Map<string, GroupCommit<string, NodeResult>>();

  function groupOf(shop: ShopAddress): GroupCommit<string, NodeResult> {
    const key = `${shop.id} ${shop.domain}`;
    const group = groups.get(key) ?? createGroup(shop);
    groups.set(key, group);
    return group;
  }

  function createGroup(shop: ShopAddress): GroupCommit<string, NodeResult> {
    const batch = {
      sizes,
      shop,
      operation: NODES.name,
      most: MAX_NODES_PER_QUERY,
      query: (ids: readonly string[]) => queryNodes(client, shop, ids),
    };
    return createGroupCommit({
      async commit(gids) {
        const ids = [...new Set(gids)];
        const results = await queryInBatches(batch, ids);
        const byGid = new Map(ids.map((id, index) => [id, results[index]]));
        return gids.map((gid) => byGid.get(gid) ?? { status: "fulfilled", value: null });
      },
      sizeOf: () => 1,
      maxSize: MAX_NODES_PER_QUERY,
      failsAll: () => true,
    });
  }

  return {
    async contract(shop, gid) {
      const node = fulfilled(await groupOf(shop).submit(gid));
      return isObject(node) && "revisionId" in node ? requireShape("a contract", node) : undefined;
    },
    async order(shop, gid) {
      const result = await groupOf(shop).submit(gid);
      // If the platform refuses a part of an order, the whole order is treated as not shown.
      const isDenied = result.status === "rejected" && (result.reason as PlatformError).isDenied;
      const node = isDenied ? null : fulfilled(result);
      return isObject(node) && "lineItems" in node ? node : undefined;
    },
  };
}

/** Queries contracts and orders by gid. @throws PlatformError if no object can be read */
async function queryNodes(client: GraphqlClient, shop: ShopAddress, ids: readonly string[]): Promise<NodeResult[]> {
  try {
    const { nodes } = await client.query(shop, NODES, { ids: [...ids] });
    if (!Array.isArray(nodes)) throw platformRecordError("the platform sent no objects for their ids");
    return ids.map((_, index) => ({ status: "fulfilled", value: nodes[index] ?? null }));
  } catch (thrown) {
    const results = thrown instanceof PlatformError ? settledItems<LoadedNode | null>(thrown, "nodes") : undefined;
    if (results?.length !== ids.length) throw thrown;
    return results;
  }
}

function fulfilled<T>(result: PromiseSettledResult<T>): T {
  if (result.status === "fulfilled") return result.value;
  throw result.reason;
}

function isObject(node: LoadedNode | null): node is LoadedNode {
  return asObject(node) !== undefined;
}

/** An order without its lines. */
type OrderHead = Omit<OrderNode, "id" | "lineItems">;

/** Creates a loader that takes orders from the stage of the shop's load. All other objects are read with `loader`. */
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

import { createGroupCommit, type GroupCommit } from "../../lib/group-commit.ts";
import { asObject } from "../../lib/json.ts";
import type { OrderStageStore } from "../../store/port/order-stages.ts";
import type { ShopAddress } from "../api/address.ts";
import type { GraphqlClient } from "../api/graphql-client.ts";
import { type ContractNode, MAX_NODES_PER_QUERY, NODES } from "../api/operations/contracts.ts";
import type { OrderLineNode, OrderNode } from "../api/operations/orders.ts";
import { isPlatformError } from "../api/platform-error.ts";
import { requireShape } from "./shapes.ts";
import { platformRecordError } from "./values.ts";

/** Reads contracts and orders by gid. Calls at the same time share a query, which costs no more than for one object. */
export interface NodeLoader {
  /** @returns undefined for a contract that the platform does not have @throws PlatformError; SdsError `bad_record` */
  contract(shop: ShopAddress, gid: string): Promise<ContractNode | undefined>;
  /** @returns undefined for an order that the platform does not have, or does not show @throws PlatformError */
  order(shop: ShopAddress, gid: string): Promise<OrderNode | undefined>;
}

type LoadedNode = ContractNode | OrderNode;

export function createNodeLoader(client: GraphqlClient): NodeLoader {
  const groups = new Map<number, GroupCommit<string, LoadedNode | null>>();

  function groupOf(shop: ShopAddress): GroupCommit<string, LoadedNode | null> {
    const group = groups.get(shop.id) ?? createGroup(shop);
    groups.set(shop.id, group);
    return group;
  }

  function createGroup(shop: ShopAddress): GroupCommit<string, LoadedNode | null> {
    return createGroupCommit({
      async commit(gids) {
        const ids = [...new Set(gids)];
        const { nodes } = await client.query(shop, NODES, { ids });
        if (!Array.isArray(nodes)) throw platformRecordError("the platform sent no objects for their ids");
        const byGid = new Map(ids.map((id, index) => [id, nodes[index] ?? null]));
        return gids.map((gid) => byGid.get(gid) ?? null);
      },
      sizeOf: () => 1,
      maxSize: MAX_NODES_PER_QUERY,
      // If the platform refuses one id, the other ids are still read.
      failsAll: (thrown) => !(isPlatformError(thrown, "refused") && thrown.status === 200),
    });
  }

  return {
    async contract(shop, gid) {
      const node = await groupOf(shop).submit(gid);
      return isObject(node) && "revisionId" in node ? requireShape("a contract", node) : undefined;
    },
    async order(shop, gid) {
      const node = await groupOf(shop).submit(gid);
      return isObject(node) && "lineItems" in node ? node : undefined;
    },
  };
}

function isObject(node: LoadedNode | null): node is LoadedNode {
  return asObject(node) !== undefined;
}

/** An order without its lines. */
type OrderHead = Omit<OrderNode, "id" | "lineItems">;

/** Creates a loader that takes orders from the stage of the shop's load. `loader` reads everything else. */
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

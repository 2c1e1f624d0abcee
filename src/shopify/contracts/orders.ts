import { isCharged } from "../../domain/order.ts";
import type { OrderMoney } from "../../domain/platform-records.ts";
import type { ShopAddress } from "../api/address.ts";
import type { GraphqlClient } from "../api/graphql-client.ts";
import type { AttemptNode } from "../api/operations/billing.ts";
import type { Gid } from "../api/operations/operation.ts";
import {
  MAX_ORDERS_PER_QUERY,
  ORDER_LINES,
  ORDERS_BY_ID,
  type OrderContractsNode,
  type OrderLineNode,
  type OrderNode,
} from "../api/operations/orders.ts";
import { allNodes } from "../api/paging.ts";
import type { MirroredOrders } from "./cycles.ts";
import { type NoteRounding, orderMoney } from "./money.ts";

/** An order as it was read, and what it costs. */
interface ReadOrder {
  node: OrderNode;
  money: OrderMoney;
}

export interface OrderRequest {
  /** The order that began the contract. */
  checkout: string | undefined;
  attempts: readonly AttemptNode[];
  mirrored: MirroredOrders;
  /** Orders to read even if the mirror has them as charged. */
  changedOrders: readonly string[];
  /** A discount with this title is store credit. */
  creditTitle: string;
  /** What the contract costs, for orders that do not show their products. */
  expected: OrderMoney;
  noteRounding: NoteRounding;
}

export interface ContractOrders {
  /** undefined if there is no checkout, or it did not change. */
  checkout: ReadOrder | undefined;
  /** What an order costs; undefined for an order that cannot be read. */
  moneyOf(gid: string): OrderMoney | undefined;
}

/** Reads the orders of a contract. Charged orders that the mirror has are not read again. */
export async function readOrders(
  client: GraphqlClient,
  shop: ShopAddress,
  { checkout, attempts, mirrored, changedOrders, creditTitle, expected, noteRounding }: OrderRequest,
): Promise<ContractOrders> {
  const known = new Map(
    [...mirrored.values()].filter(({ status }) => isCharged(status)).map((order) => [order.shopifyId, order]),
  );
  const gids = new Set([...(checkout === undefined ? [] : [checkout]), ...attempts.flatMap(orderOf)]);
  const unknown = [...gids].filter((gid) => !known.has(gid) || changedOrders.includes(gid));
  const orders = new Map<string, ReadOrder>();
  for (let start = 0; start < unknown.length; start += MAX_ORDERS_PER_QUERY) {
    const ids = unknown.slice(start, start + MAX_ORDERS_PER_QUERY);
    for (const node of (await client.query(shop, ORDERS_BY_ID, { ids })).nodes) {
      if (node === null) continue;
      const money = orderMoney(await readLines(client, shop, node), creditTitle, noteRounding);
      orders.set(node.id, { node, money: withLines(money, expected) });
    }
  }
  return {
    checkout: checkout === undefined ? undefined : orders.get(checkout),
    moneyOf: (gid) => orders.get(gid)?.money ?? known.get(gid),
  };
}

function orderOf({ state }: AttemptNode): string[] {
  const isSuccess = state.__typename === "SubscriptionBillingAttemptSuccessState";
  return isSuccess && state.order !== null ? [state.order.id] : [];
}

/** The contract's lines stand in for lines whose products the app may not see. */
function withLines(money: OrderMoney, expected: OrderMoney): OrderMoney {
  return money.lines.length > 0 ? money : { ...money, lines: expected.lines };
}

function readLines(client: GraphqlClient, shop: ShopAddress, { id, lineItems }: OrderNode): Promise<OrderLineNode[]> {
  return allNodes(lineItems, async (after) => (await client.query(shop, ORDER_LINES, { id, after })).order?.lineItems);
}

/** The contracts that an order belongs to. Most orders of a shop belong to none. */
export async function readContractsOf(
  client: GraphqlClient,
  shop: ShopAddress,
  { id, lineItems }: OrderContractsNode,
): Promise<Set<string>> {
  const lines = await allNodes<{ contract: Gid | null }>(lineItems, async (after) => {
    const { order } = await client.query(shop, ORDER_LINES, { id, after });
    return order?.lineItems;
  });
  return new Set(lines.flatMap(({ contract }) => (contract === null ? [] : [contract.id])));
}

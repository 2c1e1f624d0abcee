import { isCharged } from "../../domain/decide/order.ts";
import type { OrderMoney } from "../../domain/records/platform-records.ts";
import type { Order } from "../../domain/resources.ts";
import type { ShopAddress } from "../api/address.ts";
import type { GraphqlClient } from "../api/graphql-client.ts";
import type { AttemptNode } from "../api/operations/attempts.ts";
import type { ContractNode } from "../api/operations/contracts.ts";
import { ORDER_LINES, type OrderLineNode, type OrderNode } from "../api/operations/orders.ts";
import { allNodes } from "../api/paging.ts";
import type { MirroredOrders } from "./cycles.ts";
import { type ChargedLine, type NoteRounding, orderMoney } from "./money.ts";
import type { NodeLoader } from "./node-loader.ts";
import { requireShape } from "./shapes.ts";

/** An order that was read, with all its lines. */
export interface ReadOrder {
  node: OrderNode;
  lines: OrderLineNode[];
}

/** Returns an order; undefined if the platform does not show the order. */
export type OrderReader = (gid: string) => Promise<OrderNode | undefined>;

interface OrderRequest {
  shop: ShopAddress;
  node: ContractNode;
  cycles: readonly { attempts: readonly AttemptNode[] }[];
  mirrored: MirroredOrders;
  /** Orders to read even if the mirror has them as charged. */
  changedOrders: readonly string[];
  /** Whether no order of the contract has shown a rate. Then at least the newest order is read, for its rate. */
  needsRate: boolean;
}

/** Reads the orders of a contract. Charged orders that the mirror has are not read again. @returns orders by gid */
export async function readOrders(
  client: GraphqlClient,
  readOrder: OrderReader,
  { shop, node: contract, cycles, mirrored, changedOrders, needsRate }: OrderRequest,
): Promise<Map<string, ReadOrder>> {
  const checkout = contract.originOrder?.id;
  const known = chargedOrders(mirrored);
  const charged = cycles.flatMap(({ attempts }) => attempts.flatMap(orderOf));
  const gids = new Set(checkout === undefined ? charged : [checkout, ...charged]);
  const unknown = [...gids].filter((gid) => !known.has(gid) || changedOrders.includes(gid));
  const newest = [...known.values()].toSorted((a, b) => Date.parse(b.billedAt) - Date.parse(a.billedAt))[0];
  if (needsRate && unknown.length === 0 && newest?.shopifyId != null) unknown.push(newest.shopifyId);
  const orders = new Map<string, ReadOrder>();
  const read = async (gid: string) => {
    const node = await readOrder(gid);
    if (node !== undefined) orders.set(gid, { node, lines: await readLines(client, shop, node) });
  };
  await Promise.all(unknown.map(read));
  return orders;
}

/** Returns the mirrored orders that were charged and have a gid, by gid. */
export function chargedOrders(mirrored: MirroredOrders): Map<string, Order> {
  const charged = [...mirrored.values()].filter(({ status }) => isCharged(status));
  return new Map(charged.flatMap((order) => (order.shopifyId === null ? [] : [[order.shopifyId, order]])));
}

export interface ContractOrders {
  /** The checkout and its cost; undefined if there is no checkout, or if the checkout has not changed. */
  checkout: { node: OrderNode; money: OrderMoney } | undefined;
  /** The cost of an order; undefined for an order that cannot be read. */
  moneyOf(gid: string): OrderMoney | undefined;
}

interface Costing {
  node: ContractNode;
  mirrored: MirroredOrders;
  /** A discount with this title is store credit. */
  creditTitle: string;
  /** The contract's expected cost. Its lines replace order lines whose products the app is not allowed to see. */
  expected: OrderMoney;
  noteRounding: NoteRounding;
}

/** Computes the costs of a contract's orders. For orders that were not read, uses the costs in the mirror. */
export function orderCosts(
  orders: ReadonlyMap<string, ReadOrder>,
  { node: contract, mirrored, creditTitle, expected, noteRounding }: Costing,
): ContractOrders {
  const known = chargedOrders(mirrored);
  const costs = new Map(
    [...orders].map(([gid, order]) => {
      const lines = ownLines(chargedLines(order), contract.id);
      const money = orderMoney(lines, creditTitle, noteRounding);
      // The contract's lines replace order lines whose products the app is not allowed to see.
      const isHidden = lines.every(({ variant, product }) => variant == null || product == null);
      return [gid, isHidden ? { ...money, lines: expected.lines } : money];
    }),
  );
  const moneyOf = (gid: string) => costs.get(gid) ?? known.get(gid);
  const checkout = orders.get(contract.originOrder?.id ?? "");
  const money = checkout && costs.get(checkout.node.id);
  return { checkout: checkout && money && { node: checkout.node, money }, moneyOf };
}

/** Returns the gid of a successful attempt's order, in a list. The list is empty if there is no such order. */
export function orderOf({ state }: AttemptNode): string[] {
  const isSuccess = state.__typename === "SubscriptionBillingAttemptSuccessState";
  return isSuccess && state.order != null ? [state.order.id] : [];
}

/**
 * Adds to each line the quantity that was charged. If the order was edited and something is left of it, this is the
 * current quantity. Otherwise, it is the ordered quantity: refunds reduce the current quantity, but not what was
 * charged.
 */
function chargedLines({ node: { edited }, lines }: ReadOrder): ChargedLine[] {
  const countsCurrent = edited === true && lines.some(({ currentQuantity }) => currentQuantity !== 0);
  return lines.map((line) => ({
    ...line,
    chargedQuantity: countsCurrent ? (line.currentQuantity ?? line.quantity) : line.quantity,
  }));
}

/**
 * Returns the order's lines that name this contract. If no line names it, returns the lines that name no contract. An
 * order can be for several contracts.
 */
function ownLines(lines: ChargedLine[], contractGid: string): ChargedLine[] {
  const own = lines.filter(({ contract }) => contract?.id === contractGid);
  return own.length > 0 ? own : lines.filter(({ contract }) => contract == null);
}

async function readLines(client: GraphqlClient, shop: ShopAddress, order: OrderNode): Promise<OrderLineNode[]> {
  const { id, lineItems } = requireShape("an order", order);
  return allNodes(lineItems, async (after) => {
    const data = await client.query(shop, ORDER_LINES, { id, after });
    return requireShape("lines of an order", data.order?.lineItems);
  });
}

/** Returns the contracts of an order; undefined if the platform does not show the order. @throws PlatformError */
export async function readContractsOf(
  { client, loader }: { client: GraphqlClient; loader: Pick<NodeLoader, "order"> },
  shop: ShopAddress,
  orderGid: string,
): Promise<string[] | undefined> {
  const order = await loader.order(shop, orderGid);
  if (order === undefined) return undefined;
  const lines = await readLines(client, shop, order);
  return [...new Set(lines.flatMap(({ contract }) => (contract == null ? [] : [contract.id])))];
}

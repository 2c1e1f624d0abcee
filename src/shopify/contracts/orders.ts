import { isCharged } from "../../domain/decide/order.ts";
import type { OrderMoney } from "../../domain/records/platform-records.ts";
import type { ShopAddress } from "../api/address.ts";
import type { GraphqlClient } from "../api/graphql-client.ts";
import type { AttemptNode } from "../api/operations/attempts.ts";
import type { ContractNode } from "../api/operations/contracts.ts";
import { ORDER_LINES, type OrderLineNode, type OrderNode } from "../api/operations/orders.ts";
import { allNodes } from "../api/paging.ts";
import type { MirroredOrders } from "./cycles.ts";
import { type NoteRounding, orderMoney } from "./money.ts";
import type { NodeLoader } from "./node-loader.ts";
import { requireShape } from "./shapes.ts";

/** An order that was read, and its amounts. */
interface ReadOrder {
  node: OrderNode;
  money: OrderMoney;
}

/** @returns undefined for an order that the platform does not show */
export type OrderReader = (gid: string) => Promise<OrderNode | undefined>;

interface OrderRequest {
  shop: ShopAddress;
  node: ContractNode;
  cycles: readonly { attempts: readonly AttemptNode[] }[];
  mirrored: MirroredOrders;
  /** Orders to read even if the mirror has them as charged. */
  changedOrders: readonly string[];
  /** A discount with this title is store credit. */
  creditTitle: string;
  /** The cost of the contract, for orders that do not show their products. */
  expected: OrderMoney;
  noteRounding: NoteRounding;
}

export interface ContractOrders {
  /** Gids of the orders that were read. */
  read: string[];
  /** undefined without a checkout, or for an unchanged checkout. */
  checkout: ReadOrder | undefined;
  /** The cost of an order; undefined for an order that cannot be read. */
  moneyOf(gid: string): OrderMoney | undefined;
}

/** Reads the orders of a contract. Charged orders that the mirror has are not read again. */
export async function readOrders(
  client: GraphqlClient,
  readOrder: OrderReader,
  { shop, node: contract, cycles, mirrored, changedOrders, creditTitle, expected, noteRounding }: OrderRequest,
): Promise<ContractOrders> {
  const checkout = contract.originOrder?.id;
  const known = new Map(
    [...mirrored.values()].filter(({ status }) => isCharged(status)).map((order) => [order.shopifyId, order]),
  );
  const charged = cycles.flatMap(({ attempts }) => attempts.flatMap(orderOf));
  const gids = new Set(checkout === undefined ? charged : [checkout, ...charged]);
  const unknown = [...gids].filter((gid) => !known.has(gid) || changedOrders.includes(gid));
  const orders = new Map<string, ReadOrder>();
  const read = async (gid: string) => {
    const node = await readOrder(gid);
    if (node === undefined) return;
    const lines = ownLines(await readLines(client, shop, node), contract.id);
    const money = orderMoney(lines, creditTitle, noteRounding);
    // The contract's lines stand in for lines whose products the app may not see.
    orders.set(gid, { node, money: money.lines.length > 0 ? money : { ...money, lines: expected.lines } });
  };
  await Promise.all(unknown.map(read));
  return {
    read: [...orders.keys()],
    checkout: checkout === undefined ? undefined : orders.get(checkout),
    moneyOf: (gid) => orders.get(gid)?.money ?? known.get(gid),
  };
}

/** Returns the order of a successful attempt, in a list; else an empty list. */
export function orderOf({ state }: AttemptNode): string[] {
  const isSuccess = state.__typename === "SubscriptionBillingAttemptSuccessState";
  return isSuccess && state.order !== null ? [state.order.id] : [];
}

/** Returns the order's lines for this contract, else for no contract. An order can be for several contracts. */
function ownLines(lines: OrderLineNode[], contractGid: string): OrderLineNode[] {
  const own = lines.filter(({ contract }) => contract?.id === contractGid);
  return own.length > 0 ? own : lines.filter(({ contract }) => contract === null);
}

async function readLines(client: GraphqlClient, shop: ShopAddress, order: OrderNode): Promise<OrderLineNode[]> {
  const { id, lineItems } = requireShape("an order", order);
  return allNodes(lineItems, async (after) => {
    const data = await client.query(shop, ORDER_LINES, { id, after });
    return requireShape("lines of an order", data.order?.lineItems);
  });
}

/** Returns the contracts of an order. Most orders of a shop belong to no contract. @throws PlatformError */
export async function readContractsOf(
  { client, loader }: { client: GraphqlClient; loader: Pick<NodeLoader, "order"> },
  shop: ShopAddress,
  orderGid: string,
): Promise<string[]> {
  const order = await loader.order(shop, orderGid);
  const lines = order === undefined ? [] : await readLines(client, shop, order);
  return [...new Set(lines.flatMap(({ contract }) => (contract === null ? [] : [contract.id])))];
}

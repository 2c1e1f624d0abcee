import { orderId } from "../../domain/ids.ts";
import type { Order } from "../../domain/resources.ts";

/** The search for a contract's orders ends after this many consecutive cycles without an order. */
export const MAX_GAP = 12;
/** Number of cycles in the first read: enough for most contracts. Each cycle costs a hash and a look-up. */
const FIRST_READ = 16;

/** A range of cycles up to `end`, which is excluded. `ids` maps internal ids of orders to their cycle numbers. */
interface CycleRange {
  ids: Map<string, number>;
  end: number;
}

/** Computes the internal ids of a contract's orders for `count` cycles from `start`. Cycle 0 is the checkout. */
function orderIdsOf(
  domain: string,
  contractGid: string,
  start: number,
  count = start === 0 ? FIRST_READ : start,
): CycleRange {
  const ids = new Map<string, number>();
  for (let cycle = start; cycle < start + count; cycle += 1) {
    ids.set(orderId(domain, contractGid, cycle === 0 ? "checkout" : "recurring", cycle), cycle);
  }
  return { ids, end: start + count };
}

function mayHaveOrders(orders: ReadonlyMap<number, Order>, end: number): boolean {
  return Math.max(0, ...orders.keys()) + MAX_GAP >= end;
}

/** Loads all orders of a contract, by cycle. @param load returns the existing orders with these ids */
export async function contractOrders(
  domain: string,
  contractGid: string,
  load: (ids: string[]) => Order[] | Promise<Order[]>,
): Promise<Map<number, Order>> {
  const orders = new Map<number, Order>();
  let end = 0;
  do {
    const range = orderIdsOf(domain, contractGid, end);
    for (const order of await load([...range.ids.keys()])) orders.set(order.cycleNumber, order);
    end = range.end;
  } while (mayHaveOrders(orders, end));
  return orders;
}

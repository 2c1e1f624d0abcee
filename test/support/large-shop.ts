import type { ConnectedShop } from "./connected.ts";
import type { Fault, FaultInfo } from "./platform/faults.ts";

const COUNTS: Record<string, string> = { CustomersCount: "customersCount", OrdersCount: "ordersCount" };

/**
 * Makes the platform report many customers and orders for a small shop. So the program loads the shop with bulk
 * operations.
 * @param others gives the faults of all other operations
 */
export function seemLarge(
  { platform }: Pick<ConnectedShop, "platform">,
  others: (info: FaultInfo) => Fault = () => undefined,
) {
  platform.fault = (info) => {
    const field = COUNTS[info.operation];
    if (field === undefined) return others(info);
    return { status: 200, body: JSON.stringify({ data: { [field]: { count: 5_000 } } }) };
  };
}

import type { ConnectedShop } from "./connected.ts";
import type { Fault, FaultInfo } from "./platform/faults.ts";

const COUNTS: Record<string, string> = { CustomersCount: "customersCount", OrdersCount: "ordersCount" };

/**
 * Makes the platform say that a small shop has many customers and orders, so that it is loaded with bulk operations.
 * @param others faults of all other operations
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

import type { Resource } from "../../domain/resources.ts";

export const RESOURCE_NAMES: Record<Resource, { one: string; many: string }> = {
  subscriptions: { one: "Subscription", many: "Subscriptions" },
  customers: { one: "Customer", many: "Customers" },
  orders: { one: "Order", many: "Orders" },
};

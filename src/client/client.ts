import { type ClientOptions, createRequester } from "./requester.ts";
import { createResourceReader, type ResourceReader } from "./resource-reader.ts";
import type { Customer, Order, Subscription } from "./resources.ts";

/** Ids are internal ids or gids. A row must fit all filters. */
export interface SubscriptionFilter {
  shopifyId?: string;
  customerId?: string;
  status?: Subscription["status"];
}

export interface CustomerFilter {
  shopifyId?: string;
}

export interface OrderFilter {
  shopifyId?: string;
  customerId?: string;
  contractId?: string;
  status?: Order["status"];
}

/** The API of the shop that the key belongs to. */
export interface Client {
  subscriptions: ResourceReader<Subscription, SubscriptionFilter>;
  customers: ResourceReader<Customer, CustomerFilter>;
  orders: ResourceReader<Order, OrderFilter>;
}

/** @throws TypeError for wrong options */
export function createClient(options: ClientOptions): Client {
  const request = createRequester(options);
  return {
    subscriptions: createResourceReader("subscriptions", request),
    customers: createResourceReader("customers", request),
    orders: createResourceReader("orders", request),
  };
}

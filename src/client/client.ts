import { type ClientOptions, createRequester } from "./requester.ts";
import {
  createResourceReader,
  type IncludeFields,
  type Page,
  type ReadOptions,
  type ResourceReader,
} from "./resource-reader.ts";
import type { Customer, Order, Subscription, SubscriptionWithFields } from "./resources.ts";

/**
 * Ids are internal ids or gids. A row must fit every filter. If `status` has several values, the row must have one of
 * them.
 */
export interface SubscriptionFilter {
  shopifyId?: string;
  customerId?: string;
  status?: Subscription["status"] | readonly Subscription["status"][];
}

export interface CustomerFilter {
  shopifyId?: string;
}

export interface OrderFilter {
  shopifyId?: string;
  customerId?: string;
  contractId?: string;
  status?: Order["status"] | readonly Order["status"][];
}

type PlainQuery = SubscriptionFilter & ReadOptions & { include?: undefined };
type QueryWithFields = SubscriptionFilter & ReadOptions & IncludeFields;

/** Reads subscriptions. With `include: ["customFields"]`, each row has its custom fields. */
export interface SubscriptionReader extends ResourceReader<Subscription, SubscriptionFilter> {
  rows(query: QueryWithFields): AsyncIterable<SubscriptionWithFields>;
  rows(query?: PlainQuery): AsyncIterable<Subscription>;
  pages(query: QueryWithFields & { cursor?: string }): AsyncIterable<Page<SubscriptionWithFields>>;
  pages(query?: PlainQuery & { cursor?: string }): AsyncIterable<Page<Subscription>>;
  changes(since: string | Date, query: QueryWithFields): AsyncIterable<Page<SubscriptionWithFields>>;
  changes(since: string | Date, query?: PlainQuery): AsyncIterable<Page<Subscription>>;
  get(id: string, options: { signal?: AbortSignal } & IncludeFields): Promise<SubscriptionWithFields | undefined>;
  get(id: string, options?: { signal?: AbortSignal; include?: undefined }): Promise<Subscription | undefined>;
}

/** The API of the shop that the key belongs to. */
export interface Client {
  subscriptions: SubscriptionReader;
  customers: ResourceReader<Customer, CustomerFilter>;
  orders: ResourceReader<Order, OrderFilter>;
}

/** @throws TypeError for wrong options */
export function createClient(options: ClientOptions): Client {
  const request = createRequester(options);
  return {
    // The server adds the custom fields, so the same functions return both kinds of rows.
    subscriptions: createResourceReader("subscriptions", request) as SubscriptionReader,
    customers: createResourceReader("customers", request),
    orders: createResourceReader("orders", request),
  };
}

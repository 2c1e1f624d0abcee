import appSubscriptionSample from "../platform-webhooks/app_subscriptions__update.json";
import customerSample from "../platform-webhooks/customers__create.json";
import orderSample from "../platform-webhooks/orders__create.json";
import shopSample from "../platform-webhooks/shop__update.json";
import type { Cycle } from "./cycles.ts";
import type { Exact } from "./exact-json.ts";
import { fixedAmount } from "./money.ts";
import type { AttemptRow, ContractRow, CustomerRow, OrderRow } from "./rows.ts";
import type { AppSubscription } from "./shop-options.ts";
import type { ShopRows } from "./shop-rows.ts";
import { zoned } from "./timestamps.ts";
import { type OrderLine, orderTotals } from "./totals.ts";

/*
 * The bodies of webhooks: the platform's samples with the values of the model. All other numbers and addresses of a
 * sample are traps: a receiver must not read them.
 */

function money(minor: number, currency: string): Exact {
  const amount = { amount: fixedAmount(minor, currency), currency_code: currency };
  return { shop_money: amount, presentment_money: amount };
}

/** Each amount as a text, and as a set of amounts in the currencies of shop and customer. */
function amounts(minors: Record<string, number>, currency: string): Record<string, Exact> {
  return Object.fromEntries(
    Object.entries(minors).flatMap(([key, minor]) => [
      [key, fixedAmount(minor, currency)],
      [`${key}_set`, money(minor, currency)],
    ]),
  );
}

export function customerBody(shop: ShopRows, customer: CustomerRow): Exact {
  return {
    ...customerSample,
    id: shop.idOf(customer.n),
    created_at: zoned(customer.createdAt),
    updated_at: zoned(customer.updatedAt),
    first_name: customer.firstName,
    last_name: customer.lastName,
    email: customer.email,
    currency: shop.currency,
    admin_graphql_api_id: shop.gid(customer),
    default_address: addressBody(shop, customer),
  };
}

function addressBody(shop: ShopRows, customer: CustomerRow): Exact {
  const { firstName: first_name, lastName: last_name } = customer;
  const name = [first_name, last_name].filter((part) => part !== null).join(" ");
  return { ...customerSample.default_address, customer_id: shop.idOf(customer.n), first_name, last_name, name };
}

export function deletedCustomerBody(shop: ShopRows, customer: CustomerRow): Exact {
  return { id: shop.idOf(customer.n), tax_exemptions: [], admin_graphql_api_id: shop.gid(customer) };
}

export function mergeBody(shop: ShopRows, kept: CustomerRow, gone: CustomerRow): Exact {
  return {
    admin_graphql_api_customer_kept_id: shop.gid(kept),
    admin_graphql_api_customer_deleted_id: shop.gid(gone),
    admin_graphql_api_job_id: null,
    status: "completed",
    errors: [],
  };
}

export function consentBody(shop: ShopRows, customer: CustomerRow): Exact {
  const consent = {
    state: customer.marketing.toLowerCase(),
    opt_in_level: "single_opt_in",
    consent_updated_at: zoned(customer.marketingAt),
  };
  return { customer_id: shop.idOf(customer.n), email_address: customer.email, email_marketing_consent: consent };
}

export function contractBody(shop: ShopRows, contract: ContractRow): Exact {
  const policy = { interval: contract.interval.toLowerCase(), interval_count: contract.intervalCount };
  const { originOrder } = contract;
  return {
    admin_graphql_api_id: shop.gid(contract),
    id: shop.idOf(contract.n),
    billing_policy: { ...policy, min_cycles: null, max_cycles: contract.maxCycles },
    currency_code: contract.currency,
    customer_id: shop.idOf(contract.customer.n),
    admin_graphql_api_customer_id: shop.gid(contract.customer),
    delivery_policy: policy,
    status: contract.status.toLowerCase(),
    admin_graphql_api_origin_order_id: originOrder === null ? null : shop.gid(originOrder),
    origin_order_id: originOrder === null ? null : shop.idOf(originOrder.n),
    revision_id: shop.revisionOf(contract),
  };
}

export function attemptBody(shop: ShopRows, attempt: AttemptRow): Exact {
  return {
    id: shop.attemptIds ? shop.idOf(attempt.n) : null,
    admin_graphql_api_id: shop.attemptIds ? shop.gid(attempt) : null,
    idempotency_key: shop.keyOf(attempt),
    order_id: attempt.order === null ? null : shop.idOf(attempt.order.n),
    admin_graphql_api_order_id: attempt.order === null ? null : shop.gid(attempt.order),
    subscription_contract_id: shop.idOf(attempt.contract.n),
    admin_graphql_api_subscription_contract_id: shop.gid(attempt.contract),
    ready: attempt.completedAt !== null,
    error_message: attempt.code === null ? null : `The attempt ended with ${attempt.code}.`,
    // GraphQL writes the code in capitals. Receivers have to accept both forms.
    error_code: attempt.code === null ? null : attempt.code.toLowerCase(),
  };
}

export function cycleBody(
  shop: ShopRows,
  { contract, index, startAt, endAt, expectedAt, skipped, edited }: Cycle,
): Exact {
  return {
    subscription_contract_id: shop.idOf(contract.n),
    cycle_start_at: zoned(startAt),
    cycle_end_at: zoned(endAt),
    cycle_index: index,
    contract_edit: null,
    billing_attempt_expected_date: zoned(expectedAt),
    skipped,
    edited,
  };
}

export function orderBody(shop: ShopRows, order: OrderRow): Exact {
  const { currency, customer, cancelledAt } = order;
  const { lines, gross, discount, subtotal } = orderTotals(order);
  const email = customer?.email ?? null;
  const address = customer === null ? null : addressBody(shop, customer);
  const now = { current_subtotal_price: subtotal, current_total_discounts: discount, current_total_price: subtotal };
  const atFirst = { subtotal_price: subtotal, total_discounts: discount, total_price: subtotal };
  const rest = { total_line_items_price: gross, current_total_tax: 0, total_tax: 0 };
  return {
    ...orderSample,
    ...amounts({ ...now, ...atFirst, ...rest }, currency),
    id: shop.idOf(order.n),
    admin_graphql_api_id: shop.gid(order),
    cancel_reason: cancelledAt === null ? null : "customer",
    cancelled_at: zoned(cancelledAt),
    contact_email: email,
    created_at: zoned(order.createdAt),
    currency,
    discount_codes: order.discounts
      .filter(({ kind }) => kind === "code")
      .map(({ title, perLine }) => ({ code: title, amount: discountAmount(perLine, currency), type: "fixed_amount" })),
    email,
    financial_status: order.financial.toLowerCase(),
    name: `#${order.number}`,
    number: order.number - 1000,
    order_number: order.number,
    presentment_currency: currency,
    processed_at: zoned(order.processedAt),
    source_name: order.source,
    test: order.test,
    updated_at: zoned(order.updatedAt),
    customer: customer === null ? null : customerBody(shop, customer),
    discount_applications: order.discounts.map(({ kind, title, perLine }) => ({
      target_type: "line_item",
      type: kind === "code" ? "discount_code" : kind,
      value: discountAmount(perLine, currency),
      value_type: "fixed_amount",
      allocation_method: "across",
      target_selection: "all",
      title,
    })),
    billing_address: address,
    shipping_address: address,
    line_items: lines.map((line) => lineBody(shop, line, currency)),
    shipping_lines: [],
  };
}

function lineBody(shop: ShopRows, { line, n, discount, allocations }: OrderLine, currency: string): Exact {
  return {
    ...orderSample.line_items[0],
    ...amounts({ price: line.price, total_discount: discount }, currency),
    id: shop.idOf(n),
    admin_graphql_api_id: `gid://shopify/LineItem/${shop.idOf(n)}`,
    current_quantity: line.quantity,
    name: line.variantTitle === null ? line.title : `${line.title} - ${line.variantTitle}`,
    product_id: numberOf(line.product),
    quantity: line.quantity,
    title: line.title,
    variant_id: numberOf(line.variant),
    variant_title: line.variantTitle,
    discount_allocations: allocations.map(({ index, amount }) => ({
      ...amounts({ amount }, currency),
      discount_application_index: index,
    })),
  };
}

export function appSubscriptionBody(
  shop: ShopRows,
  { n, name, status, planHandle, createdAt }: AppSubscription,
): Exact {
  return {
    app_subscription: {
      ...appSubscriptionSample.app_subscription,
      admin_graphql_api_id: `gid://shopify/AppSubscription/${shop.idOf(n)}`,
      name,
      status,
      admin_graphql_api_shop_id: `gid://shopify/Shop/${shop.number}`,
      created_at: zoned(createdAt),
      updated_at: zoned(shop.now()),
      plan_handle: planHandle,
    },
  };
}

export function scopesBody(shop: ShopRows, previous: readonly string[]): Exact {
  const shopId = `gid://shopify/Shop/${shop.number}`;
  return { id: shop.number, shop_id: shopId, previous, current: shop.scopes, updated_at: zoned(shop.now()) };
}

export function shopBody(shop: ShopRows): Exact {
  return {
    ...shopSample,
    id: shop.number,
    name: shop.name,
    email: `owner@${shop.domain}`,
    domain: shop.domain,
    updated_at: zoned(shop.now()),
    currency: shop.currency,
    iana_timezone: shop.timezone,
    myshopify_domain: shop.domain,
    enabled_presentment_currencies: [shop.currency],
  };
}

/** The body of a compliance topic about a person. It has the number of the customer, but no gid. */
export function personBody(
  shop: ShopRows,
  customer: CustomerRow,
  ordersKey: string,
  orders: readonly OrderRow[],
  more: Record<string, Exact> = {},
): Exact {
  const person = { id: shop.idOf(customer.n), email: customer.email, phone: null };
  return {
    shop_id: shop.number,
    shop_domain: shop.domain,
    customer: person,
    [ordersKey]: orders.map(({ n }) => shop.idOf(n)),
    ...more,
  };
}

function numberOf(gid: string | null): bigint | null {
  const digits = /\/(\d+)$/.exec(gid ?? "")?.[1];
  return digits === undefined ? null : BigInt(digits);
}

function discountAmount(perLine: readonly number[], currency: string): string {
  const total = perLine.reduce((sum, amount) => sum + amount, 0);
  return fixedAmount(total, currency);
}

import {
  ADDRESS_CONSTANTS,
  LINE_CONSTANTS,
  ORDER_CONSTANTS,
  SHOP_CONSTANTS,
  ZERO_ORDER_AMOUNTS,
} from "./constant-fields.ts";
import type { Cycle } from "./cycles.ts";
import type { Exact } from "./exact-json.ts";
import { fixedAmount } from "./money.ts";
import type { AttemptRow, ContractRow, CustomerRow, OrderRow } from "./rows.ts";
import type { AppSubscription, ShopRows } from "./shop-rows.ts";
import { zoned } from "./timestamps.ts";
import { orderTotals } from "./totals.ts";

function money(minor: number, currency: string): Exact {
  const amount = { amount: fixedAmount(minor, currency), currency_code: currency };
  return { shop_money: amount, presentment_money: amount };
}

export function customerBody(shop: ShopRows, customer: CustomerRow): { readonly [key: string]: Exact } {
  return {
    id: shop.idOf(customer.n),
    created_at: zoned(customer.createdAt),
    updated_at: zoned(customer.updatedAt),
    first_name: customer.firstName,
    last_name: customer.lastName,
    state: "disabled",
    note: null,
    verified_email: true,
    multipass_identifier: null,
    tax_exempt: false,
    email: customer.email,
    phone: null,
    currency: shop.currency,
    addresses: [],
    tax_exemptions: [],
    admin_graphql_api_id: shop.gid(customer),
    default_address: addressBody(shop, customer),
  };
}

function addressBody(shop: ShopRows, customer: CustomerRow): Exact {
  const { firstName: first_name, lastName: last_name } = customer;
  const name = [first_name, last_name].filter((part) => part !== null).join(" ");
  return { id: 12_321, customer_id: shop.idOf(customer.n), ...ADDRESS_CONSTANTS, first_name, last_name, name };
}

export function deletedCustomerBody(shop: ShopRows, customer: CustomerRow): Exact {
  return { id: shop.idOf(customer.n), tax_exemptions: [], admin_graphql_api_id: shop.gid(customer) };
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
    billing_policy: { ...policy, min_cycles: null, max_cycles: null },
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
    // GraphQL writes it in capitals. Receivers have to accept both.
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
  const { currency } = order;
  const { lines, gross, discount, subtotal } = orderTotals(order);
  const email = order.customer?.email ?? null;
  const address = order.customer === null ? null : addressBody(shop, order.customer);
  return {
    id: shop.idOf(order.n),
    admin_graphql_api_id: shop.gid(order),
    ...ORDER_CONSTANTS,
    ...Object.fromEntries(ZERO_ORDER_AMOUNTS.map((key) => [key, money(0, currency)])),
    app_id: null,
    cancel_reason: order.cancelledAt === null ? null : "customer",
    cancelled_at: zoned(order.cancelledAt),
    confirmed: true,
    contact_email: email,
    created_at: zoned(order.createdAt),
    currency,
    current_subtotal_price: fixedAmount(subtotal, currency),
    current_subtotal_price_set: money(subtotal, currency),
    current_total_discounts: fixedAmount(discount, currency),
    current_total_discounts_set: money(discount, currency),
    current_total_price: fixedAmount(subtotal, currency),
    current_total_price_set: money(subtotal, currency),
    discount_codes: order.discounts
      .filter(({ kind }) => kind === "code")
      .map(({ title, perLine }) => ({
        code: title,
        amount: fixedAmount(sum(perLine), currency),
        type: "fixed_amount",
      })),
    email,
    financial_status: order.financial.toLowerCase(),
    fulfillment_status: null,
    name: `#${order.number}`,
    note: null,
    number: order.number - 1000,
    order_number: order.number,
    presentment_currency: currency,
    processed_at: zoned(order.processedAt),
    source_name: order.source,
    subtotal_price: fixedAmount(subtotal, currency),
    subtotal_price_set: money(subtotal, currency),
    tags: "",
    test: order.test,
    total_discounts: fixedAmount(discount, currency),
    total_discounts_set: money(discount, currency),
    total_line_items_price: fixedAmount(gross, currency),
    total_line_items_price_set: money(gross, currency),
    total_price: fixedAmount(subtotal, currency),
    total_price_set: money(subtotal, currency),
    total_tax: fixedAmount(0, currency),
    updated_at: zoned(order.updatedAt),
    customer: order.customer === null ? null : customerBody(shop, order.customer),
    discount_applications: order.discounts.map(({ kind, title, perLine }) => {
      const value = fixedAmount(sum(perLine), currency);
      const type = kind === "code" ? "discount_code" : kind;
      return {
        target_type: "line_item",
        type,
        value,
        value_type: "fixed_amount",
        allocation_method: "across",
        target_selection: "all",
        title,
      };
    }),
    fulfillments: [],
    billing_address: address,
    shipping_address: address,
    line_items: lines.map(({ line, n, discount: off, allocations }) => ({
      id: shop.idOf(n),
      admin_graphql_api_id: `gid://shopify/LineItem/${shop.idOf(n)}`,
      ...LINE_CONSTANTS,
      current_quantity: line.quantity,
      gift_card: false,
      name: line.variantTitle === null ? line.title : `${line.title} - ${line.variantTitle}`,
      price: fixedAmount(line.price, currency),
      price_set: money(line.price, currency),
      product_id: numberOf(line.product),
      properties: [],
      quantity: line.quantity,
      title: line.title,
      total_discount: fixedAmount(off, currency),
      total_discount_set: money(off, currency),
      variant_id: numberOf(line.variant),
      variant_title: line.variantTitle,
      tax_lines: [],
      discount_allocations: allocations.map(({ index, amount }) => ({
        amount: fixedAmount(amount, currency),
        amount_set: money(amount, currency),
        discount_application_index: index,
      })),
    })),
    refunds: [],
    shipping_lines: [],
  };
}

export function appSubscriptionBody(
  shop: ShopRows,
  { n, name, status, planHandle, createdAt }: AppSubscription,
): Exact {
  return {
    app_subscription: {
      admin_graphql_api_id: `gid://shopify/AppSubscription/${shop.idOf(n)}`,
      name,
      status,
      admin_graphql_api_shop_id: `gid://shopify/Shop/${shop.number}`,
      created_at: zoned(createdAt),
      updated_at: zoned(shop.now()),
      currency: "USD",
      capped_amount: null,
      price: "10.00",
      interval: "every_30_days",
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
    id: shop.number,
    ...SHOP_CONSTANTS,
    name: shop.name,
    email: `owner@${shop.domain}`,
    domain: shop.domain,
    country: "US",
    primary_locale: "en",
    created_at: null,
    updated_at: zoned(shop.now()),
    currency: shop.currency,
    iana_timezone: shop.timezone,
    shop_owner: "John Smith",
    plan_display_name: "Shopify Plus",
    plan_name: "enterprise",
    myshopify_domain: shop.domain,
    enabled_presentment_currencies: [shop.currency],
  };
}

/** The compliance topics name the person only by number. */
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

function sum(parts: readonly number[]): number {
  return parts.reduce((total, part) => total + part, 0);
}

import type { Page } from "./paging.ts";

/** The platform's API is asked in this version and no other; each stands for a year. */
export const API_VERSION = "2026-07";

/** A query or mutation with the types of what goes in and comes out. */
export interface Operation<Variables, Answer> {
  name: string;
  text: string;
  /** Only for the types' sake. */
  types?: { variables: Variables; answer: Answer };
}

function operation<Variables, Answer>(text: string): Operation<Variables, Answer> {
  const name = /(?:query|mutation) (\w+)/.exec(text)?.[1] ?? "";
  return { name, text: text.replaceAll(/\s+/g, " ").trim() };
}

interface Money {
  amount: string;
  currencyCode: string;
}

interface ShopMoney {
  shopMoney: Money;
}

interface Gid {
  id: string;
}

export interface CustomerNode {
  id: string;
  // These are absent where the app may not see them.
  firstName?: string | null;
  lastName?: string | null;
  updatedAt: string;
  defaultEmailAddress?: { emailAddress: string; marketingState: string; marketingUpdatedAt: string | null } | null;
}

const CUSTOMER = "id firstName lastName updatedAt defaultEmailAddress { emailAddress marketingState marketingUpdatedAt }";

export interface ContractLineNode {
  title: string;
  quantity: number;
  productId: string | null;
  variantId: string | null;
  sellingPlanId: string | null;
  currentPrice: Money;
  lineDiscountedPrice: Money;
}

const LINE = "title quantity productId variantId sellingPlanId currentPrice { amount currencyCode } lineDiscountedPrice { amount currencyCode }";

export interface ContractNode {
  id: string;
  status: string;
  revisionId: string;
  createdAt: string;
  updatedAt: string;
  nextBillingDate: string | null;
  customer: CustomerNode | null;
  billingPolicy: { interval: string; intervalCount: number };
  originOrder: Gid | null;
  lines: Page<ContractLineNode>;
}

const CONTRACT = `id status revisionId createdAt updatedAt nextBillingDate customer { ${CUSTOMER} } billingPolicy { interval intervalCount } originOrder { id }
  lines(first: 10) { pageInfo { hasNextPage endCursor } nodes { ${LINE} } }`;

type AttemptState =
  | { __typename: "SubscriptionBillingAttemptSuccessState"; order: Gid | null }
  | { __typename: "SubscriptionBillingAttemptFailedState"; error: { general?: string; payment?: string; inventory?: string } }
  | { __typename: "SubscriptionBillingAttemptActionRequiredState" | "SubscriptionBillingAttemptPendingState" };

export interface AttemptNode {
  createdAt: string;
  completedAt: string | null;
  state: AttemptState;
}

// Each kind of error has codes of its own type, so that each needs a name of its own.
const ATTEMPT = `createdAt completedAt state { __typename
  ... on SubscriptionBillingAttemptSuccessState { order { id } }
  ... on SubscriptionBillingAttemptFailedState { error {
    ... on SubscriptionBillingAttemptGeneralError { general: code }
    ... on SubscriptionBillingAttemptPaymentError { payment: code }
    ... on SubscriptionBillingAttemptInventoryError { inventory: code } } } }`;

export interface CycleNode {
  cycleIndex: number;
  skipped: boolean;
  billingAttemptExpectedDate: string;
  billingAttempts: Page<AttemptNode>;
}

const CYCLES = `subscriptionBillingCycles(contractId: $id, first: $count, billingCyclesIndexRangeSelector: {startIndex: $from, endIndex: $to}, sortKey: CYCLE_INDEX) {
  nodes { cycleIndex skipped billingAttemptExpectedDate billingAttempts(first: 6) { pageInfo { hasNextPage endCursor } nodes { ${ATTEMPT} } } } }`;

/** Cycles that one query reads, at most. */
export const CYCLES_AT_ONCE = 12;

export interface OrderLineNode {
  title: string;
  quantity: number;
  contract: Gid | null;
  // Absent where the app may not see products, null where they were deleted.
  variant?: Gid | null;
  product?: Gid | null;
  originalUnitPriceSet: ShopMoney;
  discountAllocations: { allocatedAmountSet: ShopMoney; discountApplication: { title?: string; code?: string } }[];
}

const ORDER_LINE = `title quantity contract { id } variant { id } product { id } originalUnitPriceSet { shopMoney { amount currencyCode } }
  discountAllocations { allocatedAmountSet { shopMoney { amount currencyCode } } discountApplication {
    ... on ManualDiscountApplication { title } ... on AutomaticDiscountApplication { title }
    ... on ScriptDiscountApplication { title } ... on DiscountCodeApplication { code } } }`;

export interface OrderNode {
  id: string;
  createdAt: string;
  processedAt: string | null;
  displayFinancialStatus: string | null;
  lineItems: Page<OrderLineNode>;
}

/** Orders that one query reads: their lines make them dear. */
export const ORDERS_AT_ONCE = 5;

/** An order as far as it tells which contracts it is of. */
export interface OrderOfContracts {
  id: string;
  lineItems: Page<{ contract: Gid | null }>;
}

const ORDER_CONTRACTS = "id lineItems(first: 50) { pageInfo { hasNextPage endCursor } nodes { contract { id } } }";

export interface InstallationAnswer {
  currentAppInstallation: {
    accessScopes: { handle: string }[];
    activeSubscriptions: { name: string; status: string }[];
    allSubscriptions: { nodes: { name: string }[] };
  };
  shop: { myshopifyDomain: string; currencyCode: string };
}

export const INSTALLATION = operation<Record<string, never>, InstallationAnswer>(`query Installation {
  currentAppInstallation { accessScopes { handle } activeSubscriptions { name status } allSubscriptions(first: 1) { nodes { name } } }
  shop { myshopifyDomain currencyCode } }`);

/** A page of whatever changed. `query` is a filter of the platform, null for everything. */
interface PageVariables {
  after: string | null;
  query: string | null;
}

export const CUSTOMERS = operation<PageVariables, { customers: Page<CustomerNode> }>(`query Customers($after: String, $query: String) {
  customers(first: 100, after: $after, query: $query, sortKey: UPDATED_AT) { pageInfo { hasNextPage endCursor } nodes { ${CUSTOMER} } } }`);

export const ALL_CUSTOMERS = operation<PageVariables, { customers: Page<CustomerNode> }>(`query AllCustomers($after: String, $query: String) {
  customers(first: 100, after: $after, query: $query, sortKey: ID) { pageInfo { hasNextPage endCursor } nodes { ${CUSTOMER} } } }`);

export const CUSTOMER_BY_ID = operation<{ id: string }, { customer: CustomerNode | null }>(`query Customer($id: ID!) { customer(id: $id) { ${CUSTOMER} } }`);

export const CUSTOMERS_COUNT = operation<Record<string, never>, { customersCount: { count: number } | null }>(
  "query CustomersCount { customersCount(limit: null) { count } }",
);

export const CONTRACTS = operation<PageVariables, { subscriptionContracts: Page<ContractNode> }>(`query Contracts($after: String, $query: String) {
  subscriptionContracts(first: 15, after: $after, query: $query, sortKey: UPDATED_AT) { pageInfo { hasNextPage endCursor } nodes { ${CONTRACT} } } }`);

export const ALL_CONTRACTS = operation<PageVariables, { subscriptionContracts: Page<ContractNode> }>(`query AllContracts($after: String, $query: String) {
  subscriptionContracts(first: 15, after: $after, query: $query, sortKey: CREATED_AT) { pageInfo { hasNextPage endCursor } nodes { ${CONTRACT} } } }`);

/** When the youngest contract was made, to tell how far a walk by age is. */
export const NEWEST_CONTRACT = operation<Record<string, never>, { subscriptionContracts: { nodes: { createdAt: string }[] } }>(
  "query NewestContract { subscriptionContracts(first: 1, sortKey: CREATED_AT, reverse: true) { nodes { createdAt } } }",
);

export const CONTRACT_LINES = operation<{ id: string; after: string | null }, { subscriptionContract: { lines: Page<ContractLineNode> } | null }>(
  `query ContractLines($id: ID!, $after: String) { subscriptionContract(id: $id) { lines(first: 100, after: $after) { pageInfo { hasNextPage endCursor } nodes { ${LINE} } } } }`,
);

interface CyclesVariables {
  id: string;
  from: number;
  to: number;
  /** As many as that is. */
  count: number;
}

interface CyclesAnswer {
  subscriptionBillingCycles: { nodes: CycleNode[] };
}

export const BILLING_CYCLES = operation<CyclesVariables, CyclesAnswer>(`query BillingCycles($id: ID!, $from: Int!, $to: Int!, $count: Int!) { ${CYCLES} }`);

export const CONTRACT_WITH_CYCLES = operation<CyclesVariables, CyclesAnswer & { subscriptionContract: ContractNode | null }>(
  `query ContractWithCycles($id: ID!, $from: Int!, $to: Int!, $count: Int!) { subscriptionContract(id: $id) { ${CONTRACT} } ${CYCLES} }`,
);

export const CONTRACT_EXISTS = operation<{ id: string }, { subscriptionContract: Gid | null }>(
  "query ContractExists($id: ID!) { subscriptionContract(id: $id) { id } }",
);

export const CYCLE_ATTEMPTS = operation<
  { id: string; index: number; after: string | null },
  { subscriptionBillingCycle: { billingAttempts: Page<AttemptNode> } | null }
>(`query CycleAttempts($id: ID!, $index: Int!, $after: String) {
  subscriptionBillingCycle(billingCycleInput: {contractId: $id, selector: {index: $index}}) {
    billingAttempts(first: 50, after: $after) { pageInfo { hasNextPage endCursor } nodes { ${ATTEMPT} } } } }`);

export const ATTEMPTS = operation<PageVariables, { subscriptionBillingAttempts: Page<{ subscriptionContract: Gid }> }>(
  `query Attempts($after: String, $query: String) {
  subscriptionBillingAttempts(first: 100, after: $after, query: $query, sortKey: CREATED_AT) { pageInfo { hasNextPage endCursor } nodes { subscriptionContract { id } } } }`,
);

export const ORDERS_BY_ID = operation<{ ids: string[] }, { nodes: (OrderNode | null)[] }>(`query OrdersById($ids: [ID!]!) {
  nodes(ids: $ids) { ... on Order { id createdAt processedAt displayFinancialStatus
    lineItems(first: 10) { pageInfo { hasNextPage endCursor } nodes { ${ORDER_LINE} } } } } }`);

export const ORDER_LINES = operation<{ id: string; after: string | null }, { order: { lineItems: Page<OrderLineNode> } | null }>(
  `query OrderLines($id: ID!, $after: String) { order(id: $id) { lineItems(first: 50, after: $after) { pageInfo { hasNextPage endCursor } nodes { ${ORDER_LINE} } } } }`,
);

export const ORDERS = operation<PageVariables, { orders: Page<OrderOfContracts> }>(`query Orders($after: String, $query: String) {
  orders(first: 15, after: $after, query: $query, sortKey: UPDATED_AT) { pageInfo { hasNextPage endCursor } nodes { ${ORDER_CONTRACTS.replace("first: 50", "first: 25")} } } }`);

export const ORDER_BY_ID = operation<{ id: string }, { order: OrderOfContracts | null }>(
  `query OrderContracts($id: ID!) { order(id: $id) { ${ORDER_CONTRACTS} } }`,
);

export const FLOW_TRIGGER = operation<{ handle: string; payload: unknown }, { flowTriggerReceive: { userErrors: { message: string }[] } | null }>(
  "mutation FlowTrigger($handle: String!, $payload: JSON!) { flowTriggerReceive(handle: $handle, payload: $payload) { userErrors { field message } } }",
);

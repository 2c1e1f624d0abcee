/** Operations like those of other apps, with more fields than sds needs. */

export const CONTRACT = `query Contract($id: ID!) {
  subscriptionContract(id: $id) {
    id status revisionId createdAt updatedAt nextBillingDate lastPaymentStatus lastBillingAttemptErrorType
    currencyCode
    billingPolicy { interval intervalCount minCycles maxCycles }
    deliveryPolicy { interval intervalCount }
    customer { id firstName lastName createdAt defaultEmailAddress { emailAddress marketingState } }
    originOrder { id name processedAt createdAt displayFinancialStatus }
    lines(first: 50) { pageInfo { hasNextPage endCursor } nodes { id title variantTitle quantity productId
      variantId sellingPlanId sellingPlanName
      currentPrice { amount currencyCode } lineDiscountedPrice { amount } } }
    billingAttempts(first: 5, reverse: true) { nodes { id idempotencyKey originTime createdAt completedAt
      state { __typename
      ... on SubscriptionBillingAttemptSuccessState { order { id } }
      ... on SubscriptionBillingAttemptFailedState { error { __typename
        ... on SubscriptionBillingAttemptGeneralError { general: code }
        ... on SubscriptionBillingAttemptPaymentError { payment: code }
        ... on SubscriptionBillingAttemptInventoryError { inventory: code } } }
      ... on SubscriptionBillingAttemptActionRequiredState { action {
        ... on SubscriptionBillingAttemptPaymentChallenge { nextActionUrl } } } }
      errorCode errorMessage } }
  }
}`;

export const ORDER = `query Order($id: ID!) {
  order(id: $id) { id name sourceName createdAt processedAt updatedAt cancelledAt displayFinancialStatus test
    currencyCode customer { id }
    subtotalPriceSet { shopMoney { amount currencyCode } } totalDiscountsSet { shopMoney { amount } }
    totalPriceSet { shopMoney { amount currencyCode } }
    lineItems(first: 20) { nodes { id title quantity contract { id } sellingPlan { sellingPlanId name }
      variant { id } product { id }
      originalUnitPriceSet { shopMoney { amount } }
      discountAllocations { allocatedAmountSet { shopMoney { amount currencyCode } } discountApplication { __typename
        ... on ManualDiscountApplication { title } ... on AutomaticDiscountApplication { title }
        ... on DiscountCodeApplication { code } ... on ScriptDiscountApplication { title } } } } }
  }
}`;

export const CYCLE = `query Cycle($c: ID!, $d: DateTime!) {
  subscriptionBillingCycle(billingCycleInput: {contractId: $c, selector: {date: $d}}) {
    cycleIndex cycleStartAt cycleEndAt billingAttemptExpectedDate status skipped edited
    billingAttempts(first: 20) { nodes { id createdAt completedAt idempotencyKey } }
  }
}`;

export const CYCLES = `query Cycles($c: ID!, $dates: SubscriptionBillingCyclesDateRangeSelector, $after: String,
  $reverse: Boolean) {
  subscriptionBillingCycles(contractId: $c, first: 3, after: $after, reverse: $reverse,
    billingCyclesDateRangeSelector: $dates) {
    pageInfo { hasNextPage endCursor }
    nodes { cycleIndex billingAttemptExpectedDate status skipped edited }
  }
  fifth: subscriptionBillingCycles(contractId: $c, first: 1,
    billingCyclesIndexRangeSelector: {startIndex: 5, endIndex: 5}) { nodes { cycleIndex } }
}`;

export const ATTEMPT = `query Attempt($id: ID!) {
  subscriptionBillingAttempt(id: $id) { id idempotencyKey originTime createdAt completedAt
    subscriptionContract { id } state { __typename
    ... on SubscriptionBillingAttemptSuccessState { order { id } }
    ... on SubscriptionBillingAttemptFailedState { error { __typename } }
    ... on SubscriptionBillingAttemptActionRequiredState { action { __typename } }
    ... on SubscriptionBillingAttemptPendingState { processing } } }
}`;

export const CONTRACTS_SINCE = `query ContractsSince($after: String, $q: String!) {
  subscriptionContracts(first: 10, after: $after, query: $q, sortKey: UPDATED_AT) {
    pageInfo { hasNextPage endCursor }
    nodes { id status revisionId createdAt updatedAt nextBillingDate currencyCode customer { id }
      billingPolicy { interval intervalCount }
      lines(first: 20) { nodes { id title quantity productId variantId sellingPlanId currentPrice { amount } } } }
  }
}`;

export const INSTALLATION = `query Installation {
  currentAppInstallation { id accessScopes { handle } allSubscriptions(first: 1) { nodes { id name status } }
    activeSubscriptions { id name status test trialDays createdAt currentPeriodEnd
      lineItems { id plan { pricingDetails { __typename ... on AppRecurringPricing { planHandle interval
        price { amount currencyCode } } } } } } }
  shop { id name myshopifyDomain currencyCode ianaTimezone plan { publicDisplayName partnerDevelopment } }
}`;

export const FLOW = `mutation Flow($handle: String!, $payload: JSON!) {
  flowTriggerReceive(handle: $handle, payload: $payload) { userErrors { field message } }
}`;

export const NODES = `query Nodes($ids: [ID!]!) {
  nodes(ids: $ids) { __typename id ... on Order { name } ... on Customer { firstName } }
}`;

export const COUNT_AND_ATTEMPTS = `query CountAndAttempts {
  customersCount { count }
  subscriptionBillingAttempts(first: 1, query: "created_at:>='2026-01-01'") { nodes { id } }
}`;

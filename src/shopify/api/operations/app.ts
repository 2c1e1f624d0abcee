import { type NoVariables, operation } from "./operation.ts";

/** A shop's subscription to the app. Its lines name the plan's handle if the platform manages the app's prices. */
interface AppSubscriptionNode {
  name: string;
  status: string;
  lineItems: { plan: { pricingDetails: { planHandle?: string | null } } }[];
}

/** The app's granted scopes in a shop, the shop's app subscriptions, and the shop itself. */
export interface Installation {
  currentAppInstallation: {
    accessScopes: { handle: string }[];
    /** The newest subscriptions, with any status. `activeSubscriptions` would leave out a frozen subscription. */
    allSubscriptions: { nodes: AppSubscriptionNode[] };
  };
  shop: { myshopifyDomain: string; currencyCode: string };
}

export const INSTALLATION = operation<NoVariables, Installation>(`query Installation {
  currentAppInstallation {
    accessScopes { handle }
    allSubscriptions(first: 5, reverse: true, sortKey: CREATED_AT) {
      nodes { name status lineItems { plan { pricingDetails { ... on AppRecurringPricing { planHandle } } } } } } }
  shop { myshopifyDomain currencyCode } }`);

/** Reads one object of each level of protected customer data. The platform refuses a level that it has not approved. */
export const PROTECTED_DATA = operation<NoVariables, object>(`query ProtectedData {
  customers(first: 1) { nodes { id firstName defaultEmailAddress { emailAddress } } }
  orders(first: 1) { nodes { id } } }`);

/** Starts a workflow in the platform's automation tool. */
export const FLOW_TRIGGER = operation<
  { handle: string; payload: unknown },
  { flowTriggerReceive: { userErrors: { message: string }[] } | null }
>(
  `mutation FlowTrigger($handle: String!, $payload: JSON!) {
    flowTriggerReceive(handle: $handle, payload: $payload) { userErrors { field message } } }`,
);

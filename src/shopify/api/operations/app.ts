import { type NoVariables, operation } from "./operation.ts";

/** What the app may do in a shop, what the shop pays for it, and which shop it is. */
export interface Installation {
  currentAppInstallation: {
    accessScopes: { handle: string }[];
    activeSubscriptions: { name: string; status: string }[];
    /** At most one: it shows whether there ever was one. */
    allSubscriptions: { nodes: { name: string }[] };
  };
  shop: { myshopifyDomain: string; currencyCode: string };
}

export const INSTALLATION = operation<NoVariables, Installation>(`query Installation {
  currentAppInstallation {
    accessScopes { handle } activeSubscriptions { name status } allSubscriptions(first: 1) { nodes { name } } }
  shop { myshopifyDomain currencyCode } }`);

/** Starts a workflow in the platform's automation tool. */
export const FLOW_TRIGGER = operation<
  { handle: string; payload: unknown },
  { flowTriggerReceive: { userErrors: { message: string }[] } | null }
>(
  `mutation FlowTrigger($handle: String!, $payload: JSON!) {
    flowTriggerReceive(handle: $handle, payload: $payload) { userErrors { field message } } }`,
);

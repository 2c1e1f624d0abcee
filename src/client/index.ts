/** A client of the Subscription Data Service: for its API, copies and webhooks. README.md has examples. */
export { ApiError, ConnectionError } from "./api-error.ts";
export {
  type Client,
  type CustomerFilter,
  createClient,
  type OrderFilter,
  type SubscriptionFilter,
  type SubscriptionReader,
} from "./client.ts";
export { type CopyOptions, type CopyResult, type CopyState, type CopyStore, copy } from "./copy.ts";
export type { ClientOptions, Fetch } from "./requester.ts";
export type { IncludeFields, Page, ReadOptions, ResourceReader } from "./resource-reader.ts";
export type { Customer, LineItem, Order, Subscription, SubscriptionWithFields } from "./resources.ts";
export { verifySignature } from "./signature.ts";
export {
  type HeaderSource,
  type Verified,
  type VerifyOptions,
  type VerifyRefusal,
  verify,
} from "./verify.ts";
export type { WebhookData, WebhookEnvelope, WebhookEvent, WebhookTopic } from "./webhook-event.ts";

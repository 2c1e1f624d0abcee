import type { AppSubscription } from "../../domain/platform/app-plan.ts";
import type { MirrorRecord } from "../../domain/records/platform-records.ts";
import type { CustomerRecord } from "../../domain/records/record-schemas.ts";
import { parseRecord } from "../../domain/records/records.ts";
import { isDomain } from "../../domain/shop.ts";
import { asObject, type JsonObject, parseExact, parseObject } from "../../lib/json.ts";
import { type TopicUse, useOf } from "../api/topics.ts";
import { type Evidence, joinEvidence } from "../contracts/evidence.ts";
import { clipText } from "../contracts/values.ts";

/** A verified platform webhook, from its headers and body. */
export interface PlatformWebhook {
  topic: string;
  text: string;
  /** When the platform sent the webhook, epoch milliseconds. */
  triggeredAt: number;
}

/** The work that a platform webhook asks for. Ids are gids. */
export type Intent =
  | { do: "apply"; record: MirrorRecord }
  /** The webhook names `orders`. They are read with the contract. */
  | { do: "read_contract"; contract: string; orders: string[]; evidence: Evidence }
  | { do: "read_order"; order: string; evidence: Evidence }
  | { do: "read_customer"; customer: string }
  /** Two customers became one. Some payloads do not say which customer is gone. */
  | { do: "merge_customers"; kept: string; gone: string | undefined }
  | { do: "read_plan"; subscription: AppSubscription }
  | { do: "read_scopes" }
  | { do: "set_currency"; currency: string }
  | { do: "note_uninstallation" }
  /** `domain` is null for a sample of the platform's test tool: only its header names the shop. */
  | { do: "remove_shop"; domain: string | null }
  /** `request` is the platform's id of the request, null if the platform gives no id. */
  | { do: "note_data_request"; customer: string; request: string | null }
  | { do: "ignore"; reason: string };

/** Webhooks with the same subject are processed one after another. All must have the same `needsPlatform`. */
export function orderingOf(intent: Intent): { subject: string; needsPlatform: boolean } {
  switch (intent.do) {
    case "apply": {
      const subject = "shopifyId" in intent.record ? String(intent.record.shopifyId) : "shop";
      return { subject, needsPlatform: false };
    }
    case "note_data_request":
      return { subject: intent.customer, needsPlatform: false };
    case "read_contract":
      return { subject: intent.contract, needsPlatform: true };
    case "read_order":
      return { subject: intent.order, needsPlatform: true };
    // The customer's gid is the subject of webhooks that do not need the platform. So this subject must differ.
    case "read_customer":
      return { subject: `reading of ${intent.customer}`, needsPlatform: true };
    case "merge_customers":
      return { subject: `merge of ${intent.kept}`, needsPlatform: true };
    case "read_plan":
    case "read_scopes":
      return { subject: "installation", needsPlatform: true };
    // Before a removal, we ask the platform whether a connected shop has installed the app again.
    case "remove_shop":
      return { subject: "removal", needsPlatform: true };
    default:
      return { subject: "shop", needsPlatform: false };
  }
}

/** A field that `sds` adds to its own webhooks. It says that the payload has no data, so the object must be read. */
const MUST_READ = "sds_must_read";
/** A field that `sds` adds to its own webhooks: the gids of orders to read with the contract. */
const ORDERS = "sds_orders";
/** A field that `sds` adds to its own webhooks: the facts that a reading must show. */
const EVIDENCE = "sds_evidence";
const CHANGE_TOPICS = {
  contract: "subscription_contracts/update",
  order: "orders/updated",
  customer: "customers/update",
};

/**
 * Makes a webhook like the platform's, for an object that cannot be read now. The inbox then retries the reading.
 * @param orders gids of orders to read with a contract
 */
export function changeWebhook(
  of: keyof typeof CHANGE_TOPICS,
  gid: string,
  { orders = [], evidence = {} }: { orders?: readonly string[]; evidence?: Evidence } = {},
) {
  const topic = CHANGE_TOPICS[of];
  const own = {
    ...(of === "customer" && { [MUST_READ]: true }),
    ...(orders.length > 0 && { [ORDERS]: orders }),
    ...(Object.keys(evidence).length > 0 && { [EVIDENCE]: evidence }),
  };
  const body = JSON.stringify({ admin_graphql_api_id: gid, ...own });
  return { topic, body, subject: orderingOf(readWebhook({ topic, text: body, triggeredAt: 0 })).subject };
}

/** Merges webhooks that ask to read the same contract or order. @returns undefined for other webhooks */
export function mergedWebhook(
  webhooks: readonly { topic: string; body: string }[],
): ReturnType<typeof changeWebhook> | undefined {
  const intents = webhooks.map(({ topic, body }) => readWebhook({ topic, text: body, triggeredAt: 0 }));
  const contracts = intents.flatMap((intent) => (intent.do === "read_contract" ? [intent] : []));
  const orders = intents.flatMap((intent) => (intent.do === "read_order" ? [intent] : []));
  const evidence = [...contracts, ...orders].map((each) => each.evidence).reduce(joinEvidence, {});
  const [contract] = contracts;
  const [order] = orders;
  if (contract !== undefined && contracts.length === intents.length) {
    const gids = [...new Set(contracts.flatMap((each) => each.orders))];
    return changeWebhook("contract", contract.contract, { orders: gids, evidence });
  }
  const isOrder = order !== undefined && orders.length === intents.length;
  return isOrder ? changeWebhook("order", order.order, { evidence }) : undefined;
}

/** Reads a platform webhook, with any topic and any payload. A pure function. */
export function readWebhook({ topic, text, triggeredAt }: PlatformWebhook): Intent {
  // The check uses `hasOwn`, because a sender can name any topic, for example `constructor`.
  const compliance = Object.hasOwn(COMPLIANCE, topic) ? COMPLIANCE[topic] : undefined;
  const use = useOf(topic);
  if (compliance === undefined && use === undefined) return ignore("the topic is not used");
  // These payloads have only numeric ids, which need the exact parser. Other payloads are long, and the exact parser is
  // too slow for them.
  const hasNumberIds = compliance !== undefined || use === "cycle" || use === "consent";
  const payload = hasNumberIds ? parseExact(text) : parseObject(text);
  if (payload === undefined) return ignore("the payload is not a JSON object");
  return compliance?.(payload, triggeredAt) ?? USES[use ?? "shop"](payload, triggeredAt);
}

type PayloadReader = (payload: JsonObject, triggeredAt: number) => Intent;

const COMPLIANCE: Record<string, PayloadReader> = {
  "customers/redact": (payload, asOf) =>
    redaction(asObject(payload["customer"])?.["id"], asOf, asObject(payload["customer"])),
  "customers/data_request": (payload) =>
    withGid("Customer", asObject(payload["customer"])?.["id"], (customer) => {
      const id = asObject(payload["data_request"])?.["id"];
      const isId = (typeof id === "number" || typeof id === "string") && /^\d{1,20}$/.test(`${id}`);
      const request = isId ? `${id}` : null;
      return { do: "note_data_request", customer, request };
    }),
  "shop/redact": (payload) => removal(payload["shop_domain"]),
};

const USES: Record<TopicUse, PayloadReader> = {
  contract: (payload) => {
    const orders = payload[ORDERS];
    const gids = Array.isArray(orders) ? orders.filter((gid) => isGid("Order", gid)) : [];
    const revision = payload["revision_id"];
    const evidence = isNumeral(revision) ? { revision } : {};
    return readContract(payload["admin_graphql_api_id"] ?? payload["id"], gids, {
      ...evidence,
      ...ownEvidence(payload),
    });
  },
  attempt: (payload) => {
    const contract = payload["admin_graphql_api_subscription_contract_id"] ?? payload["subscription_contract_id"];
    const order = payload["admin_graphql_api_order_id"];
    if (isGid("Order", order)) return readContract(contract, [order], { charges: [order] });
    const attempt = payload["admin_graphql_api_id"] ?? payload["idempotency_key"];
    return readContract(contract, [], typeof attempt === "string" ? { attempts: [attempt] } : {});
  },
  cycle: (payload) => {
    const { cycle_index: index, skipped } = payload;
    const expectedAt = Date.parse(String(payload["billing_attempt_expected_date"]));
    const isWhole = typeof index === "number" && typeof skipped === "boolean" && !Number.isNaN(expectedAt);
    const evidence = isWhole ? { cycles: { [index]: { skipped, expectedAt } } } : {};
    return readContract(payload["subscription_contract_id"], [], evidence);
  },
  customer: (payload, triggeredAt) =>
    payload[MUST_READ] === true
      ? withGid("Customer", payload["admin_graphql_api_id"], (customer) => ({ do: "read_customer", customer }))
      : apply(customerRecord(payload), changeTime(payload["updated_at"], triggeredAt)),
  customer_gone: (payload, asOf) => redaction(payload["admin_graphql_api_id"] ?? payload["id"], asOf, payload),
  customers_merged: (payload) => {
    if (payload["status"] === "failed") return ignore("the merge failed");
    const deleted = payload["admin_graphql_api_customer_deleted_id"];
    const gone = isGid("Customer", deleted) ? deleted : undefined;
    const kept = payload["admin_graphql_api_customer_kept_id"];
    return withGid("Customer", kept, (gid) => ({ do: "merge_customers", kept: gid, gone }));
  },
  consent: (payload, triggeredAt) => {
    const { state, consent_updated_at: updatedAt } = asObject(payload["email_marketing_consent"]) ?? {};
    return withGid("Customer", payload["customer_id"], (shopifyId) =>
      apply(
        { type: "customer", shopifyId, marketingConsent: state === "subscribed" },
        changeTime(updatedAt, triggeredAt),
      ),
    );
  },
  order: (payload) =>
    withGid("Order", payload["admin_graphql_api_id"] ?? payload["id"], (order) => {
      const updatedAt = Date.parse(String(payload["updated_at"]));
      const evidence = Number.isNaN(updatedAt) ? {} : { orders: { [order]: updatedAt } };
      return { do: "read_order", order, evidence: { ...evidence, ...ownEvidence(payload) } };
    }),
  uninstalled: () => ({ do: "note_uninstallation" }),
  scopes: () => ({ do: "read_scopes" }),
  plan: (payload) => {
    const { name, status, plan_handle: handle } = asObject(payload["app_subscription"]) ?? {};
    if (typeof name !== "string" || typeof status !== "string") return ignore("the payload names no plan");
    return { do: "read_plan", subscription: { name, handle: typeof handle === "string" ? handle : null, status } };
  },
  shop: ({ currency }) => {
    const isKnown = typeof currency === "string" && Intl.supportedValuesOf("currency").includes(currency);
    return isKnown ? { do: "set_currency", currency } : ignore("the payload names no currency");
  },
};

function ignore(reason: string): Intent {
  return { do: "ignore", reason };
}

function readContract(id: unknown, orders: string[], evidence: Evidence): Intent {
  return withGid("SubscriptionContract", id, (contract) => ({ do: "read_contract", contract, orders, evidence }));
}

/** Returns the evidence in a webhook that `sds` made. */
function ownEvidence(payload: JsonObject): Evidence {
  return (asObject(payload[EVIDENCE]) ?? {}) as Evidence;
}

function isNumeral(value: unknown): value is string {
  return typeof value === "string" && /^\d{1,30}$/.test(value);
}

/**
 * Makes the intent to redact a customer. The redaction also searches for the payload's contacts, because the mirror's
 * contacts may differ.
 */
function redaction(id: unknown, asOf: number, customer: JsonObject = {}): Intent {
  const { email, phone } = customer;
  const contacts = { ...(typeof email === "string" && { email }), ...(typeof phone === "string" && { phone }) };
  return withGid("Customer", id, (shopifyId) => ({
    do: "apply",
    record: { type: "redaction", shopifyId, asOf, ...(Object.keys(contacts).length > 0 && { contacts }) },
  }));
}

/** Makes an intent for a gid, or for a gid's number. Refuses a number that a float may have rounded. */
function withGid(object: string, id: unknown, intent: (gid: string) => Intent): Intent {
  const isNumber = Number.isSafeInteger(id) || (typeof id === "string" && !id.startsWith("gid:"));
  const gid = isNumber ? `gid://shopify/${object}/${id}` : id;
  return isGid(object, gid) ? intent(gid) : ignore(`the payload names no ${object}`);
}

function isGid(object: string, value: unknown): value is string {
  return typeof value === "string" && new RegExp(`^gid://shopify/${object}/[1-9][0-9]{0,19}$`).test(value);
}

function customerRecord(payload: JsonObject): JsonObject {
  return {
    type: "customer",
    shopifyId: payload["admin_graphql_api_id"],
    email: clipText(payload["email"]),
    firstName: clipText(payload["first_name"]),
    lastName: clipText(payload["last_name"]),
  };
}

/** Checks the record like a record of the intake: a signature proves who sent a payload, not that it is valid. */
function apply(candidate: JsonObject, asOf: number): Intent {
  const given = Object.fromEntries(Object.entries(candidate).filter(([, value]) => value !== undefined));
  const parsed = parseRecord(given);
  if ("refused" in parsed) return ignore(`${parsed.refused.field} ${parsed.refused.reason}`);
  return { do: "apply", record: { ...(parsed.record as CustomerRecord), asOf } };
}

/** The domain in samples of the platform's test tool. A real shop never has this domain. */
const PLACEHOLDER_DOMAIN = "{shop}.myshopify.com";

/** Only the shop that the body names is removed, because the signature does not cover the headers. */
function removal(domain: unknown): Intent {
  if (domain === PLACEHOLDER_DOMAIN) return { do: "remove_shop", domain: null };
  if (typeof domain === "string" && isDomain(domain)) return { do: "remove_shop", domain };
  return ignore("the payload names no shop");
}

/** How far the time of a change can be in the future at most. No clock is this far ahead of ours. */
const MAX_PAYLOAD_AHEAD_MS = 86_400_000;

/** Returns the time of a change. A far future time becomes `atLatest`: it must not win over all later changes. */
export function changeTime(text: unknown, atLatest: number): number {
  const ms = typeof text === "string" ? Date.parse(text) : Number.NaN;
  return ms <= atLatest + MAX_PAYLOAD_AHEAD_MS ? ms : atLatest;
}

import type { MirrorRecord } from "../../domain/platform-records.ts";
import { type CustomerRecord, MAX_STRING, parseRecord } from "../../domain/records.ts";
import { isDomain } from "../../domain/shop.ts";
import { asObject, type JsonObject, parseExact } from "../../lib/exact-json.ts";
import { type TopicUse, WEBHOOK_TOPICS } from "./topics.ts";

/** One of the platform's webhooks, verified, as its headers and body have it. */
export interface PlatformWebhook {
  topic: string;
  text: string;
  /** When the platform sent it off, epoch milliseconds. */
  triggeredAt: number;
}

/** What a webhook asks for. Ids are gids. */
export type Intent =
  | { do: "apply"; record: MirrorRecord }
  | { do: "read_contract"; contract: string }
  | { do: "read_order"; order: string }
  /** Two became one; the payload may keep to itself which is gone. */
  | { do: "merge_customers"; kept: string; gone: string | undefined }
  | { do: "read_plan"; name: string; status: string }
  | { do: "set_currency"; currency: string }
  | { do: "disconnect" }
  /** `domain` is null where the platform's test tool sent it: then it is for the shop that the header names. */
  | { do: "remove_shop"; domain: string | null }
  | { do: "note_data_request"; customer: string }
  | { do: "ignore"; reason: string };

/**
 * What a webhook is about, for those about the same are processed one after another, and whether the platform has to be asked to process it. What needs no platform is never
 * about the same as what might wait for it.
 */
export function routeOf(intent: Intent): { subject: string; needsPlatform: boolean } {
  switch (intent.do) {
    case "apply":
      return { subject: "shopifyId" in intent.record ? String(intent.record.shopifyId) : "shop", needsPlatform: false };
    case "note_data_request":
      return { subject: intent.customer, needsPlatform: false };
    case "read_contract":
      return { subject: intent.contract, needsPlatform: true };
    case "read_order":
      return { subject: intent.order, needsPlatform: true };
    case "merge_customers":
      return { subject: `merge of ${intent.kept}`, needsPlatform: true };
    case "read_plan":
      return { subject: "plan", needsPlatform: true };
    default:
      return { subject: "shop", needsPlatform: false };
  }
}

/** What the platform would have sent of a contract: so that one that can't be read now can wait where all others do. */
export function contractWebhook(contract: string): { topic: string; body: string } {
  return { topic: "subscription_contracts/update", body: JSON.stringify({ admin_graphql_api_id: contract }) };
}

/** Reads a webhook. Pure; whatever topic and payload hold, it answers. */
export function readWebhook({ topic, text, triggeredAt }: PlatformWebhook): Intent {
  // Their own entries alone: a topic is called whatever its sender likes, `constructor` for one.
  const compliance = Object.hasOwn(COMPLIANCE, topic) ? COMPLIANCE[topic] : undefined;
  const use = Object.hasOwn(WEBHOOK_TOPICS, topic) ? WEBHOOK_TOPICS[topic] : undefined;
  if (compliance === undefined && use === undefined) return ignore("the topic is not used");
  // Only some payloads name what they are about by a number alone; looking at every number of the long ones would take its time.
  const payload = compliance !== undefined || use === "cycle" || use === "consent" ? parseExact(text) : parsePlain(text);
  if (payload === undefined) return ignore("the payload is not a JSON object");
  return compliance?.(payload, triggeredAt) ?? USES[use ?? "shop"](payload, triggeredAt);
}

type Reader = (payload: JsonObject, triggeredAt: number) => Intent;

const COMPLIANCE: Record<string, Reader> = {
  "customers/redact": (payload, asOf) => withGid("Customer", asObject(payload["customer"])?.["id"], (shopifyId) => redaction(shopifyId, asOf)),
  "customers/data_request": (payload) => withGid("Customer", asObject(payload["customer"])?.["id"], (customer) => ({ do: "note_data_request", customer })),
  "shop/redact": (payload) => removal(payload["shop_domain"]),
};

const USES: Record<TopicUse, Reader> = {
  contract: (payload) => withGid("SubscriptionContract", payload["admin_graphql_api_id"] ?? payload["id"], readContract),
  attempt: (payload) =>
    withGid("SubscriptionContract", payload["admin_graphql_api_subscription_contract_id"] ?? payload["subscription_contract_id"], readContract),
  cycle: (payload) => withGid("SubscriptionContract", payload["subscription_contract_id"], readContract),
  customer: (payload, triggeredAt) => apply(customerRecord(payload), dateOf(payload["updated_at"]) ?? triggeredAt),
  customer_gone: (payload, asOf) => withGid("Customer", payload["admin_graphql_api_id"] ?? payload["id"], (shopifyId) => redaction(shopifyId, asOf)),
  customers_merged: (payload) =>
    payload["status"] === "failed"
      ? ignore("the merge failed")
      : withGid("Customer", payload["admin_graphql_api_customer_kept_id"], (kept) => {
          const gone = payload["admin_graphql_api_customer_deleted_id"];
          return { do: "merge_customers", kept, gone: isGid("Customer", gone) ? gone : undefined };
        }),
  consent: (payload, triggeredAt) =>
    withGid("Customer", payload["customer_id"], (shopifyId) =>
      apply(
        { type: "customer", shopifyId, marketingConsent: consentIn(payload) === "subscribed" },
        dateOf(asObject(payload["email_marketing_consent"])?.["consent_updated_at"]) ?? triggeredAt,
      ),
    ),
  order: (payload) => withGid("Order", payload["admin_graphql_api_id"] ?? payload["id"], (order) => ({ do: "read_order", order })),
  uninstalled: () => ({ do: "disconnect" }),
  plan: (payload) => {
    const { name, status } = asObject(payload["app_subscription"]) ?? {};
    if (typeof name !== "string" || typeof status !== "string") return ignore("the payload names no plan");
    return { do: "read_plan", name, status };
  },
  shop: (payload) => {
    const currency = payload["currency"];
    return typeof currency === "string" && Intl.supportedValuesOf("currency").includes(currency)
      ? { do: "set_currency", currency }
      : ignore("the payload names no currency");
  },
};

function ignore(reason: string): Intent {
  return { do: "ignore", reason };
}

function readContract(contract: string): Intent {
  return { do: "read_contract", contract };
}

function redaction(shopifyId: string, asOf: number): Intent {
  return { do: "apply", record: { type: "redaction", shopifyId, asOf } };
}

function parsePlain(text: string): JsonObject | undefined {
  try {
    return asObject(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** An id as a gid already, or as the number in one; of a number that a float may have rounded, nothing is believed. */
function withGid(object: string, id: unknown, intent: (gid: string) => Intent): Intent {
  const gid = typeof id === "string" && id.startsWith("gid:") ? id : typeof id === "string" || Number.isSafeInteger(id) ? `gid://shopify/${object}/${id}` : "";
  return isGid(object, gid) ? intent(gid) : ignore(`the payload names no ${object}`);
}

function isGid(object: string, value: unknown): value is string {
  return typeof value === "string" && new RegExp(`^gid://shopify/${object}/[1-9][0-9]{0,19}$`).test(value);
}

function customerRecord(payload: JsonObject): JsonObject {
  return {
    type: "customer",
    shopifyId: payload["admin_graphql_api_id"],
    email: clipped(payload["email"]),
    firstName: clipped(payload["first_name"]),
    lastName: clipped(payload["last_name"]),
  };
}

/** One overlong name must not keep the rest of a profile out. */
function clipped(value: unknown): unknown {
  return typeof value === "string" ? value.slice(0, MAX_STRING).toWellFormed() : value;
}

function consentIn(payload: JsonObject): unknown {
  return asObject(payload["email_marketing_consent"])?.["state"];
}

/** Checked like every record: a signature says who sent a payload, not that it makes sense. */
function apply(candidate: JsonObject, asOf: number): Intent {
  const given = Object.fromEntries(Object.entries(candidate).filter(([, value]) => value !== undefined));
  const parsed = parseRecord(given);
  if ("refused" in parsed) return ignore(`${parsed.refused.field} ${parsed.refused.reason}`);
  return { do: "apply", record: { ...(parsed.record as CustomerRecord), asOf } };
}

/** In the place of a domain in the samples that the platform's test tool sends, and never in what a shop's removal sends. */
const PLACEHOLDER_DOMAIN = "{shop}.myshopify.com";

/** Only what the signed body names is removed: the headers, the topic among them, are not covered by the signature. */
function removal(domain: unknown): Intent {
  if (domain === PLACEHOLDER_DOMAIN) return { do: "remove_shop", domain: null };
  if (typeof domain === "string" && isDomain(domain)) return { do: "remove_shop", domain };
  return ignore("the payload names no shop");
}

/** The platform writes dates with an offset. */
function dateOf(value: unknown): number | undefined {
  const ms = typeof value === "string" ? Date.parse(value) : Number.NaN;
  return Number.isNaN(ms) ? undefined : ms;
}

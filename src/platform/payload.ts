import { type IncomingRecord, MAX_STRING, type MirrorRecord, parseRecord } from "../domain/records.ts";
import { isDomain } from "../domain/shop.ts";

/** One of the platform's webhooks, verified, as its headers and body have it. */
export interface PlatformWebhook {
  topic: string;
  text: string;
  /** When the platform sent it off, epoch milliseconds. */
  triggeredAt: number;
}

/** What a webhook asks for. */
export type Intent =
  | { do: "apply"; record: MirrorRecord }
  /** `domain` is null where the platform's test tool sent it: then it is for the shop that the header names. */
  | { do: "remove_shop"; domain: string | null }
  | { do: "note_data_request"; customer: string }
  | { do: "ignore"; reason: string };

/**
 * Reads a webhook of the topics that need nothing but their payload. Pure; whatever the payload holds, it answers.
 */
export function readWebhook({ topic, text, triggeredAt }: PlatformWebhook): Intent {
  const payload = parseExact(text);
  if (payload === undefined) return { do: "ignore", reason: "the payload is not a JSON object" };
  switch (topic) {
    case "customers/create":
    case "customers/update":
      return apply(customerRecord(payload), dateOf(payload["updated_at"]) ?? triggeredAt);
    case "customers_email_marketing_consent/update":
      return apply(consentRecord(payload), triggeredAt);
    case "customers/redact":
      return withCustomer(payload, (shopifyId) => ({ do: "apply", record: { type: "redaction", shopifyId, asOf: triggeredAt } }));
    case "customers/data_request":
      return withCustomer(payload, (customer) => ({ do: "note_data_request", customer }));
    case "shop/redact":
      return removal(payload["shop_domain"]);
    default:
      return { do: "ignore", reason: "the topic is not used" };
  }
}

type Payload = Record<string, unknown>;

/**
 * The platform's numeric ids exceed 2^53, and JSON.parse rounds them: a whole number beyond the safe range becomes the string of
 * its digits.
 */
function parseExact(text: string): Payload | undefined {
  try {
    const value: unknown = JSON.parse(text, (_key, value: unknown, context?: { source?: string }) =>
      typeof value === "number" && !Number.isSafeInteger(value) && /^\d+$/.test(context?.source ?? "") ? context?.source : value,
    );
    return asObject(value);
  } catch {
    return undefined;
  }
}

function asObject(value: unknown): Payload | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Payload) : undefined;
}

function customerRecord(payload: Payload): Payload {
  return {
    type: "customer",
    shopifyId: payload["admin_graphql_api_id"] ?? customerGid(payload["id"]),
    email: clipped(payload["email"]),
    firstName: clipped(payload["first_name"]),
    lastName: clipped(payload["last_name"]),
  };
}

/** One overlong name must not keep the rest of a profile out. */
function clipped(value: unknown): unknown {
  return typeof value === "string" ? value.slice(0, MAX_STRING).toWellFormed() : value;
}

function consentRecord(payload: Payload): Payload {
  const state = asObject(payload["email_marketing_consent"])?.["state"];
  return { type: "customer", shopifyId: customerGid(payload["customer_id"]), marketingConsent: state === "subscribed" };
}

/** Checked like every record: a signature says who sent a payload, not that it makes sense. */
function apply(candidate: Payload, asOf: number): Intent {
  const given = Object.fromEntries(Object.entries(candidate).filter(([, value]) => value !== undefined));
  const parsed = parseRecord(given);
  if ("refused" in parsed) return { do: "ignore", reason: `${parsed.refused.field} ${parsed.refused.reason}` };
  return { do: "apply", record: { ...(parsed.record as Extract<IncomingRecord, { type: "customer" }>), asOf } };
}

function withCustomer(payload: Payload, intent: (gid: string) => Intent): Intent {
  const gid = customerGid(asObject(payload["customer"])?.["id"]);
  return gid === undefined ? { do: "ignore", reason: "the payload names no customer" } : intent(gid);
}

function customerGid(id: unknown): string | undefined {
  const digits = typeof id === "number" || typeof id === "string" ? String(id) : "";
  return /^[1-9][0-9]{0,19}$/.test(digits) ? `gid://shopify/Customer/${digits}` : undefined;
}

/** In the place of a domain in the samples that the platform's test tool sends, and never in what a shop's removal sends. */
const PLACEHOLDER_DOMAIN = "{shop}.myshopify.com";

/** Only what the signed body names is removed: the headers, the topic among them, are not covered by the signature. */
function removal(domain: unknown): Intent {
  if (domain === PLACEHOLDER_DOMAIN) return { do: "remove_shop", domain: null };
  if (typeof domain === "string" && isDomain(domain)) return { do: "remove_shop", domain };
  return { do: "ignore", reason: "the payload names no shop" };
}

/** The platform writes dates with an offset. */
function dateOf(value: unknown): number | undefined {
  const ms = typeof value === "string" ? Date.parse(value) : Number.NaN;
  return Number.isNaN(ms) ? undefined : ms;
}

import { verifySignature, verifyStandard } from "./signature.ts";
import type { WebhookEvent } from "./webhook-event.ts";

const TOLERANCE_MS = 5 * 60_000;

/** Headers of a request: a `Headers` object of the Fetch API, or Node's object with lower-case names. */
export type HeaderSource =
  | { get(name: string): string | null | undefined }
  | { readonly [name: string]: string | readonly string[] | undefined };

export interface VerifyOptions {
  /**
   * `standard`, the default, checks the headers of Standard Webhooks. These headers have the time of the attempt, so a
   * recorded webhook cannot be replayed later. `service` checks X-Service-Signature, which signs no time.
   */
  signature?: "standard" | "service";
  /** Maximum difference between the time of an attempt and this machine's clock. 300,000 (five minutes) by default. */
  toleranceMs?: number;
  /** This machine's clock, in epoch milliseconds. */
  now?: () => number;
}

/**
 * Why a delivery was refused. `no_signature`: a header is missing. `too_old` or `too_new`: check this machine's clock
 * first.
 */
export type VerifyRefusal = "no_signature" | "wrong_signature" | "too_old" | "too_new" | "not_an_event";

export type Verified =
  | {
      event: WebhookEvent;
      /** Whether this is a test event, which is about no real subscription or order. */
      isTest: boolean;
      refused?: undefined;
    }
  | { refused: VerifyRefusal; event?: undefined };

/**
 * Checks whether a delivery is genuine, and reads its event. Answer a refused delivery with 401. A delivery can arrive
 * twice, so store the `id` of each processed event.
 * @param secret the secret that `sds webhook secret` prints. During an overlap, pass all secrets
 * @param body the raw body, before anything parses it
 */
export async function verify(
  secret: string | readonly string[],
  body: string | Uint8Array | ArrayBuffer,
  headers: HeaderSource,
  options: VerifyOptions = {},
): Promise<Verified> {
  const secrets = typeof secret === "string" ? [secret] : secret;
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : new Uint8Array(body);
  const check = options.signature === "service" ? checkService : checkStandard;
  const refused = await check(secrets, bytes, headers, options);
  if (refused !== undefined) return { refused };
  const event = parseEvent(bytes);
  if (event === undefined) return { refused: "not_an_event" };
  return { event, isTest: headerOf(headers, "x-service-test") === "true" };
}

async function checkStandard(
  secrets: readonly string[],
  body: Uint8Array<ArrayBuffer>,
  headers: HeaderSource,
  { toleranceMs = TOLERANCE_MS, now = Date.now }: VerifyOptions,
): Promise<VerifyRefusal | undefined> {
  const id = headerOf(headers, "webhook-id");
  const timestamp = headerOf(headers, "webhook-timestamp");
  const signatures = headerOf(headers, "webhook-signature");
  if (id === undefined || timestamp === undefined || signatures === undefined) return "no_signature";
  if (!(await verifyStandard(secrets, body, { id, timestamp, signatures }))) return "wrong_signature";
  // The signature covers the timestamp, so the timestamp comes from the server.
  const ageMs = now() - Number(timestamp) * 1000;
  if (ageMs > toleranceMs) return "too_old";
  return ageMs >= -toleranceMs ? undefined : "too_new";
}

async function checkService(
  secrets: readonly string[],
  body: Uint8Array<ArrayBuffer>,
  headers: HeaderSource,
): Promise<VerifyRefusal | undefined> {
  const header = headerOf(headers, "x-service-signature");
  if (header === undefined) return "no_signature";
  for (const secret of secrets) if (await verifySignature(secret, body, header)) return undefined;
  return "wrong_signature";
}

/** A header that was sent several times counts as missing. */
function headerOf(headers: HeaderSource, name: string): string | undefined {
  const value = isGetter(headers) ? headers.get(name) : headers[name];
  return typeof value === "string" ? value : undefined;
}

function isGetter(headers: HeaderSource): headers is { get(name: string): string | null | undefined } {
  return typeof headers["get"] === "function";
}

/** Parses an event. Does not check every field, because the server signed the body. */
function parseEvent(body: Uint8Array): WebhookEvent | undefined {
  try {
    const event: unknown = JSON.parse(new TextDecoder().decode(body));
    return typeof event === "object" && event !== null && "topic" in event && "data" in event
      ? (event as WebhookEvent)
      : undefined;
  } catch {
    return undefined;
  }
}

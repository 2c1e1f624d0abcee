import { CryptoHasher } from "bun";
import type { Claim } from "../store/port/deliveries.ts";

/** The headers that all attempts of a webhook share, without the connection's own headers. */
export function webhookHeaders(
  { id, topic, test }: Pick<Claim, "id" | "topic" | "test">,
  signature: string,
): Record<string, string> {
  return {
    "Content-Type": "application/json",
    "User-Agent": "sds",
    "X-Service-Topic": topic,
    "X-Service-Signature": signature,
    ...(test && { "X-Service-Test": "true" }),
    "webhook-id": id,
  };
}

/**
 * The headers of one attempt: its time, and for each key a signature of id, time and body. Receivers verify them with
 * the libraries of Standard Webhooks (docs/webhooks.md, "Standard Webhooks").
 * @param at epoch milliseconds
 */
export function attemptHeaders(
  id: string,
  body: Uint8Array,
  keys: readonly Uint8Array[],
  at: number,
): Record<string, string> {
  const timestamp = String(Math.floor(at / 1_000));
  // The synchronous hasher takes a fraction of the time of Web Crypto for bodies of this size.
  const signatures = keys.map(
    (key) => `v1,${new CryptoHasher("sha256", key).update(`${id}.${timestamp}.`).update(body).digest("base64")}`,
  );
  return {
    "webhook-timestamp": timestamp,
    ...(signatures.length > 0 && { "webhook-signature": signatures.join(" ") }),
  };
}

/**
 * The key of `webhook-signature`: the bytes whose base64 follows `whsec_`. Characters that are not base64 are skipped.
 * @returns undefined for a secret without such bytes, because anybody could forge a signature with an empty key
 */
export function standardKey(secret: string): Uint8Array | undefined {
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  return key.length === 0 ? undefined : key;
}

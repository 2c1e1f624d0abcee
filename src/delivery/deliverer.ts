import { CryptoHasher } from "bun";
import { importSecret, signBody } from "../client/signature.ts";
import { signingVersions } from "../domain/deliveries/delivery.ts";
import { SdsError } from "../domain/error.ts";
import type { Claim, DeliveryDetails } from "../store/port/deliveries.ts";
import type { WebhookStore } from "../store/port/webhooks.ts";
import { type AttemptOutcome, type AttemptSettings, createWebhookAttempt } from "./attempt.ts";
import type { Connect } from "./connector.ts";

/** Time limit for reading the secret and signing, so that the attempt ends before its lease. */
const LONGEST_SIGNING_MS = 2_000;

type Deliver = (claim: Claim) => Promise<AttemptOutcome>;

interface Dependencies {
  webhooks: WebhookStore;
  connect: Connect;
  /** Makes one attempt to deliver a trigger. */
  startWorkflow: Deliver;
  now: () => number;
}

/** The keys of one version of a secret. */
interface Keys {
  /** For X-Service-Signature. */
  own: CryptoKey;
  /** The key for the header webhook-signature; undefined if the secret contains no base64. */
  standard: Uint8Array | undefined;
}

/**
 * Returns a function that attempts a claimed delivery, and rejects if a secret cannot be read. X-Service-Signature uses
 * the secret that was current when the webhook was queued. webhook-signature uses the versions that are current now.
 */
export function createDeliverer(
  { webhooks, connect, startWorkflow, now }: Dependencies,
  settings: AttemptSettings,
): Deliver {
  const attempt = createWebhookAttempt(settings, connect);
  const known = new Map<string, Promise<Keys>>();

  function keysOf(shopId: number, version: number): Promise<Keys> {
    const name = `${shopId} ${version}`;
    const found = known.get(name);
    if (found !== undefined) return found;
    const keys = webhooks.secretOf(shopId, version).then(importKeys);
    known.set(name, keys);
    keys.catch(() => known.delete(name));
    return keys;
  }

  return async (claim) => {
    if (claim.kind === "trigger") return startWorkflow(claim);
    const { id, shopId, secretVersion, newestSecret, url } = claim;
    if (url === null) return { statusCode: null, error: "The shop has no endpoint.", timedOut: false };
    const began = performance.now();
    const at = now();
    const body = new TextEncoder().encode(claim.body);
    const { own } = await keysOf(shopId, secretVersion);
    const current = await Promise.all(signingVersions(newestSecret, at).map((version) => keysOf(shopId, version)));
    const standard = current.flatMap((keys) => keys.standard ?? []);
    const headers = {
      ...webhookHeaders(claim, await signBody(own, body)),
      ...attemptHeaders(id, body, standard, at),
    };
    if (performance.now() - began > LONGEST_SIGNING_MS)
      throw new SdsError("failed", "reading the signing secret took too long");
    return { ...(await attempt({ url, headers, body })), url };
  };
}

async function importKeys(secret: string): Promise<Keys> {
  return { own: await importSecret(secret), standard: standardKey(secret) };
}

/** Returns the headers that all attempts of a webhook share, without HTTP's own headers, such as Host. */
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
 * Returns the headers that differ between attempts: the time, and one signature for each key. A signature covers id,
 * time and body. Receivers verify it with the libraries of Standard Webhooks (docs/webhooks.md, "Standard Webhooks").
 * @param at epoch milliseconds
 */
function attemptHeaders(id: string, body: Uint8Array, keys: readonly Uint8Array[], at: number): Record<string, string> {
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
 * Decodes the key of `webhook-signature`: the base64 after `whsec_`. Skips characters that are not base64.
 * @returns undefined instead of an empty key, because anybody could forge a signature with an empty key
 */
function standardKey(secret: string): Uint8Array | undefined {
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  return key.length === 0 ? undefined : key;
}

/**
 * Returns the X-Service-Signature of all attempts of a delivery. Rejects if the secret cannot be read.
 * @returns null for a trigger, which goes to the platform with the shop's access token
 */
export async function signatureOf(
  webhooks: WebhookStore,
  shopId: number,
  delivery: DeliveryDetails,
): Promise<string | null> {
  const { kind, body, secretVersion } = delivery;
  if (kind === "trigger") return null;
  return signBody(await importSecret(await webhooks.secretOf(shopId, secretVersion)), new TextEncoder().encode(body));
}

/** Returns the headers of an attempt that would be made now. Rejects if a secret cannot be read. */
export async function headersNow(
  webhooks: WebhookStore,
  shopId: number,
  delivery: DeliveryDetails,
  now: number,
): Promise<Record<string, string>> {
  const [signature, [newest, former], overlapEndsAt] = await Promise.all([
    signatureOf(webhooks, shopId, delivery),
    webhooks.secrets(shopId),
    webhooks.overlapEndsAt(shopId),
  ]);
  const secrets = overlapEndsAt !== null && now < overlapEndsAt ? [newest, former] : [newest];
  const keys = secrets.flatMap((secret) => (secret === undefined ? [] : (standardKey(secret) ?? [])));
  return {
    ...webhookHeaders(delivery, signature ?? ""),
    ...attemptHeaders(delivery.id, new TextEncoder().encode(delivery.body), keys, now),
  };
}

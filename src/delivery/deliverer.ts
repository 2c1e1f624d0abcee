import { SdsError } from "../domain/error.ts";
import { importSecret, signBody } from "../domain/signature.ts";
import type { Claim, DeliveryDetails } from "../store/deliveries.ts";
import type { WebhookStore } from "../store/webhooks.ts";
import { type AttemptOutcome, type AttemptSettings, createWebhookAttempt } from "./attempt.ts";
import type { Connect } from "./connector.ts";

/** The secret and the signature take no longer, so that the attempt ends before the lease of the delivery. */
const LONGEST_SIGNING_MS = 2_000;

type Deliver = (claim: Claim) => Promise<AttemptOutcome>;

/**
 * Returns a function that attempts a claimed delivery. It signs a webhook with the version of the secret that was
 * current when the webhook was queued. The function rejects if the secret cannot be read.
 * @param startWorkflow attempts a trigger
 */
export function createDeliverer(
  webhooks: WebhookStore,
  settings: AttemptSettings,
  connect: Connect,
  startWorkflow: Deliver,
): Deliver {
  const attempt = createWebhookAttempt(settings, connect);
  const keys = new Map<string, Promise<CryptoKey>>();

  function keyOf(shopId: number, version: number): Promise<CryptoKey> {
    const name = `${shopId} ${version}`;
    const known = keys.get(name);
    if (known !== undefined) return known;
    const key = webhooks.secretOf(shopId, version).then(importSecret);
    keys.set(name, key);
    key.catch(() => keys.delete(name));
    return key;
  }

  return async (claim) => {
    if (claim.kind === "trigger") return startWorkflow(claim);
    const { shopId, secretVersion, url, topic, body } = claim;
    if (url === null) return { statusCode: null, error: "The shop has no endpoint.", timedOut: false };
    const began = performance.now();
    const signature = await signBody(await keyOf(shopId, secretVersion), new TextEncoder().encode(body));
    if (performance.now() - began > LONGEST_SIGNING_MS)
      throw new SdsError("failed", "to read the signing secret took too long");
    return attempt({ url, topic, body, signature });
  };
}

/**
 * The signature that every attempt of a delivery carries. Rejects if the secret cannot be read.
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

import { createHmac } from "node:crypto";
import { importSecret, signBody } from "../domain/signature.ts";
import type { Claim, DeliveryDetails } from "../store/deliveries.ts";
import type { WebhookStore } from "../store/webhooks.ts";
import { type AttemptOutcome, type AttemptSettings, createWebhookAttempt } from "./attempt.ts";

type Deliver = (claim: Claim) => Promise<AttemptOutcome>;

/**
 * Returns a function that attempts a claimed delivery. It signs a webhook with the version of the secret that was
 * current when the webhook was queued. The function rejects if the secret cannot be read.
 * @param startWorkflow attempts a trigger
 */
export function createDeliverer(webhooks: WebhookStore, settings: AttemptSettings, startWorkflow: Deliver): Deliver {
  const attempt = createWebhookAttempt(settings);
  const secrets = new Map<string, Promise<string>>();

  function secretOf(shopId: number, version: number): Promise<string> {
    const name = `${shopId} ${version}`;
    const known = secrets.get(name);
    if (known !== undefined) return known;
    const secret = webhooks.secretOf(shopId, version);
    secrets.set(name, secret);
    secret.catch(() => secrets.delete(name));
    return secret;
  }

  return async (claim) => {
    if (claim.kind === "trigger") return startWorkflow(claim);
    const { shopId, secretVersion, url, topic, body } = claim;
    if (url === null) return { statusCode: null, error: "The shop has no endpoint.", timedOut: false };
    // The same as signBody, which costs ten times as much because it is asynchronous.
    const digits = createHmac("sha256", await secretOf(shopId, secretVersion))
      .update(body)
      .digest("hex");
    const signature = `sha256=${digits}`;
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

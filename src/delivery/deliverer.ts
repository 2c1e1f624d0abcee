import type { Outcome } from "../domain/delivery.ts";
import { importSecret, signBody } from "../domain/signature.ts";
import type { Claim, DeliveryDetails } from "../store/deliveries.ts";
import type { WebhookStore } from "../store/webhooks.ts";
import { type AttemptSettings, attempt } from "./attempt.ts";

type Deliver = (claim: Claim) => Promise<Outcome & { timedOut: boolean }>;

/**
 * Attempts a claimed delivery: a webhook is signed with the version of the secret that it was queued under.
 * @param startWorkflow attempts a trigger
 */
export function deliverer(webhooks: WebhookStore, settings: AttemptSettings, startWorkflow: Deliver): Deliver {
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
    const signature = await signBody(await keyOf(shopId, secretVersion), new TextEncoder().encode(body));
    return attempt({ url, topic, body, signature }, settings);
  };
}

/** The signature that every attempt of a delivery has; null for a trigger, which goes to the platform with the shop's token. */
export async function signatureOf(webhooks: WebhookStore, shopId: number, { kind, body, secretVersion }: DeliveryDetails): Promise<string | null> {
  if (kind === "trigger") return null;
  return signBody(await importSecret(await webhooks.secretOf(shopId, secretVersion)), new TextEncoder().encode(body));
}

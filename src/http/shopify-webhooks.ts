import { SdsError } from "../domain/error.ts";
import { decodeUtf8 } from "../lib/text.ts";
import type { Log } from "../log.ts";
import type { InboxWriter } from "../shopify/inbox/inbox-writer.ts";
import { readWebhook, routeOf } from "../shopify/inbox/payload.ts";
import type { Verifier } from "../shopify/inbox/verify.ts";
import type { ShopStore } from "../store/shops.ts";
import { readBody } from "./body.ts";
import { respond } from "./respond.ts";

const MAX_BODY = 5 * 1024 * 1024;
const MAX_WEBHOOK_ID = 200;

export type PlatformHandler = (request: Request) => Promise<Response>;

/**
 * POST /platform/webhooks: the platform's own webhooks, answered 200 once they are committed to the inbox, and processed after that. A genuine one that is of no
 * use here is answered 200 too: the platform gives up on an endpoint that keeps refusing.
 */
export function platformHandler(verify: Verifier, shops: ShopStore, inboxWriter: InboxWriter, log: Log, now: () => number): PlatformHandler {
  return async (request) => {
    const body = await readBody(request, MAX_BODY);
    const { headers } = request;
    if (!verify(body, headers.get("x-shopify-hmac-sha256"))) {
      throw new SdsError("unauthorized", "X-Shopify-Hmac-Sha256 is not the HMAC of this body with the app's client secret.");
    }
    const topic = headers.get("x-shopify-topic") ?? "";
    const domain = headers.get("x-shopify-shop-domain") ?? "";
    const webhookId = headers.get("x-shopify-webhook-id") ?? "";
    const fields = { topic: topic.slice(0, 100), shop: domain.slice(0, 253), webhookId: webhookId.slice(0, MAX_WEBHOOK_ID) };

    const triggeredAt = Date.parse(headers.get("x-shopify-triggered-at") ?? "") || now();
    const text = decodeUtf8(body) ?? "";
    const intent = readWebhook({ topic, text, triggeredAt });
    const shop = await shops.find(domain);
    if (shop === undefined) log.info("a platform webhook is for a shop that is not here", fields);
    else if (intent.do === "ignore") log.info("a platform webhook was taken and not used", { ...fields, reason: intent.reason });
    else {
      const known = webhookId !== "" && webhookId.length <= MAX_WEBHOOK_ID ? webhookId : null;
      await inboxWriter.submit({ shopId: shop.id, webhookId: known, topic, ...routeOf(intent), body: text, triggeredAt });
    }
    return respond(200, "{}", { "Cache-Control": "no-store" });
  };
}

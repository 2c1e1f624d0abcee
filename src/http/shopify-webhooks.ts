import { SdsError } from "../domain/error.ts";
import { isDomain, type Shop } from "../domain/shop.ts";
import type { Log } from "../lib/log.ts";
import type { LoadGauge } from "../lib/reader-queue.ts";
import { decodeUtf8 } from "../lib/text.ts";
import { waitOf } from "../shopify/api/topics.ts";
import type { ConnectionWarnings } from "../shopify/api/warnings.ts";
import type { InboxWriter } from "../shopify/inbox/inbox-writer.ts";
import { changeTime, orderingOf, readWebhook } from "../shopify/inbox/payload.ts";
import { HMAC, type Verifier } from "../shopify/inbox/verify.ts";
import type { ConnectionStore } from "../store/port/connections.ts";
import type { ShopMoves } from "../store/port/shop-moves.ts";
import type { ShopStore } from "../store/port/shops.ts";
import { announcedBytes, type BodyReader } from "./body.ts";
import { refusals } from "./refusals.ts";
import { respond } from "./respond.ts";
import type { RouteContext, RouteHandler } from "./routes.ts";

/** Maximum size of a payload. The platform's largest payloads have some megabytes, such as an order with many lines. */
const LIMIT = { maxBytes: 5 * 1024 * 1024 };
/** Maximum length of a webhook's id. A longer id is not stored, so repeated webhooks with it are not recognized. */
const MAX_ID_LENGTH = 200;
/** Maximum lengths of a topic and of a domain in the log, in characters. */
const MAX_LOGGED_TOPIC = 100;
const MAX_LOGGED_DOMAIN = 253;
/** Minimum time between two warnings in the log about the same unknown shop. */
const UNKNOWN_SHOP_INTERVAL_MS = 86_400_000;
/** Maximum number of unknown shops to remember. */
const MAX_UNKNOWN_SHOPS = 1_000;

interface Dependencies {
  bodies: BodyReader;
  verify: Verifier;
  shops: ShopStore;
  moves: Pick<ShopMoves, "isAway">;
  connections: Pick<ConnectionStore, "shopMovedTo">;
  inboxWriter: InboxWriter;
  warnings: Pick<ConnectionWarnings, "noteVersion">;
  /** Counts the genuine webhooks that are being handled. During this work, the reader queue delays readers. */
  load: Pick<LoadGauge, "during">;
  log: Log;
  now: () => number;
}

/**
 * POST /platform/webhooks: answers 200 after the commit to the inbox. Answers 200 also to a genuine webhook that we do
 * not use. Otherwise the platform would remove our endpoint after repeated refusals.
 */
export function createPlatformWebhookHandler(dependencies: Dependencies): RouteHandler {
  const { bodies, verify, moves, inboxWriter, warnings, load, log, now } = dependencies;
  const warnOfUnknown = createUnknownShopLog(log, now);
  return async (request, context) => {
    const { headers } = request;
    announcedBytes(request, LIMIT);
    const hmac = headers.get("x-shopify-hmac-sha256");
    // A request without an HMAC is refused before its body is read.
    if (hmac === null || !HMAC.test(hmac)) throw unauthorized();
    using body = await bodies.read(request, { ...LIMIT, sender: context.client() });
    if (!verify(body.bytes, hmac)) throw unauthorized();
    return await load.during(take(headers, body.bytes, context));
  };

  async function take(headers: Headers, bytes: Uint8Array, context: RouteContext): Promise<Response> {
    const topic = headers.get("x-shopify-topic") ?? "";
    const domain = headers.get("x-shopify-shop-domain") ?? "";
    const webhookId = headers.get("x-shopify-webhook-id") ?? "";
    const logged = {
      topic: topic.slice(0, MAX_LOGGED_TOPIC),
      shop: domain.slice(0, MAX_LOGGED_DOMAIN),
      webhookId: webhookId.slice(0, MAX_ID_LENGTH),
    };

    const triggeredAt = changeTime(headers.get("x-shopify-triggered-at"), now());
    const text = decodeUtf8(bytes) ?? "";
    const intent = readWebhook({ topic, text, triggeredAt });
    const shop = await findShop(dependencies, domain);
    if (shop !== undefined) context.shop = shop.domain;
    if (shop !== undefined) await warnings.noteVersion(shop, "webhooks", headers.get("x-shopify-api-version"));
    // The shop has moved to another service, or moves now. The platform repeats the webhook, and that service then
    // receives it.
    if (shop === undefined && (await moves.isAway(domain))) throw refusals.shopMoves();
    if (shop === undefined) warnOfUnknown(logged);
    else if (intent.do === "ignore")
      log.info("a platform webhook was received and not used", { ...logged, reason: intent.reason });
    else {
      const keptId = webhookId !== "" && webhookId.length <= MAX_ID_LENGTH ? webhookId : null;
      const isNew = await inboxWriter.submit({
        shopId: shop.id,
        webhookId: keptId,
        topic,
        ...orderingOf(intent),
        ...waitOf(topic),
        body: text,
        triggeredAt,
      });
      if (!isNew && (await moves.isAway(shop.domain))) throw refusals.shopMoves();
    }
    return respond(200, "{}", { "Cache-Control": "no-store" });
  }
}

/** Finds a shop, even if its domain has changed on the platform but not here yet. */
async function findShop({ shops, connections }: Dependencies, domain: string): Promise<Shop | undefined> {
  const shop = await shops.find(domain);
  if (shop !== undefined || !isDomain(domain)) return shop;
  const movedId = await connections.shopMovedTo(domain);
  return movedId === undefined ? undefined : shops.byId(movedId);
}

/** Returns a function that logs a warning about an unknown shop, once a day for each shop. */
function createUnknownShopLog(log: Log, now: () => number): (logged: { topic: string; shop: string }) => void {
  const warnedAt = new Map<string, number>();
  return (logged) => {
    if (now() - (warnedAt.get(logged.shop) ?? Number.NEGATIVE_INFINITY) < UNKNOWN_SHOP_INTERVAL_MS) return;
    if (warnedAt.size >= MAX_UNKNOWN_SHOPS) warnedAt.clear();
    warnedAt.set(logged.shop, now());
    const advice = "add the shop, or run `sds shop rename` if a shop has this domain now";
    log.warn("platform webhooks name an unknown shop, and are not used", { ...logged, advice });
  };
}

function unauthorized(): SdsError {
  return new SdsError(
    "unauthorized",
    "X-Shopify-Hmac-Sha256 is not the HMAC of this body with the app's client secret.",
  );
}

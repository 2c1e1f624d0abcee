import type { AppKey } from "./app-key.ts";
import { type Answer, type Body, json } from "./http.ts";
import { EXCHANGE_GRANT, exchangeRefusal } from "./id-token.ts";
import type { PlatformShop } from "./shop.ts";

/** Answers to requests for a shop whose `access` is not open. */
export const REFUSED: Record<Exclude<PlatformShop["access"], "open">, [status: number, body: unknown]> = {
  frozen: [402, { errors: "Unavailable Shop" }],
  blocked: [403, { errors: "Forbidden" }],
  closed: [404, { errors: "Not Found" }],
  locked: [423, { errors: "Locked" }],
  suspected: [430, { errors: "Security Rejection" }],
};

/** The app that requests a token. */
interface RequestingApp {
  clientId: string;
  clientSecret: string;
  now: () => number;
  /** The platform's address, with `{shop}` for the domain. An assertion must name it. */
  url: string;
  key: AppKey;
}

/** The name of a request for a token. */
export function tokenOperation({ grant_type }: Body): "token" | "exchange" {
  return grant_type === EXCHANGE_GRANT ? "exchange" : "token";
}

/** Answers a request for a token, or for the exchange of an ID token. @param shop undefined if there is no such shop */
export async function answerToken(shop: PlatformShop | undefined, body: Body, app: RequestingApp): Promise<Answer> {
  if (shop === undefined) return json(404, { errors: "Not Found" });
  const isApp = body["client_id"] === app.clientId;
  const isProven =
    body["client_assertion"] === undefined
      ? body["client_secret"] === app.clientSecret
      : (await refuseAssertion(shop, body, app)) === undefined;
  if (!isApp || !isProven) return json(401, { error: "invalid_client" });
  if (shop.access !== "open") return json(...REFUSED[shop.access]);
  const isExchange = tokenOperation(body) === "exchange";
  if (!shop.installed) return json(400, { error: isExchange ? "invalid_subject_token" : "app_not_installed" });
  const { clientId, clientSecret: secret, now } = app;
  const refusal = isExchange ? exchangeRefusal(body, { shop: shop.domain, clientId, secret, now: now() }) : undefined;
  if (refusal !== undefined) return json(400, { error: refusal });
  const scopes = shop.scopes.join(",");
  const { status, body: granted } = isExchange ? shop.tokens.exchange(scopes) : shop.tokens.grant(body, scopes);
  return json(status, granted);
}

/** @returns why the app's assertion is refused */
async function refuseAssertion(shop: PlatformShop, body: Body, app: RequestingApp): Promise<string | undefined> {
  if (body["client_assertion_type"] !== "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
    return "wrong type of assertion";
  const { clientId, now } = app;
  const shopUrl = app.url.replace("{shop}", shop.domain);
  return app.key.refusal(String(body["client_assertion"]), { clientId, shopUrl, now: now() });
}

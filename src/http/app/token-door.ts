import { createHash } from "node:crypto";
import type { Shop } from "../../domain/shop.ts";
import type { Log } from "../../lib/log.ts";
import type { IdToken, IdTokenVerifier } from "../../shopify/install/id-token.ts";
import type { Installer, Opening } from "../../shopify/install/installer.ts";
import { type RouteContext, type RouteHandler, targetOf } from "../routes.ts";
import { bounceAddress, type FramedEntry, readBounce, readEntry } from "./entry-address.ts";
import {
  redirectDocument,
  respondBadAddress,
  respondBounce,
  respondConnecting,
  respondForeignFetch,
  respondNoToken,
  respondNotSetUp,
  respondTryAgain,
} from "./pages.tsx";

interface Dependencies {
  clientId: string | null;
  publicUrl: string | null;
  verifyIdToken: IdTokenVerifier;
  installer: Pick<Installer, "open">;
  now: () => number;
  log: Log;
}

/** Somebody of the shop's staff, who looks at the page in the platform's admin. */
export interface StaffVisit {
  shop: Shop;
  /** The shop's domain in the ID token, which may frame the page. */
  domain: string;
  /** The number of the staff member. */
  staff: string;
  /** 32 bytes that stay the same for a staff member's session with the app. */
  key: Uint8Array;
}

export interface TokenDoor {
  /** Finds who looks at a page, or answers the request. */
  open: (request: Request, context: RouteContext) => Promise<StaffVisit | Response>;
  /** GET /app/bounce. */
  bounce: RouteHandler;
}

/** A new ID token that is refused so soon after the bounce is not replaced by another one. */
const BOUNCE_AGAIN_AFTER_MS = 20_000;
const BEARER = /^Bearer ([\w.-]+)$/i;

/**
 * The door to the page in the platform's admin. Documents have the ID token in their address, and fetches have it in
 * their header. No cookie is read or set. The shop is the one of the ID token, whatever else the request says.
 */
export function createTokenDoor(dependencies: Dependencies): TokenDoor {
  const { clientId, publicUrl } = dependencies;
  /** The header Host can be any text. */
  const originOf = ({ headers }: Request, { isSecure }: RouteContext) =>
    publicUrl ?? URL.parse(`http${isSecure() ? "s" : ""}://${headers.get("host")}`)?.origin ?? "http://localhost";

  return {
    async open(request, context) {
      if (clientId === null) return respondNotSetUp();
      const place = { clientId, origin: originOf(request, context) };
      if (isDocument(request)) return openDocument(dependencies, place, targetOf(request.url));
      return openFetch(dependencies, place, request);
    },

    async bounce(request, context) {
      if (clientId === null) return respondNotSetUp();
      const shop = readBounce(targetOf(request.url), { origin: originOf(request, context) });
      return shop === undefined ? respondBadAddress() : respondBounce(clientId, shop);
    },
  };
}

type Place = Parameters<typeof readEntry>[1];

/** Old browsers do not say what they load. Then a GET without a bearer is a document. */
function isDocument({ method, headers }: Request): boolean {
  const destination = headers.get("sec-fetch-dest");
  const isLoaded = destination === null || ["document", "iframe", "frame"].includes(destination);
  return method === "GET" && isLoaded && !headers.has("authorization");
}

async function openDocument(dependencies: Dependencies, place: Place, target: string): Promise<StaffVisit | Response> {
  const { clientId } = place;
  const entry = readEntry(target, place);
  if ("refused" in entry) return respondBadAddress();
  if ("outside" in entry) return redirectDocument(entry.outside);
  const { framed } = entry;
  if (framed === null) return respondBounce(clientId, undefined);
  if (framed.idToken === null) return redirectDocument(bounceAddress(framed, dependencies.now()));
  const idToken = await dependencies.verifyIdToken(framed.idToken);
  if ("refused" in idToken) return bounceOnce(dependencies, clientId, framed, idToken.refused);
  if (idToken.shop !== framed.shop) return respondBadAddress();
  const opening = await dependencies.installer.open(idToken, framed.idToken);
  if ("waits" in opening && opening.waits === "token")
    return bounceOnce(dependencies, clientId, framed, "refused by the platform");
  return answerTo(opening, idToken, { clientId, shop: framed.shop, reload: framed.reload });
}

/** Asks App Bridge for a new ID token, unless it has just given one: the page would be loaded again without end. */
function bounceOnce({ now, log }: Dependencies, clientId: string, framed: FramedEntry, refused: string): Response {
  const { shop, reload, bouncedAt } = framed;
  log.debug("an ID token was refused", { shop, refused });
  const isAgain = bouncedAt !== null && Math.abs(now() - bouncedAt) < BOUNCE_AGAIN_AFTER_MS;
  return isAgain
    ? respondTryAgain("token", { clientId, shop, reload })
    : redirectDocument(bounceAddress(framed, now()));
}

async function openFetch(
  { verifyIdToken, installer, log }: Dependencies,
  { clientId, origin }: Place,
  request: Request,
): Promise<StaffVisit | Response> {
  if (isOfAnotherSite(request, origin)) return respondForeignFetch();
  const text = BEARER.exec(request.headers.get("authorization") ?? "")?.[1] ?? "";
  const idToken = await verifyIdToken(text);
  if ("refused" in idToken) {
    log.debug("an ID token was refused", { refused: idToken.refused });
    return respondNoToken();
  }
  const opening = await installer.open(idToken, text);
  if ("waits" in opening && opening.waits === "token") return respondNoToken();
  const reload = `/app?${new URLSearchParams({ shop: idToken.shop, embedded: "1" })}`;
  return answerTo(opening, idToken, { clientId, shop: idToken.shop, reload });
}

/** Browsers send Sec-Fetch-Site to https and localhost. Elsewhere, an Origin shows another site. */
function isOfAnotherSite({ headers }: Request, origin: string): boolean {
  const site = headers.get("sec-fetch-site");
  if (site !== null) return site !== "same-origin";
  const sender = headers.get("origin");
  return sender !== null && sender !== "null" && sender !== origin;
}

function answerTo(
  opening: Opening,
  idToken: IdToken,
  page: Parameters<typeof respondConnecting>[0],
): StaffVisit | Response {
  if ("waits" in opening)
    return opening.waits === "connecting" ? respondConnecting(page) : respondTryAgain(opening.waits, page);
  const { shop: domain, staff, session } = idToken;
  // The ID token itself is no key, because the platform makes another one each minute.
  const key = createHash("sha256")
    .update(JSON.stringify([`https://${domain}`, staff, session]))
    .digest();
  return { shop: opening.shop, domain, staff, key };
}

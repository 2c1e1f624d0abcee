import { createHash } from "node:crypto";
import { SESSION_LIFE_MS } from "../../actions/session.ts";
import type { Log } from "../../lib/log.ts";
import type { IdToken, IdTokenVerifier } from "../../shopify/install/id-token.ts";
import type { Installer, Opening } from "../../shopify/install/installer.ts";
import type { SessionStore } from "../../store/port/sessions.ts";
import type { ShopStore } from "../../store/port/shops.ts";
import type { Door, Frame, Visitor } from "../admin/visitor.ts";
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
  shops: Pick<ShopStore, "byId">;
  sessions: Pick<SessionStore, "put">;
  clientId: string | null;
  publicUrl: string | null;
  verifyIdToken: IdTokenVerifier;
  installer: Pick<Installer, "open">;
  now: () => number;
  log: Log;
}

/** The door of `/app`, the page in the platform's admin. */
export interface TokenDoor extends Door {
  /** GET /app/bounce. */
  bounce: RouteHandler;
}

/** Minimum time between two requests for a new ID token. If a token is refused earlier, the door shows an error. */
const BOUNCE_AGAIN_AFTER_MS = 20_000;
const BEARER = /^Bearer ([\w.-]+)$/i;

/**
 * Creates the door of `/app`. Documents have the ID token in their address, and fetches have it in a header. No cookie
 * is read or set. Only the ID token decides which shop the visitor belongs to.
 */
export function createTokenDoor(dependencies: Dependencies): TokenDoor {
  const { shops, sessions, clientId, publicUrl, verifyIdToken, now } = dependencies;
  /** Returns our origin as the browser sees it. The header Host can be any text, even an invalid host. */
  const originOf = ({ headers }: Request, { isSecure }: RouteContext) =>
    publicUrl ?? URL.parse(`http${isSecure() ? "s" : ""}://${headers.get("host")}`)?.origin ?? "http://localhost";

  return {
    root: "/app",

    async open(request, context) {
      if (clientId === null) return respondNotSetUp();
      const place = { clientId, origin: originOf(request, context) };
      if (isDocument(request)) return openDocument(dependencies, place, targetOf(request.url));
      return openFetch(dependencies, place, request);
    },

    async bounce(request, context) {
      if (clientId === null) return respondNotSetUp();
      const shop = readBounce(targetOf(request.url), { origin: originOf(request, context) });
      return shop === undefined ? respondBadAddress() : respondBounce({ clientId, shop });
    },

    async keep(visitor) {
      const shop = await shops.byId(visitor.shop.id);
      if (shop === undefined) return undefined;
      // Stores the session, because used forms and notices belong to it. They are removed with the session.
      await sessions.put(visitor.key, shop.id, now(), now() + SESSION_LIFE_MS);
      return { ...visitor, shop };
    },

    refuse: respondNoToken,

    async frameFor(request) {
      if (clientId === null) return null;
      const entry = readEntry(targetOf(request.url), { clientId, origin: "http://localhost" });
      if ("framed" in entry && entry.framed !== null) return { clientId, shop: entry.framed.shop };
      const idToken = await verifyIdToken(bearerOf(request));
      return "refused" in idToken ? null : { clientId, shop: idToken.shop };
    },
  };
}

type Place = Parameters<typeof readEntry>[1];

/** Whether the request is for a document. In an old browser, every GET without a bearer token is a document. */
function isDocument({ method, headers }: Request): boolean {
  const destination = headers.get("sec-fetch-dest");
  const isLoaded = destination === null || ["document", "iframe", "frame"].includes(destination);
  return method === "GET" && isLoaded && !headers.has("authorization");
}

async function openDocument(dependencies: Dependencies, place: Place, target: string): Promise<Visitor | Response> {
  const { clientId } = place;
  const entry = readEntry(target, place);
  if ("refused" in entry) return respondBadAddress();
  if ("outside" in entry) return redirectDocument(entry.outside);
  const { framed } = entry;
  if (framed === null) return respondBounce({ clientId, shop: null });
  if (framed.idToken === null) return redirectDocument(bounceAddress(framed, dependencies.now()));
  const idToken = await dependencies.verifyIdToken(framed.idToken);
  if ("refused" in idToken) return bounceOnce(dependencies, clientId, framed, idToken.refused);
  if (idToken.shop !== framed.shop) return respondBadAddress();
  const opening = await dependencies.installer.open(idToken, framed.idToken);
  if ("waits" in opening && opening.waits === "token")
    return bounceOnce(dependencies, clientId, framed, "refused by the platform");
  return answerTo(opening, idToken, { clientId, shop: framed.shop }, framed.reload);
}

/** Asks App Bridge for a new ID token, but not twice in a row. Otherwise the page could reload again and again. */
function bounceOnce({ now, log }: Dependencies, clientId: string, framed: FramedEntry, refused: string): Response {
  const { shop, reload, bouncedAt } = framed;
  log.debug("an ID token was refused", { shop, refused });
  const isAgain = bouncedAt !== null && Math.abs(now() - bouncedAt) < BOUNCE_AGAIN_AFTER_MS;
  return isAgain
    ? respondTryAgain("token", { clientId, shop }, reload)
    : redirectDocument(bounceAddress(framed, now()));
}

async function openFetch(
  { verifyIdToken, installer, log }: Dependencies,
  { clientId, origin }: Place,
  request: Request,
): Promise<Visitor | Response> {
  if (isOfAnotherSite(request, origin)) return respondForeignFetch();
  const text = bearerOf(request);
  const idToken = await verifyIdToken(text);
  if ("refused" in idToken) {
    log.debug("an ID token was refused", { refused: idToken.refused });
    return respondNoToken();
  }
  const opening = await installer.open(idToken, text);
  if ("waits" in opening && opening.waits === "token") return respondNoToken();
  const reload = `/app?${new URLSearchParams({ shop: idToken.shop, embedded: "1" })}`;
  return answerTo(opening, idToken, { clientId, shop: idToken.shop }, reload);
}

/** Returns the ID token of a fetch; empty without one. */
function bearerOf({ headers }: Request): string {
  return BEARER.exec(headers.get("authorization") ?? "")?.[1] ?? "";
}

/**
 * Whether another site sent the request. Browsers send Sec-Fetch-Site only to https and localhost. At other addresses,
 * the header Origin tells which site sent the request.
 */
function isOfAnotherSite({ headers }: Request, origin: string): boolean {
  const site = headers.get("sec-fetch-site");
  if (site !== null) return site !== "same-origin";
  const sender = headers.get("origin");
  return sender !== null && sender !== "null" && sender !== origin;
}

function answerTo(opening: Opening, idToken: IdToken, frame: Frame, reload: string): Visitor | Response {
  if ("waits" in opening)
    return opening.waits === "connecting"
      ? respondConnecting(frame, reload)
      : respondTryAgain(opening.waits, frame, reload);
  const { shop: domain, staff, session } = idToken;
  // The ID token itself cannot be the key, because the platform makes a new token every minute.
  const key = sha256(JSON.stringify([`https://${domain}`, staff, session]));
  const csrf = sha256(Buffer.concat([Buffer.from("csrf "), key])).toString("base64url");
  return { shop: opening.shop, who: `staff ${staff}`, key, csrf, root: "/app", frame };
}

function sha256(data: string | Uint8Array): Buffer {
  return createHash("sha256").update(data).digest();
}

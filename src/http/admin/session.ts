import { csrfToken, hashToken, isToken, newToken, SESSION_LIFE } from "../../domain/session.ts";
import type { Shop } from "../../domain/shop.ts";
import type { AdminParts } from "./visit.ts";
import { WrongTokens } from "./wrong-tokens.ts";

const COOKIE = "sds_session";
const ATTRIBUTES = "HttpOnly; SameSite=Strict; Path=/admin";
const LOOPBACK = /^(?:127\.|::1$|::ffff:127\.)/;

/** Somebody who is signed in. */
export interface Session {
  shop: Shop;
  csrf: string;
  hash: Uint8Array;
  /** Tells sessions apart in memory. */
  id: string;
}

/** What came of opening a sign-in link. */
type SignIn = { cookie: string } | { refused: "wrong" } | { refused: "limit"; wait: number };

/** The one place that knows tokens: opens sessions, finds and ends them. */
export class Sessions {
  private readonly parts: AdminParts;
  private readonly wrong: WrongTokens;

  constructor(parts: AdminParts) {
    this.parts = parts;
    this.wrong = new WrongTokens(parts.now);
  }

  /** @param peer see `addressOf` */
  async signIn(request: Request, token: string, peer: string | undefined): Promise<SignIn> {
    const { store, now, random } = this.parts;
    const address = addressOf(request, peer);
    const wait = this.wrong.wait(address);
    if (wait !== undefined) return { refused: "limit", wait };
    const session = newToken(random);
    if (isToken(token) && (await store.sessions.begin(hashToken(token), hashToken(session), now(), now() + SESSION_LIFE))) {
      return { cookie: `${COOKIE}=${session}; ${ATTRIBUTES}; Max-Age=${SESSION_LIFE / 1000}${this.isSecure(request, peer) ? "; Secure" : ""}` };
    }
    this.wrong.note(address);
    return { refused: "wrong" };
  }

  /** The session of the request's cookie, if it is in force. */
  async find(request: Request): Promise<Session | undefined> {
    const token = cookieOf(request);
    if (token === undefined) return undefined;
    const hash = hashToken(token);
    const shop = await this.parts.store.sessions.find(hash, this.parts.now());
    return shop === undefined ? undefined : { shop, csrf: csrfToken(token), hash, id: hash.toHex() };
  }

  /** @returns the cookie that takes the other one's place */
  async signOut({ hash }: Session): Promise<string> {
    await this.parts.store.sessions.end(hash);
    return `${COOKIE}=; ${ATTRIBUTES}; Max-Age=0`;
  }

  private isSecure(request: Request, peer: string | undefined): boolean {
    const forwarded = isLoopback(peer) && request.headers.get("x-forwarded-proto") === "https";
    return forwarded || request.url.startsWith("https:") || this.parts.publicUrl?.startsWith("https:") === true;
  }
}

/** Behind a reverse proxy on this machine, the address is the one that the proxy added; anybody else could write what they like there. */
function addressOf(request: Request, peer: string | undefined): string {
  const forwarded = isLoopback(peer) ? request.headers.get("x-forwarded-for")?.split(",").at(-1)?.trim() : undefined;
  return forwarded ?? peer ?? "";
}

/** Without a socket the request comes from this very process. */
function isLoopback(peer: string | undefined): boolean {
  return peer === undefined || LOOPBACK.test(peer);
}

function cookieOf(request: Request): string | undefined {
  const pairs = (request.headers.get("cookie") ?? "").split(";").map((pair) => pair.trim());
  const value = pairs.find((pair) => pair.startsWith(`${COOKIE}=`))?.slice(COOKIE.length + 1);
  return value !== undefined && isToken(value) ? value : undefined;
}

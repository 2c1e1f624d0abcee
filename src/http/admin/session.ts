import ipaddr from "ipaddr.js";
import { csrfToken, hashToken, isToken, newToken, SESSION_LIFE } from "../../domain/session.ts";
import type { Shop } from "../../domain/shop.ts";
import type { AdminDependencies } from "./admin-request.ts";
import { SignInLimiter } from "./sign-in-limiter.ts";

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
type SignIn = { cookie: string; shop: string } | { refused: "wrong"; address: string } | { refused: "limit"; wait: number; address: string };

/** The one place that knows tokens: opens sessions, finds and ends them. */
export class Sessions {
  private readonly parts: AdminDependencies;
  private readonly wrong: SignInLimiter;

  constructor(parts: AdminDependencies) {
    this.parts = parts;
    this.wrong = new SignInLimiter(parts.now);
  }

  /** @param peer see `addressOf` */
  async signIn(request: Request, token: string, peer: string | undefined): Promise<SignIn> {
    const { store, now, random } = this.parts;
    const address = addressOf(request, peer);
    const wait = this.wrong.wait(address);
    if (wait !== undefined) return { refused: "limit", wait, address };
    // Counted before anybody else's turn comes, and taken back if it was right.
    const takeBack = this.wrong.note(address);
    const session = newToken(random);
    if (!isToken(token) || !(await store.sessions.begin(hashToken(token), hashToken(session), now(), now() + SESSION_LIFE)))
      return { refused: "wrong", address };
    takeBack();
    const before = cookieOf(request);
    if (before !== undefined) await store.sessions.end(hashToken(before));
    const shop = (await store.sessions.find(hashToken(session), now()))?.domain ?? "";
    return { shop, cookie: `${COOKIE}=${session}; ${ATTRIBUTES}; Max-Age=${SESSION_LIFE / 1000}${this.isSecure(request, peer) ? "; Secure" : ""}` };
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
    const forwarded = isLoopback(peer) && request.headers.get("x-forwarded-proto")?.split(",")[0]?.trim().toLowerCase() === "https";
    return forwarded || request.url.startsWith("https:") || this.parts.publicUrl?.startsWith("https:") === true;
  }
}

/**
 * Behind a reverse proxy on this machine, the address is the one that the proxy added; anybody else could write what they like there. Of an IPv6 address the network counts, for each
 * of its hosts has addresses without end.
 */
function addressOf(request: Request, peer: string | undefined): string {
  const forwarded = isLoopback(peer) ? request.headers.get("x-forwarded-for")?.split(",").at(-1)?.trim() : undefined;
  const address = forwarded !== undefined && ipaddr.isValid(forwarded) ? forwarded : (peer ?? "");
  if (!ipaddr.isValid(address)) return "";
  const parsed = ipaddr.process(address);
  return parsed instanceof ipaddr.IPv6 ? parsed.parts.slice(0, 4).join(":") : parsed.toString();
}

/** Without a socket the request comes from this very process. */
function isLoopback(peer: string | undefined): boolean {
  return peer === undefined || LOOPBACK.test(peer);
}

/** Several are of nobody: a neighbouring site can put its own beside ours, and whose settings would they be then. */
function cookieOf(request: Request): string | undefined {
  const pairs = (request.headers.get("cookie") ?? "").split(";").map((pair) => pair.trim());
  const values = new Set(pairs.filter((pair) => pair.startsWith(`${COOKIE}=`)).map((pair) => pair.slice(COOKIE.length + 1)));
  const [value] = [...values].filter(isToken);
  return values.size === 1 ? value : undefined;
}

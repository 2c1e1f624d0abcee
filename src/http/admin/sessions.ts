import { csrfToken, hashToken, isToken, newToken, SESSION_LIFE_MS } from "../../domain/session.ts";
import type { Shop } from "../../domain/shop.ts";
import { clientNetworkOf, isLoopback } from "../client-network.ts";
import type { AdminDependencies } from "./admin-request.ts";
import { createSignInLimiter } from "./sign-in-limiter.ts";

const COOKIE = "sds_session";
const ATTRIBUTES = "HttpOnly; SameSite=Strict; Path=/admin";

/** Somebody who is signed in. */
export interface Session {
  shop: Shop;
  csrf: string;
  hash: Uint8Array;
  /** Tells sessions apart in memory. */
  id: string;
}

/** The result of opening a sign-in link. */
type SignIn =
  | { cookie: string; shop: string }
  | { refused: "wrong"; address: string }
  | { refused: "limit"; wait: number; address: string };

export interface Sessions {
  /** @param peer the address at the other end of the socket; undefined for a request that this process makes itself */
  signIn(request: Request, token: string, peer: string | undefined): Promise<SignIn>;
  /** The session of the request's cookie, unless it has ended. */
  find(request: Request): Promise<Session | undefined>;
  /** @returns the cookie that removes the session's cookie */
  signOut(session: Session): Promise<string>;
}

/** Opens, finds and ends sessions. No other part of the settings page knows tokens. */
export function createSessions({ store, now, clock, random, publicUrl }: AdminDependencies): Sessions {
  const limiter = createSignInLimiter(clock);

  function isSecure(request: Request, peer: string | undefined): boolean {
    const forwarded =
      isLoopback(peer) && request.headers.get("x-forwarded-proto")?.split(",")[0]?.trim().toLowerCase() === "https";
    return forwarded || request.url.startsWith("https:") || publicUrl?.startsWith("https:") === true;
  }

  return {
    async signIn(request, token, peer) {
      const address = clientNetworkOf(request, peer);
      const wait = limiter.waitSeconds(address);
      if (wait !== undefined) return { refused: "limit", wait, address };
      // Counts before the database answers, so that wrong tokens sent at the same time all count. A right token takes
      // its count back.
      const takeBack = limiter.count(address);
      const session = newToken(random);
      if (!isToken(token)) return { refused: "wrong", address };
      const began = await store.sessions
        .begin(hashToken(token), hashToken(session), now(), now() + SESSION_LIFE_MS)
        .catch((thrown: unknown) => {
          // Nobody knows whether the token was wrong.
          takeBack();
          throw thrown;
        });
      if (!began) return { refused: "wrong", address };
      takeBack();
      const before = tokenOf(request);
      if (before !== undefined) await store.sessions.end(hashToken(before));
      const shop = (await store.sessions.find(hashToken(session), now()))?.domain ?? "";
      const secure = isSecure(request, peer) ? "; Secure" : "";
      return { shop, cookie: `${COOKIE}=${session}; ${ATTRIBUTES}; Max-Age=${SESSION_LIFE_MS / 1000}${secure}` };
    },

    async find(request) {
      const token = tokenOf(request);
      if (token === undefined) return undefined;
      const hash = hashToken(token);
      const shop = await store.sessions.find(hash, now());
      return shop === undefined ? undefined : { shop, csrf: csrfToken(token), hash, id: hash.toHex() };
    },

    async signOut({ hash }) {
      await store.sessions.end(hash);
      return `${COOKIE}=; ${ATTRIBUTES}; Max-Age=0`;
    },
  };
}

/** The token in the request's cookie. Several cookies count as none: another site of the domain can add one. */
function tokenOf(request: Request): string | undefined {
  const pairs = (request.headers.get("cookie") ?? "").split(";").map((pair) => pair.trim());
  const values = new Set(
    pairs.filter((pair) => pair.startsWith(`${COOKIE}=`)).map((pair) => pair.slice(COOKIE.length + 1)),
  );
  const [value] = [...values].filter(isToken);
  return values.size === 1 ? value : undefined;
}

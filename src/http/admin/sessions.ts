import { csrfToken, hashToken, isToken, newToken, SESSION_LIFE_MS } from "../../actions/session.ts";
import type { Shop } from "../../domain/shop.ts";
import type { RouteContext } from "../routes.ts";
import type { AdminDependencies } from "./admin-request.ts";

const COOKIE = "sds_session";
const ATTRIBUTES = "HttpOnly; SameSite=Strict; Path=/admin";

export interface Session {
  shop: Shop;
  csrf: string;
  hash: Uint8Array;
}

/** The result of opening a sign-in link. */
type SignIn =
  | { cookie: string; shop: string }
  | { refused: "wrong"; address: string }
  | { refused: "limit"; wait: number; address: string };

export interface Sessions {
  signIn(request: Request, token: string, client: Pick<RouteContext, "client" | "isSecure">): Promise<SignIn>;
  /** @returns the session of the request's cookie; undefined if the session has ended */
  find(request: Request): Promise<Session | undefined>;
  /** Ends the session. @returns a cookie that removes the session's cookie */
  signOut(session: Session): Promise<string>;
}

/** Creates sessions. Only this part of the settings page knows tokens. */
export function createSessions({ store, now, steadyTime, random, publicUrl }: AdminDependencies): Sessions {
  const isPublicSecure = publicUrl?.startsWith("https:") === true;

  return {
    async signIn(request, token, client) {
      const address = client.client();
      // Every token is counted as wrong before it is checked. So requests at the same moment cannot pass the limit
      // together. The count of a right token is taken back below.
      const at = steadyTime();
      const waitMs = await store.settingsPage.countToken(address, at);
      if (waitMs !== undefined) return { refused: "limit", wait: Math.ceil(waitMs / 1000), address };
      // If this fails, the count still ends within a minute.
      const takeBack = () => store.settingsPage.takeBackToken(address, at).catch(() => undefined);
      const session = newToken(random);
      if (!isToken(token)) return { refused: "wrong", address };
      const began = await store.sessions
        .begin(hashToken(token), hashToken(session), now(), now() + SESSION_LIFE_MS)
        .catch(async (thrown: unknown) => {
          // The token may be right although the store failed, so it must not count as wrong.
          await takeBack();
          throw thrown;
        });
      if (!began) return { refused: "wrong", address };
      await takeBack();
      const before = tokenOf(request);
      if (before !== undefined) await store.sessions.end(hashToken(before));
      const shop = (await store.sessions.find(hashToken(session), now()))?.domain ?? "";
      const secure = isPublicSecure || client.isSecure() ? "; Secure" : "";
      return { shop, cookie: `${COOKIE}=${session}; ${ATTRIBUTES}; Max-Age=${SESSION_LIFE_MS / 1000}${secure}` };
    },

    async find(request) {
      const token = tokenOf(request);
      if (token === undefined) return undefined;
      const hash = hashToken(token);
      const shop = await store.sessions.find(hash, now());
      return shop === undefined ? undefined : { shop, csrf: csrfToken(token), hash };
    },

    async signOut({ hash }) {
      await store.sessions.end(hash);
      return `${COOKIE}=; ${ATTRIBUTES}; Max-Age=0`;
    },
  };
}

/** Returns the token of the cookie; undefined for several cookies, because a sibling domain can add a cookie. */
function tokenOf(request: Request): string | undefined {
  const pairs = (request.headers.get("cookie") ?? "").split(";").map((pair) => pair.trim());
  const values = new Set(
    pairs.filter((pair) => pair.startsWith(`${COOKIE}=`)).map((pair) => pair.slice(COOKIE.length + 1)),
  );
  const [value] = [...values].filter(isToken);
  return values.size === 1 ? value : undefined;
}

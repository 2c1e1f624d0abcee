import { audited } from "../../actions/audit.ts";
import {
  csrfToken,
  hashToken,
  isToken,
  MAX_SESSION_LIFE_MS,
  newToken,
  SESSION_LIFE_MS,
} from "../../actions/session.ts";
import { type Actor, auditEntry } from "../../domain/audit.ts";
import type { RouteContext } from "../routes.ts";
import type { AdminDependencies } from "./admin-request.ts";
import { signedOutPage } from "./messages.tsx";
import type { Door, Visitor } from "./visitor.ts";

const COOKIE = "sds_session";
const ATTRIBUTES = "HttpOnly; SameSite=Strict; Path=/admin";

/** The result of using up a sign-in link. */
type SignIn =
  | { cookie: string; shop: string }
  | { refused: "wrong"; address: string }
  | { refused: "limit"; wait: number; address: string };

/** The door of `/admin`. A session's cookie opens it, and a sign-in link gives this cookie. */
export interface SessionDoor extends Door {
  signIn(request: Request, token: string, client: Pick<RouteContext, "client" | "isSecure">): Promise<SignIn>;
  /** Ends the session. @returns a cookie that removes the session's cookie */
  signOut(visitor: Visitor, actor: Actor): Promise<string>;
}

/** Creates the door of `/admin`. Only this door knows the tokens of sessions. */
export function createSessionDoor({
  store,
  now,
  steadyTime,
  random,
  publicUrl,
}: Pick<AdminDependencies, "store" | "now" | "steadyTime" | "random" | "publicUrl">): SessionDoor {
  const isPublicSecure = publicUrl?.startsWith("https:") === true;

  return {
    root: "/admin",

    async open(request) {
      const token = tokenOf(request);
      if (token === undefined) return signedOutPage();
      const key = hashToken(token);
      const session = await store.sessions.find(key, now());
      if (session === undefined) return signedOutPage();
      const { shop, expiresAt } = session;
      // A view extends the session, but a session is written at most once in six hours.
      if (expiresAt - now() < SESSION_LIFE_MS / 2)
        await store.sessions.renew(key, now() + SESSION_LIFE_MS, MAX_SESSION_LIFE_MS);
      return { shop, key, csrf: csrfToken(token), who: nameOf(key), root: "/admin", frame: null };
    },

    async keep(visitor) {
      const session = await store.sessions.find(visitor.key, now());
      return session === undefined ? undefined : { ...visitor, shop: session.shop };
    },

    refuse: signedOutPage,
    frameFor: async () => null,

    async signIn(request, token, client) {
      const address = client.client();
      // Counts every token as wrong before the check. Otherwise simultaneous requests could exceed the limit. The count
      // of a right token is taken back below.
      const at = steadyTime();
      const waitMs = await store.settingsPage.countToken(address, at);
      if (waitMs !== undefined) return { refused: "limit", wait: Math.ceil(waitMs / 1000), address };
      // If the count cannot be taken back, it expires within a minute.
      const takeBack = () => store.settingsPage.takeBackToken(address, at).catch(() => undefined);
      const session = newToken(random);
      if (!isToken(token)) return { refused: "wrong", address };
      const key = hashToken(session);
      const entry = auditEntry({ role: "merchant", who: nameOf(key), from: address }, now(), "session.begun");
      const began = await store.sessions
        .begin(hashToken(token), key, entry, now() + SESSION_LIFE_MS)
        .catch(async (thrown: unknown) => {
          // The store failed, so the token may be right. Then the token must not be counted as wrong.
          await takeBack();
          throw thrown;
        });
      if (!began) return { refused: "wrong", address };
      await takeBack();
      const before = tokenOf(request);
      if (before !== undefined) await store.sessions.end(hashToken(before));
      const shop = (await store.sessions.find(key, now()))?.shop.domain ?? "";
      return { shop, cookie: cookieOf(session, isPublicSecure || client.isSecure()) };
    },

    async signOut({ key, shop }, actor) {
      await audited(store, { shop, actor }, now(), "session.ended").sessions.end(key);
      return `${COOKIE}=; ${ATTRIBUTES}; Max-Age=0`;
    },
  };
}

/** Returns a session's cookie. The cookie gets the longest lifetime, because views renew only the stored session. */
function cookieOf(token: string, isSecure: boolean): string {
  return `${COOKIE}=${token}; ${ATTRIBUTES}; Max-Age=${MAX_SESSION_LIFE_MS / 1000}${isSecure ? "; Secure" : ""}`;
}

/** Returns the name of a session for logs and the audit list. @param key the hash of the session's token */
function nameOf(key: Uint8Array): string {
  return `session ${key.toHex().slice(0, 6)}`;
}

/** Returns the token of the cookie; undefined for several cookies, because a sibling domain can have added one. */
function tokenOf(request: Request): string | undefined {
  const pairs = (request.headers.get("cookie") ?? "").split(";").map((pair) => pair.trim());
  const values = new Set(
    pairs.filter((pair) => pair.startsWith(`${COOKIE}=`)).map((pair) => pair.slice(COOKIE.length + 1)),
  );
  const [value] = [...values].filter(isToken);
  return values.size === 1 ? value : undefined;
}

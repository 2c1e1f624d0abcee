/** @jsxImportSource preact */

import { hashToken } from "../../actions/session.ts";
import { type ErrorCode, SdsError } from "../../domain/error.ts";
import { sentence } from "../../lib/text.ts";
import { StoreError } from "../../store/port/store-error.ts";
import { isUnavailable, logUnavailable, newRequestId } from "../respond.ts";
import { queryOf, type RouteContext, type RouteHandler, urlPathOf } from "../routes.ts";
import {
  type AdminDependencies,
  type AdminPage,
  type AdminSection,
  type Handler,
  type Notice,
  SECTIONS,
  type SeeOther,
} from "./admin-request.ts";
import { readForm } from "./form.ts";
import { respondFrame, respondPage, respondPart } from "./layout.tsx";
import {
  badLink,
  respondForeignForm,
  respondRepeatedForm,
  signedOut,
  signedOutPage,
  tooMany,
  tryAgain,
  welcome,
} from "./messages.tsx";
import { createSessions, type Session, type Sessions } from "./sessions.ts";

const HOME: AdminSection = "/admin/keys";
/** Notices that are not shown within this time are dropped, with their secrets. */
const NOTICE_LIFE_MS = 5 * 60_000;

/** The settings page: its dependencies, and the sessions of its visitors. */
export interface Site extends AdminDependencies {
  sessions: Sessions;
}

/** A request with a session. */
interface Visit {
  request: Request;
  session: Session;
  path: string;
  /** The value of `:id` in the path. */
  id: string;
}

export function createSite(dependencies: AdminDependencies): Site {
  return { ...dependencies, sessions: createSessions(dependencies) };
}

/** Opens a sign-in link: responds with a session's cookie or a refusal. */
export async function signIn({ sessions, log }: Site, request: Request, context: RouteContext): Promise<Response> {
  // A prefetch of the link must not use up its token.
  if (request.headers.get("sec-purpose")?.includes("prefetch"))
    return new Response(null, { status: 503, headers: { "Cache-Control": "no-store" } });
  const token = new URLSearchParams(queryOf(request.url)).get("token") ?? "";
  const result = await sessions.signIn(request, token, context);
  if ("cookie" in result) {
    log.info("a browser signed in to the settings page", { shop: result.shop });
    return welcome(result.cookie);
  }
  const { address, refused: reason } = result;
  log.warn("a sign-in link of the settings page was refused", { address, reason });
  return result.refused === "limit" ? tooMany(result.wait) : badLink();
}

/** Runs `visit` if the browser is signed in. Otherwise shows a refusal as a page. */
function signedIn(site: Site, visit: (visit: Visit) => Response | Promise<Response>): RouteHandler {
  const { sessions } = site;
  return async (request, { id }) => {
    const path = urlPathOf(request.url);
    const session = await sessions.find(request);
    if (session === undefined) return signedOutPage();
    try {
      return await visit({ request, session, path, id });
    } catch (thrown) {
      if (isRefused(thrown) && (await sessions.find(request)) === undefined) return signedOutPage();
      const status = thrown instanceof SdsError ? REFUSALS[thrown.code] : undefined;
      if (!(thrown instanceof SdsError) || status === undefined) throw thrown;
      return respondPage(refusal(status, sentence(thrown.message), sectionOf(path)), session.shop, session.csrf, []);
    }
  };
}

/** Makes the route that shows a page or takes its form. */
export function pageRoute(site: Site, handler: Handler): RouteHandler {
  return signedIn(site, (visit) => respondToVisit(site, handler, visit));
}

/** Makes the route for a GET of a path that has only a form: it redirects to the path's section. */
export function sectionRoute(site: Site): RouteHandler {
  return signedIn(site, ({ session, path }) => seeOther(site, { to: sectionOf(path) }, session));
}

export function signOutRoute(site: Site): RouteHandler {
  return signedIn(site, async ({ request, session, path }) => {
    if ((await readForm(site.bodies, request, session)) === undefined) return refuseForm(site, session, path);
    return signedOut(await site.sessions.signOut(session));
  });
}

/** Makes a handler respond with a page if the database is unavailable or a form took too long to arrive. */
export function orTryAgain({ log }: Site, handler: RouteHandler): RouteHandler {
  return async (request, context) => {
    try {
      return await handler(request, context);
    } catch (thrown) {
      if (thrown instanceof SdsError && thrown.code === "unavailable") return tryAgain(newRequestId(), thrown.message);
      if (!isUnavailable(thrown)) throw thrown;
      const requestId = newRequestId();
      logUnavailable(thrown, requestId, log);
      return tryAgain(requestId, "The database is busy or cannot be used at the moment.");
    }
  };
}

async function respondToVisit(site: Site, handler: Handler, { request, session, path, id }: Visit): Promise<Response> {
  const { csrf } = session;
  const isPost = request.method === "POST";
  const form = isPost ? await readForm(site.bodies, request, session) : new URLSearchParams();
  if (form === undefined) return refuseForm(site, session, path);
  // The session can end while a slow body arrives.
  const shop = isPost ? (await site.sessions.find(request))?.shop : session.shop;
  if (shop === undefined) return signedOutPage();
  const once = form.get("once");
  if (once !== null && !(await site.store.settingsPage.useForm(session.hash, hashToken(once))))
    return respondRepeatedForm();
  const result = await handler({ shop, csrf, id, form }, site);
  if ("frame" in result) return respondFrame(result);
  const accepted = "to" in result;
  if (isPost) site.log.info("a form of the settings page was posted", { shop: shop.domain, path, accepted });
  if (accepted) return seeOther(site, result, session);
  if (request.headers.get("x-part") === "live" && result.live !== undefined) return respondPart(result.live);
  return respondPage(result, shop, csrf, isPost ? [] : await takeNotices(site, session, path));
}

async function seeOther({ store, now }: Site, { to, notices = [] }: SeeOther, session: Session): Promise<Response> {
  // The notices are in the database, because another node may serve the next page.
  if (notices.length > 0)
    await store.settingsPage.putNotice(session.hash, to, JSON.stringify(notices), now() + NOTICE_LIFE_MS);
  return new Response(null, {
    status: 303,
    headers: { Location: to, "Cache-Control": "no-store", "X-Request-Id": newRequestId() },
  });
}

async function takeNotices({ store, now }: Site, { hash }: Session, path: string): Promise<Notice[]> {
  const texts = await store.settingsPage.takeNotices(hash, path, now());
  return texts.flatMap((text) => JSON.parse(text) as Notice[]);
}

function refuseForm({ log }: Site, { shop }: Session, path: string): Response {
  log.warn("a form of the settings page was refused: it is not from this session", { shop: shop.domain, path });
  return respondForeignForm();
}

/** Whether an error is a refusal. A conflict means that the removal of the shop has begun, which ends the session. */
function isRefused(thrown: unknown): boolean {
  return thrown instanceof SdsError || (thrown instanceof StoreError && thrown.reason === "conflict");
}

/** The errors that become a page, with their status. The server handles all other errors. */
const REFUSALS: Partial<Record<ErrorCode, number>> = {
  invalid: 400,
  plan_required: 403,
  not_found: 404,
  conflict: 409,
  too_large: 413,
};

function sectionOf(path: string): AdminSection {
  return (Object.keys(SECTIONS) as AdminSection[]).find((section) => path.startsWith(section)) ?? HOME;
}

function refusal(status: number, message: string, section: AdminSection): AdminPage {
  const content = (
    <>
      <p id="refusal">{message}</p>
      <p>
        <a href={section}>Back</a>
      </p>
    </>
  );
  return { title: status === 404 ? "There is nothing here" : "This can't be done", section, status, content };
}

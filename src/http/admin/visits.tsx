/** @jsxImportSource preact */

import { hashToken } from "../../actions/session.ts";
import { unfinishedLoad } from "../../actions/shop.ts";
import { type ErrorCode, SdsError } from "../../domain/error.ts";
import { sentence } from "../../lib/text.ts";
import { StoreError } from "../../store/port/store-error.ts";
import { isUnavailable, logUnavailable, newRequestId } from "../respond.ts";
import { queryOf, type Route, type RouteContext, type RouteHandler, urlPathOf } from "../routes.ts";
import {
  type AdminDependencies,
  type AdminPage,
  type AdminTab,
  type Handler,
  HOME,
  type Notice,
  type SeeOther,
  TABS,
} from "./admin-request.ts";
import { Link } from "./components.tsx";
import { readForm, readOwnForm } from "./form.ts";
import { renderFrame, respondFile, respondFrame, respondPage, respondPart } from "./layout.tsx";
import { lendFile, lendFrame } from "./lent-addresses.tsx";
import {
  askToSignIn,
  badLink,
  respondForeignForm,
  respondRepeatedForm,
  signedIn,
  signedOut,
  tooMany,
  tooManyActions,
  tryAgain,
} from "./messages.tsx";
import type { StandingNotices } from "./page-notices.tsx";
import type { SessionDoor } from "./sessions.ts";
import type { Door, Visitor } from "./visitor.ts";

/** Notices that are not shown within this time are dropped, with their secrets. */
const NOTICE_LIFE_MS = 5 * 60_000;

/** Pages below these paths may show personal data. Each view counts towards the rate limit for forms. */
const LOOKS = ["/data/browse/", "/fields/values/"];

/** The settings page, with the door that finds its visitors. */
export interface Site extends AdminDependencies {
  door: Door;
}

/** A request of a visitor. */
interface Visit {
  request: Request;
  visitor: Visitor;
  /** The path below the root. */
  path: string;
  /** The value of `:id` in the path. */
  id: string;
  /** The network of the client, see `Clients.networkOf`. */
  from: string;
}

/** Runs `visit` if the door lets the request in. A refusal that `visit` throws becomes a page. */
function visited(site: Site, visit: (visit: Visit) => Response | Promise<Response>): RouteHandler {
  const { door } = site;
  return async (request, context) => {
    const path = urlPathOf(request.url).slice(door.root.length);
    const visitor = await door.open(request, context);
    if (visitor instanceof Response) return visitor;
    context.shop = visitor.shop.domain;
    try {
      return await visit({ request, visitor, path, id: context.id, from: context.client() });
    } catch (thrown) {
      if (isRefused(thrown) && (await door.keep(visitor)) === undefined) return door.refuse();
      const status = thrown instanceof SdsError ? REFUSALS[thrown.code] : undefined;
      if (!(thrown instanceof SdsError) || status === undefined) throw thrown;
      return respondPage(refusal(status, sentence(thrown.message), tabOf(path)), visitor, []);
    }
  };
}

/** Makes the routes of sign-in links and of signing out. */
export function sessionRoutes(site: Site & { door: SessionDoor }): Record<string, Route["methods"]> {
  return {
    "/sign-in": {
      GET: (request) => askToSignIn(new URLSearchParams(queryOf(request.url)).get("token") ?? ""),
      POST: (request, context) => signIn(site, request, context),
    },
    "/sign-out": {
      GET: tabRoute(site),
      POST: visited(site, async ({ request, visitor, path, from }) => {
        if ((await readForm(site.bodies, request, visitor)) === undefined) return refuseForm(site, visitor, path);
        return signedOut(await site.door.signOut(visitor, { role: "merchant", who: visitor.who, from }));
      }),
    },
  };
}

/** Uses up a sign-in link: responds with a session's cookie or a refusal. */
async function signIn(
  { door, bodies, log }: Site & { door: SessionDoor },
  request: Request,
  context: RouteContext,
): Promise<Response> {
  const form = await readOwnForm(bodies, request, context.client());
  // A form from another site must not be counted as a wrong token of the visitor.
  if (form === undefined) return badLink();
  const result = await door.signIn(request, form.get("token") ?? "", context);
  if ("cookie" in result) {
    log.info("a browser signed in to the settings page", { shop: result.shop });
    return signedIn(result.cookie);
  }
  const { address, refused: reason } = result;
  log.warn("a sign-in link of the settings page was refused", { address, reason });
  return result.refused === "limit" ? tooMany(result.wait) : badLink();
}

/** Makes the route that shows a page or takes its form. */
export function pageRoute(site: Site, handler: Handler): RouteHandler {
  return visited(site, (visit) => respondToVisit(site, handler, visit));
}

/** Makes the GET route of a path that has only a form. The route redirects to the path's tab. */
export function tabRoute(site: Site): RouteHandler {
  return visited(site, ({ visitor, path }) => seeOther(site, { to: tabOf(path) }, visitor));
}

/** Makes a handler respond with an error page if the database is unavailable or a form arrives too slowly. */
export function orTryAgain({ log, door }: Site, handler: RouteHandler): RouteHandler {
  return async (request, context) => {
    try {
      return await handler(request, context);
    } catch (thrown) {
      const frame = await door.frameFor(request);
      if (thrown instanceof SdsError && thrown.code === "unavailable")
        return tryAgain(newRequestId(), thrown.message, frame);
      if (!isUnavailable(thrown)) throw thrown;
      const requestId = newRequestId();
      logUnavailable(thrown, requestId, log);
      return tryAgain(requestId, "The database is busy or cannot be used at the moment.", frame);
    }
  };
}

async function respondToVisit(site: Site, handler: Handler, visit: Visit): Promise<Response> {
  const { request, visitor, path, id, from } = visit;
  const isPost = request.method === "POST";
  const form = isPost ? await readForm(site.bodies, request, visitor) : new URLSearchParams();
  if (form === undefined) return refuseForm(site, visitor, path);
  // The session can end while a slow body arrives.
  const kept = isPost ? await site.door.keep(visitor) : visitor;
  if (kept === undefined) return site.door.refuse();
  const { shop, key, who } = kept;
  const isAction = isPost || LOOKS.some((start) => path.startsWith(start));
  const { retryAfterS } = isAction ? site.actionLimits.count(String(shop.id)) : {};
  if (retryAfterS !== undefined) return tooManyActions(retryAfterS, kept);
  const once = form.get("once");
  if (once !== null && !(await site.store.settingsPage.useForm(key, hashToken(once)))) return respondRepeatedForm(kept);
  const query = new URLSearchParams(queryOf(request.url));
  const result = await handler({ shop, actor: { role: "merchant", who, from }, id, query, form }, site);
  if ("frame" in result) {
    const html = renderFrame(result);
    if (kept.frame === null) return respondFrame(html, null);
    return (await site.door.keep(kept)) === undefined ? site.door.refuse() : lendFrame(site, kept, html);
  }
  const accepted = "to" in result || "file" in result;
  if (isPost)
    site.log.info("a form of the settings page was posted", { shop: shop.domain, who: kept.who, path, accepted });
  if ("to" in result) return seeOther(site, result, kept);
  if ("file" in result && kept.frame === null) return respondFile(result);
  const page = "file" in result ? await lendFile(site, kept, result) : result;
  if (request.headers.get("x-part") === "live" && page.live !== undefined) return respondPart(page.live, kept);
  const standing = await standingNotices(site, shop.id, page.tab);
  return respondPage(page, kept, isPost ? [] : await takeNotices(site, kept, path), standing);
}

/** Reads the standing notices, except notices that the tab shows in its content. */
async function standingNotices({ store, now }: Site, shopId: number, tab: AdminTab): Promise<StandingNotices> {
  const [load, alerts] = await Promise.all([
    tab === "/data" || tab === "/overview" ? null : unfinishedLoad(store, shopId, now()),
    tab === "/overview" ? [] : store.alerts.list(shopId),
  ]);
  return { load, alerts: tab === "/data" ? alerts.filter(({ cause }) => cause !== "connection") : alerts };
}

async function seeOther(
  { store, now }: Site,
  { to, notices = [] }: SeeOther,
  { key, root }: Visitor,
): Promise<Response> {
  // The notices are in the database, because another node may serve the next page.
  const [path = to] = to.split("?");
  if (notices.length > 0)
    await store.settingsPage.putNotice(key, path, JSON.stringify(notices), now() + NOTICE_LIFE_MS);
  return new Response(null, {
    status: 303,
    headers: { Location: `${root}${to}`, "Cache-Control": "no-store", "X-Request-Id": newRequestId() },
  });
}

async function takeNotices({ store, now }: Site, { key }: Visitor, path: string): Promise<Notice[]> {
  const texts = await store.settingsPage.takeNotices(key, path, now());
  return texts.flatMap((text) => JSON.parse(text) as Notice[]);
}

function refuseForm({ log }: Site, visitor: Visitor, path: string): Response {
  log.warn("a form of the settings page was refused: it is not from this session", { shop: visitor.shop.domain, path });
  return respondForeignForm(visitor);
}

/** Whether an error is a refusal. A store conflict means that the shop and its sessions are being removed. */
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

function tabOf(path: string): AdminTab {
  const tabs = (Object.keys(TABS) as AdminTab[]).filter((tab) => path === tab || path.startsWith(`${tab}/`));
  return tabs.sort((a, b) => b.length - a.length)[0] ?? HOME;
}

function refusal(status: number, message: string, tab: AdminTab): AdminPage {
  const content = (
    <>
      <p id="refusal">{message}</p>
      <p>
        <Link to={tab}>Back</Link>
      </p>
    </>
  );
  return { title: status === 404 ? "There is nothing here" : "This can't be done", tab, status, content };
}

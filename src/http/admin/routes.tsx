/** @jsxImportSource preact */
import { type ErrorCode, SdsError } from "../../domain/error.ts";
import { hashToken } from "../../domain/session.ts";
import { sentence } from "../../lib/text.ts";
import { StoreError } from "../../store/port/store-error.ts";
import { isUnavailable, logUnavailable, newRequestId } from "../respond.ts";
import { pathOf, queryOf, type Route, type RouteContext, type RouteHandler } from "../route.ts";
import {
  type AdminDependencies,
  type Handler,
  type Page,
  SECTIONS,
  type Section,
  type SeeOther,
} from "./admin-request.ts";
import { assetRoutes } from "./assets.ts";
import { askToRetryDead, retryDead, retryDelivery, showDeliveries, showDelivery } from "./deliveries.tsx";
import { readForm } from "./form.ts";
import { askToRevoke, createKey, revokeKey, showKeys } from "./keys.tsx";
import { respondPage, respondPart } from "./layout.tsx";
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
import { createNotices } from "./notices.ts";
import { showPlan } from "./plan.tsx";
import { createSessions, type Session } from "./sessions.ts";
import { askToRotate, rotateSecret } from "./signing-secret.tsx";
import { saveTriggers, showTriggers } from "./triggers.tsx";
import { askToClear, clearWebhooks, saveWebhooks, sendTestEvent, showSecret, showWebhooks } from "./webhook.tsx";

const HOME: Section = "/admin/keys";

/** Every page and every form. A GET of a path that has only a form redirects to its section. */
const PAGES: Record<string, { get?: Handler; post?: Handler }> = {
  "/admin/keys": { get: showKeys, post: createKey },
  "/admin/keys/:id/revoke": { get: askToRevoke, post: revokeKey },
  "/admin/webhooks": { get: showWebhooks, post: saveWebhooks },
  "/admin/webhooks/secret": { post: showSecret },
  "/admin/webhooks/rotate": { get: askToRotate, post: rotateSecret },
  "/admin/webhooks/clear": { get: askToClear, post: clearWebhooks },
  "/admin/webhooks/test": { post: sendTestEvent },
  "/admin/deliveries": { get: showDeliveries },
  "/admin/deliveries/retry-dead": { get: askToRetryDead("webhook"), post: retryDead("webhook") },
  "/admin/deliveries/:id": { get: showDelivery },
  "/admin/deliveries/:id/retry": { post: retryDelivery },
  "/admin/triggers": { get: showTriggers, post: saveTriggers },
  "/admin/triggers/retry-dead": { get: askToRetryDead("trigger"), post: retryDead("trigger") },
  "/admin/plan": { get: showPlan },
};

/** The settings page. Each session is for one shop. It uses the same actions as the command line. */
export function adminRoutes(dependencies: AdminDependencies): Route[] {
  const { store } = dependencies;
  const sessions = createSessions(dependencies);
  const notices = createNotices(dependencies);

  async function signIn(request: Request, context: RouteContext): Promise<Response> {
    // A browser that only prefetches the link must not use it up.
    if (request.headers.get("sec-purpose")?.includes("prefetch"))
      return new Response(null, { status: 503, headers: { "Cache-Control": "no-store" } });
    const result = await sessions.signIn(
      request,
      new URLSearchParams(queryOf(request.url)).get("token") ?? "",
      context,
    );
    if ("cookie" in result) {
      dependencies.log.info("somebody signed in to the settings page", { shop: result.shop });
      return welcome(result.cookie);
    }
    dependencies.log.warn("a sign-in link of the settings page was refused", {
      address: result.address,
      reason: result.refused,
    });
    return result.refused === "limit" ? tooMany(result.wait) : badLink();
  }

  async function signOut(request: Request, session: Session): Promise<Response> {
    if ((await readForm(dependencies.bodies, request, session)) === undefined)
      return refuseForm(session.shop.domain, "/admin/sign-out");
    return signedOut(await sessions.signOut(session));
  }

  function refuseForm(shop: string, path: string): Response {
    dependencies.log.warn("a form of the settings page was refused: it is not from this session", { shop, path });
    return respondForeignForm();
  }

  async function answer(
    request: Request,
    handler: Handler,
    session: Session,
    path: string,
    id: string,
  ): Promise<Response> {
    const { csrf } = session;
    const posted = request.method === "POST";
    const form = posted ? await readForm(dependencies.bodies, request, session) : new URLSearchParams();
    if (form === undefined) return refuseForm(session.shop.domain, path);
    // While a slow body arrives, the session can end and the shop can be removed.
    const shop = posted ? (await sessions.find(request))?.shop : session.shop;
    if (shop === undefined) return signedOutPage();
    const once = form.get("once");
    if (once !== null && !(await store.settingsPage.useForm(session.hash, hashToken(once))))
      return respondRepeatedForm();
    const answered = await handler({ shop, csrf, id, form }, dependencies);
    if (posted)
      dependencies.log.info("a form of the settings page was posted", {
        shop: shop.domain,
        path,
        accepted: "to" in answered,
      });
    if ("to" in answered) return seeOther(answered, session);
    if (request.headers.get("x-part") === "live" && answered.live !== undefined) return respondPart(answered.live);
    return respondPage(answered, shop, csrf, posted ? [] : await notices.take(session, path));
  }

  async function seeOther({ to, notices: shown = [] }: SeeOther, session: Session): Promise<Response> {
    await notices.put(session, to, shown);
    return new Response(null, {
      status: 303,
      headers: { Location: to, "Cache-Control": "no-store", "X-Request-Id": newRequestId() },
    });
  }

  /** Runs `visit` if the browser is signed in, and shows a refusal as a page. */
  const signedIn =
    (
      visit: (request: Request, session: Session, path: string, id: string) => Response | Promise<Response>,
    ): RouteHandler =>
    async (request, { id }) => {
      const path = pathOf(request.url);
      const session = await sessions.find(request);
      if (session === undefined) return signedOutPage();
      try {
        return await visit(request, session, path, id);
      } catch (thrown) {
        if (isRefused(thrown) && (await sessions.find(request)) === undefined) return signedOutPage();
        const status = thrown instanceof SdsError ? REFUSALS[thrown.code] : undefined;
        if (!(thrown instanceof SdsError) || status === undefined) throw thrown;
        return respondPage(refusal(status, sentence(thrown.message), sectionOf(path)), session.shop, session.csrf, []);
      }
    };
  const page = (handler: Handler) =>
    signedIn((request, session, path, id) => answer(request, handler, session, path, id));
  const toSection = signedIn((_request, session, path) => seeOther({ to: sectionOf(path) }, session));

  /**
   * Shows a page if the database cannot serve the request, with the same log line as on other routes, and if the body
   * of a form was given up.
   */
  const orTryAgain =
    (handler: RouteHandler): RouteHandler =>
    async (request, context) => {
      try {
        return await handler(request, context);
      } catch (thrown) {
        if (thrown instanceof SdsError && thrown.code === "unavailable")
          return tryAgain(newRequestId(), thrown.message);
        if (!isUnavailable(thrown)) throw thrown;
        const requestId = newRequestId();
        logUnavailable(thrown, requestId, dependencies.log);
        return tryAgain(requestId, "The database is busy or cannot be used at the moment.");
      }
    };
  const routes: Route[] = [
    { path: "/admin", methods: { GET: toSection } },
    { path: "/admin/sign-in", methods: { GET: signIn } },
    { path: "/admin/sign-out", methods: { GET: toSection, POST: signedIn(signOut) } },
    ...Object.entries(PAGES).map(([path, { get, post }]): Route => {
      const methods = { GET: get === undefined ? toSection : page(get) };
      return { path, methods: post === undefined ? methods : { ...methods, POST: page(post) } };
    }),
  ];
  const guarded = routes.map(({ path, methods }) => ({
    path,
    methods: Object.fromEntries(Object.entries(methods).map(([method, handler]) => [method, orTryAgain(handler)])),
  }));
  return [...assetRoutes(), ...guarded];
}

/** Also what a handler throws if the removal of the shop, and so the end of the session, began meanwhile. */
function isRefused(thrown: unknown): boolean {
  return thrown instanceof SdsError || (thrown instanceof StoreError && thrown.reason === "conflict");
}

/** The errors that become a page, with their status. Other errors are answered and logged as on other routes. */
const REFUSALS: Partial<Record<ErrorCode, number>> = {
  invalid: 400,
  plan_required: 403,
  not_found: 404,
  conflict: 409,
  too_large: 413,
};

function sectionOf(path: string): Section {
  return (Object.keys(SECTIONS) as Section[]).find((section) => path.startsWith(section)) ?? HOME;
}

function refusal(status: number, message: string, section: Section): Page {
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

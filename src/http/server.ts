import type { Server } from "bun";
import { Elysia } from "elysia";
import { messageOf, SdsError } from "../domain/error.ts";
import { RESOURCES } from "../domain/resources.ts";
import type { Log } from "../log.ts";
import { StoreError } from "../store/store-error.ts";
import type { AdminHandler } from "./admin/routes.tsx";
import type { IntakeHandler } from "./intake.ts";
import type { ListHandler } from "./list.ts";
import { newRequestId, respond, respondError } from "./respond.ts";
import type { PlatformHandler } from "./shopify-webhooks.ts";

export interface Routes {
  list: ListHandler;
  intake: IntakeHandler;
  platform: PlatformHandler;
  admin: AdminHandler;
  /** Resolves to why the program can't take work now, or to undefined if it can. */
  notReady: () => Promise<string | undefined>;
}

/** Everything outside the API that is served, with the methods it takes. */
const METHODS: Record<string, readonly string[]> = {
  "/intake": ["POST"],
  "/platform/webhooks": ["POST"],
  "/healthz": ["GET", "HEAD"],
  "/readyz": ["GET", "HEAD"],
};
const API_METHODS = ["GET"];
const ADMIN_METHODS = ["GET", "POST"];

/**
 * The routes as one Elysia app. The guard and the error handler are registered before the routes, for hooks hold only for what comes
 * after them; both answer with whole responses, so that every answer is JSON.
 */
export function httpApp(routes: Routes, log: Log) {
  const admin = async (request: Request, server: Pick<Server<unknown>, "requestIP"> | null) =>
    (await routes.admin(request, pathOf(request.url), server?.requestIP(request)?.address)) ?? notFound();

  return new Elysia({
    strictPath: true,
    // Else Elysia takes it that a host has four characters at least, and looks for the path of http://sds/ in the wrong place.
    handler: { standardHostname: false },
    serve: {
      // Two programs on one port would share its requests without a word.
      reusePort: false,
      development: false,
      // Bodies are bounded by the handlers, which answer in JSON; Bun's own refusal has no body.
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
      error: (thrown) => respondToThrown(thrown, log),
    },
  })
    .onRequest(({ request }) => refuseMethod(request))
    .onError({ as: "global" }, ({ code, error }) => (code === "NOT_FOUND" ? notFound() : respondToThrown(error, log)))
    .get("/api/v1/subscriptions", ({ request }) => routes.list("subscriptions", request))
    .get("/api/v1/customers", ({ request }) => routes.list("customers", request))
    .get("/api/v1/orders", ({ request }) => routes.list("orders", request))
    .post("/intake", ({ request }) => routes.intake(request), { parse: "none" })
    .post("/platform/webhooks", ({ request }) => routes.platform(request), { parse: "none" })
    .get("/admin", ({ request, server }) => admin(request, server))
    .get("/admin/*", ({ request, server }) => admin(request, server))
    .post("/admin/*", ({ request, server }) => admin(request, server), { parse: "none" })
    .get("/healthz", () => health())
    .get("/readyz", async () => {
      const reason = await routes.notReady();
      return reason === undefined ? health() : respondError(new SdsError("unavailable", reason));
    });
}

function health(): Response {
  return respond(200, '{"status":"ok"}', { "Cache-Control": "no-store" });
}

/** The method is judged before path and key (contract.md 1.1). */
function refuseMethod({ method, url }: Request): Response | undefined {
  const path = pathOf(url);
  const allowed = isBelow("/api", path) ? API_METHODS : isBelow("/admin", path) ? ADMIN_METHODS : METHODS[path];
  if (allowed === undefined || allowed.includes(method)) return undefined;
  const allow = allowed.join(", ");
  return respondError(new SdsError("method_not_allowed", `Only ${allow} is allowed here.`), { Allow: allow });
}

function isBelow(top: string, path: string): boolean {
  return path === top || path.startsWith(`${top}/`);
}

/** The path without the query, as it stands in the URL that Bun made of target and Host header. */
function pathOf(url: string): string {
  const start = url.indexOf("/", url.indexOf("://") + 3);
  const end = url.indexOf("?", start);
  return url.slice(start, end === -1 ? undefined : end);
}

function notFound(): Response {
  return respondError(new SdsError("not_found", `There is nothing here. The API has ${RESOURCES.map((resource) => `/api/v1/${resource}`).join(", ")}.`));
}

function respondToThrown(thrown: unknown, log: Log): Response {
  if (thrown instanceof SdsError && thrown.code !== "failed" && thrown.code !== "internal") {
    return respondError(thrown, thrown.code === "unauthorized" ? { "WWW-Authenticate": "Bearer" } : {});
  }
  const requestId = newRequestId();
  if (isOutOfOrder(thrown)) {
    log.warn("the database could not serve a request", { requestId, error: messageOf(thrown) });
    return respondError(new SdsError("unavailable", "The database is busy or out of order. It is safe to try again."), { "Retry-After": "1" }, requestId);
  }
  if (isAborted(thrown)) log.debug("a client went away", { requestId });
  else log.error("a request failed", { requestId, error: messageOf(thrown), stack: thrown instanceof Error ? thrown.stack : undefined });
  return respondError(new SdsError("internal", "Something went wrong on our side. It is safe to try again."), {}, requestId);
}

/** Another process holds the write lock for longer than we wait, or the disk is full or failing: it may pass. */
function isOutOfOrder(thrown: unknown): boolean {
  return thrown instanceof StoreError && thrown.reason !== "conflict";
}

/** The client closed the connection within its body: nobody reads the answer. */
function isAborted(thrown: unknown): boolean {
  return thrown instanceof Error && thrown.name === "AbortError";
}

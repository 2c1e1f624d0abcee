import { SdsError } from "../../domain/error.ts";
import type { AdminDependencies, Handler } from "../admin/admin-request.ts";
import { createLentHandler } from "../admin/lent-addresses.tsx";
import { showOverview } from "../admin/overview.tsx";
import { guarded, pageRoutes } from "../admin/routes.ts";
import { pageRoute } from "../admin/visits.tsx";
import type { Route, RouteHandler } from "../routes.ts";
import type { TokenDoor } from "./token-door.ts";

/** Makes the routes of the page in the platform's admin, below `/app`. */
export function appRoutes(dependencies: AdminDependencies, door: TokenDoor): Route[] {
  const site = { ...dependencies, door };
  const own: Route[] = [
    { path: "/app/bounce", methods: { GET: door.bounce } },
    { path: "/app/lent/:id", methods: { GET: createLentHandler(dependencies) } },
    // The platform sends an ID token with its request for this document. A redirect would lose the token.
    { path: "/app", methods: { GET: pageRoute(site, showOverview) } },
    // Without this route, an unknown path would get a response that the platform's admin cannot show in its frame.
    { path: "/app/*", methods: { GET: pageRoute(site, refuseUnknown) } },
  ];
  return [...guarded(site, own), ...pageRoutes(site).map(withQueryInRedirect)];
}

const refuseUnknown: Handler = async () => {
  throw new SdsError("not_found", "no page has this address");
};

/**
 * Adds the platform's parameters to the address to which a document redirects. For example, a GET of a path that only
 * accepts forms redirects to a tab.
 */
function withQueryInRedirect({ path, methods: { GET, ...others } }: Route): Route {
  if (GET === undefined) return { path, methods: others };
  const get: RouteHandler = async (request, context) => {
    const response = await GET(request, context);
    const to = response.headers.get("location");
    if (response.status !== 303 || to === null || request.headers.has("authorization")) return response;
    const query = new URL(request.url, "http://localhost").searchParams;
    query.delete("id_token");
    response.headers.set("location", `${to}?${query}`);
    return response;
  };
  return { path, methods: { GET: get, ...others } };
}

import type { Route } from "../routes.ts";
import type { AdminDependencies, Handler } from "./admin-request.ts";
import { assetRoutes } from "./assets.ts";
import { showCommand } from "./deliveries/command.tsx";
import { showDelivery } from "./deliveries/delivery.tsx";
import { askToRetryDead, retryDead, retryDelivery, showLog } from "./deliveries/log.tsx";
import { askToRevoke, createKey, revokeKey, showKeys } from "./keys.tsx";
import { showOverview } from "./overview.tsx";
import { createSessionDoor } from "./sessions.ts";
import { addAddress, removeAddress, showAlerts } from "./settings/alerts.tsx";
import { showAudit } from "./settings/audit.tsx";
import { showPlan } from "./settings/plan.tsx";
import { saveTriggers, showTriggers } from "./settings/triggers.tsx";
import { showRows } from "./shop-data/browse.tsx";
import { retryFailed, retryItem, showInbox } from "./shop-data/inbox.tsx";
import { askIfAnswered, exportData, markAsAnswered, showRequests } from "./shop-data/requests.tsx";
import { showRow } from "./shop-data/row.tsx";
import { showData } from "./shop-data/summary.tsx";
import { saveValues, showValues } from "./storefront/field-values.tsx";
import { archive, createField, lookUp, restore, saveField, showField, showFields } from "./storefront/fields.tsx";
import { askToClearStyle, clearStyle, previewSaved, previewTyped, saveStyle, showStyle } from "./storefront/style.tsx";
import { orTryAgain, pageRoute, type Site, sessionRoutes, tabRoute } from "./visits.tsx";
import { askToClear, clearWebhooks, saveUrl, sendTestEvent, showEndpoint } from "./webhooks/endpoint.tsx";
import { askToRotate, rotateSecret, showSecret, showSecretTab } from "./webhooks/secret.tsx";
import { saveTopics, showTopics } from "./webhooks/topics.tsx";

/** Pages and forms by their path below the root. If a path has only a form, a GET redirects to its tab. */
const PAGES: Record<string, { get?: Handler; post?: Handler }> = {
  "/overview": { get: showOverview },
  "/keys": { get: showKeys, post: createKey },
  "/keys/:id/revoke": { get: askToRevoke, post: revokeKey },
  "/webhooks": { get: showEndpoint, post: saveUrl },
  "/webhooks/topics": { get: showTopics, post: saveTopics },
  "/webhooks/secret": { get: showSecretTab, post: showSecret },
  "/webhooks/rotate": { get: askToRotate, post: rotateSecret },
  "/webhooks/clear": { get: askToClear, post: clearWebhooks },
  "/webhooks/test": { post: sendTestEvent },
  "/deliveries": { get: showLog("webhook") },
  "/deliveries/retry-dead": { get: askToRetryDead("webhook"), post: retryDead("webhook") },
  "/deliveries/workflows": { get: showLog("trigger") },
  "/deliveries/workflows/retry-dead": { get: askToRetryDead("trigger"), post: retryDead("trigger") },
  "/deliveries/:id": { get: showDelivery },
  "/deliveries/:id/curl": { get: showCommand },
  "/deliveries/:id/retry": { post: retryDelivery },
  "/triggers": { get: showTriggers, post: saveTriggers },
  "/data": { get: showData },
  "/data/browse": { get: showRows },
  "/data/browse/:id": { get: showRow },
  "/data/inbox": { get: showInbox },
  "/data/inbox/retry": { post: retryFailed },
  "/data/inbox/:id/retry": { post: retryItem },
  "/data/requests": { get: showRequests },
  "/data/requests/:id/export": { post: exportData },
  "/data/requests/:id/answered": { get: askIfAnswered, post: markAsAnswered },
  "/audit": { get: showAudit },
  "/alerts": { get: showAlerts, post: addAddress },
  "/alerts/remove/:id": { post: removeAddress },
  "/plan": { get: showPlan },
  "/style": { get: showStyle, post: saveStyle },
  "/style/clear": { get: askToClearStyle, post: clearStyle },
  "/style/preview": { get: previewSaved, post: previewTyped },
  "/fields": { get: showFields, post: createField },
  "/fields/edit/:id": { get: showField, post: saveField },
  "/fields/archive/:id": { post: archive },
  "/fields/restore/:id": { post: restore },
  "/fields/values": { post: lookUp },
  "/fields/values/:id": { get: showValues, post: saveValues },
};

/** Makes the routes of the settings page below `/admin`, where a cookie names the session. */
export function adminRoutes(dependencies: AdminDependencies): Route[] {
  const door = createSessionDoor(dependencies);
  const site = { ...dependencies, door };
  const signing = Object.entries(sessionRoutes(site)).map(([path, methods]) => ({ path: `/admin${path}`, methods }));
  const home = { path: "/admin", methods: { GET: tabRoute(site) } };
  return [...assetRoutes(), ...guarded(site, [home, ...signing]), ...pageRoutes(site)];
}

/** Makes the routes of all pages and forms behind a door. */
export function pageRoutes(site: Site): Route[] {
  const toTab = tabRoute(site);
  const routes = Object.entries(PAGES).map(([path, { get, post }]): Route => {
    const methods = { GET: get === undefined ? toTab : pageRoute(site, get) };
    return {
      path: `${site.door.root}${path}`,
      methods: post === undefined ? methods : { ...methods, POST: pageRoute(site, post) },
    };
  });
  return guarded(site, routes);
}

/** Makes the handlers respond with an error page while the database is unavailable. */
export function guarded(site: Site, routes: readonly Route[]): Route[] {
  return routes.map(({ path, methods }) => ({
    path,
    methods: Object.fromEntries(
      Object.entries(methods).map(([method, handler]) => [method, orTryAgain(site, handler)]),
    ),
  }));
}

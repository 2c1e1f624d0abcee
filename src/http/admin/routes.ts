import type { Route } from "../routes.ts";
import type { AdminDependencies, Handler } from "./admin-request.ts";
import { assetRoutes } from "./assets.ts";
import { askToRetryDead, retryDead, retryDelivery, showDeliveries, showDelivery } from "./deliveries.tsx";
import { saveValues, showValues } from "./field-values.tsx";
import { archive, createField, lookUp, restore, saveField, showField, showFields } from "./fields.tsx";
import { askToRevoke, createKey, revokeKey, showKeys } from "./keys.tsx";
import { showPlan } from "./plan.tsx";
import { askToRotate, rotateSecret } from "./signing-secret.tsx";
import { askToClearStyle, clearStyle, previewSaved, previewTyped, saveStyle, showStyle } from "./style.tsx";
import { saveTriggers, showTriggers } from "./triggers.tsx";
import { createSite, orTryAgain, pageRoute, sectionRoute, signIn, signOutRoute } from "./visits.tsx";
import { askToClear, clearWebhooks, saveWebhooks, sendTestEvent, showSecret, showWebhooks } from "./webhook.tsx";

/** Every page and form. If a path has only a form, a GET of the path redirects to its section. */
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
  "/admin/style": { get: showStyle, post: saveStyle },
  "/admin/style/clear": { get: askToClearStyle, post: clearStyle },
  "/admin/style/preview": { get: previewSaved, post: previewTyped },
  "/admin/fields": { get: showFields, post: createField },
  "/admin/fields/edit/:id": { get: showField, post: saveField },
  "/admin/fields/archive/:id": { post: archive },
  "/admin/fields/restore/:id": { post: restore },
  "/admin/fields/values": { post: lookUp },
  "/admin/fields/values/:id": { get: showValues, post: saveValues },
};

/** Makes the routes of the settings page. Each session is for one shop. */
export function adminRoutes(dependencies: AdminDependencies): Route[] {
  const site = createSite(dependencies);
  const toSection = sectionRoute(site);
  const routes: Route[] = [
    { path: "/admin", methods: { GET: toSection } },
    { path: "/admin/sign-in", methods: { GET: (request, context) => signIn(site, request, context) } },
    { path: "/admin/sign-out", methods: { GET: toSection, POST: signOutRoute(site) } },
    ...Object.entries(PAGES).map(([path, { get, post }]): Route => {
      const methods = { GET: get === undefined ? toSection : pageRoute(site, get) };
      return { path, methods: post === undefined ? methods : { ...methods, POST: pageRoute(site, post) } };
    }),
  ];
  const guarded = routes.map(({ path, methods }) => ({
    path,
    methods: Object.fromEntries(
      Object.entries(methods).map(([method, handler]) => [method, orTryAgain(site, handler)]),
    ),
  }));
  return [...assetRoutes(), ...guarded];
}

import type { Actor } from "../domain/audit.ts";
import { SdsError } from "../domain/error.ts";
import { hasAccess, type Plan } from "../domain/shop.ts";

/** A feature of a plan, in the words of our messages. */
type Feature =
  | "API access"
  | "webhooks"
  | "workflow triggers"
  | "API access, webhooks or workflow triggers"
  | "custom fields"
  | "widget style";

const SINGULAR: readonly Feature[] = ["API access", "widget style"];

const PRO = "the Pro plan";
const FREE_WITH_ADDON = "the Free plan through the API and webhooks add-on";
/** The plans that include every feature, as the end of a sentence: "it comes with …". */
const PLANS = `with ${PRO}, and with ${FREE_WITH_ADDON}`;
const PRO_PRICE = "39 USD per month, the first 30 days free";
const ADDON_PRICE = "19.99 USD per month";
export const PLANS_WITH_PRICES = `with ${PRO} (${PRO_PRICE}), and with ${FREE_WITH_ADDON} (${ADDON_PRICE})`;

/** Returns the message that a plan lacks a feature, for the API, the command line and the settings page. */
export function noAccess(feature: Feature): string {
  return `this shop's plan has no ${feature}: ${SINGULAR.includes(feature) ? "it comes" : "they come"} ${PLANS}`;
}

/** Refuses a shop whose plan does not include the feature. @throws SdsError `plan_required` */
export function requireAccess({ plan }: { plan: Plan }, feature: Feature): void {
  if (!hasAccess(plan)) throw new SdsError("plan_required", noAccess(feature));
}

/** Returns a warning if the plan lacks the feature. @throws SdsError `plan_required` for a merchant */
export function checkAccess(shop: { plan: Plan }, feature: Feature, { role }: Pick<Actor, "role">): string[] {
  if (role === "merchant") requireAccess(shop, feature);
  return hasAccess(shop.plan) ? [] : [noAccess(feature)];
}

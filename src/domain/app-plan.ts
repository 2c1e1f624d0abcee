import type { Plan } from "./shop.ts";

/** The plans that the app sells on the platform, by the name that the shop subscribed to, and the access each gives (service.md, fact 4). */
const PLAN_OF_NAME = new Map<string, Plan>([
  ["pro", "pro"],
  ["free", "free"],
  ["free plan", "free"],
  ["free + api and webhooks", "free+addon"],
  ["api and webhooks", "free+addon"],
  ["api and webhooks add-on", "free+addon"],
]);

/** Subscriptions in this state give what they are for; one that is frozen for a missed payment does too, until it ends. */
const HOLDS = new Set(["ACTIVE", "FROZEN"]);

interface AppSubscription {
  name: string;
  status: string;
}

/**
 * The plan that a shop's subscriptions to the app come to.
 * @param everSubscribed whether it ever had one: an app that isn't sold through the platform says nothing of plans
 * @returns undefined where the platform doesn't decide it
 */
export function planOf(subscriptions: readonly AppSubscription[], everSubscribed: boolean): Plan | undefined {
  const plans = subscriptions.filter(({ status }) => HOLDS.has(status)).map(({ name }) => PLAN_OF_NAME.get(name.trim().toLowerCase()));
  if (plans.length === 0) return everSubscribed ? "free" : undefined;
  const known = plans.filter((plan) => plan !== undefined);
  return known.find((plan) => plan === "pro") ?? known.find((plan) => plan === "free+addon") ?? known[0];
}

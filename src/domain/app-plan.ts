import type { Plan } from "./shop.ts";

/**
 * The plans that the app sells on the platform, by the name that a shop subscribes to (docs/connecting.md, "Plans").
 */
const PLAN_OF_NAME = new Map<string, Plan>([
  ["pro", "pro"],
  ["free", "free"],
  ["free plan", "free"],
  ["free + api and webhooks", "free+addon"],
  ["api and webhooks", "free+addon"],
  ["api and webhooks add-on", "free+addon"],
]);

/** Subscriptions in these states give access. A frozen one (a missed payment) does too, until it ends. */
const VALID = new Set(["ACTIVE", "FROZEN"]);

interface AppSubscription {
  name: string;
  status: string;
}

/**
 * The plan that a shop has through its subscriptions to the app.
 * @param everSubscribed whether the shop ever had a subscription; if not, the app is not sold through the platform
 * @returns undefined where the platform does not decide the plan
 */
export function planOf(subscriptions: readonly AppSubscription[], everSubscribed: boolean): Plan | undefined {
  const plans = subscriptions
    .filter(({ status }) => VALID.has(status))
    .map(({ name }) => PLAN_OF_NAME.get(name.trim().toLowerCase()));
  if (plans.length === 0) return everSubscribed ? "free" : undefined;
  const known = plans.filter((plan) => plan !== undefined);
  return known.find((plan) => plan === "pro") ?? known.find((plan) => plan === "free+addon") ?? known[0];
}

import type { Plan } from "../shop.ts";

/** The plans that the app sells on the platform, by handle (docs/connecting.md, "Plans"). */
const PLAN_OF_HANDLE = new Map<string, Plan>([
  ["pro", "pro"],
  ["free", "free"],
  ["free-plan", "free"],
  ["free-api-and-webhooks", "free+addon"],
  ["api-and-webhooks", "free+addon"],
  ["api-and-webhooks-add-on", "free+addon"],
]);

/** A shop's subscription to our app. */
export interface AppSubscription {
  name: string;
  /** The plan's handle; null if the app sets its prices itself. The platform translates names, but not handles. */
  handle: string | null;
  status: string;
}

/**
 * Returns the plan that a shop has through its subscriptions to the app.
 * @param subscriptions empty if the app is not sold through the platform
 * @returns undefined if the platform does not decide the plan
 */
export function planOf(subscriptions: readonly AppSubscription[]): Plan | undefined {
  const plans = subscriptions.filter(givesAccess).map(planOfSubscription);
  if (plans.length === 0) return subscriptions.length > 0 ? "free" : undefined;
  const known = plans.filter((plan) => plan !== undefined);
  return known.find((plan) => plan === "pro") ?? known.find((plan) => plan === "free+addon") ?? known[0];
}

/** Whether a subscription gives access. A frozen subscription (a missed payment) still gives access. */
export function givesAccess({ status }: Pick<AppSubscription, "status">): boolean {
  return status === "ACTIVE" || status === "FROZEN";
}

/** Returns the plan of a subscription of any status. */
export function planOfSubscription({ name, handle }: Omit<AppSubscription, "status">): Plan | undefined {
  return PLAN_OF_HANDLE.get(handle ?? handleFromName(name));
}

/** Writes a name like a handle: `Free + API and webhooks` becomes `free-api-and-webhooks`. */
function handleFromName(name: string): string {
  return name
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replaceAll(/^-|-$/g, "");
}

/** @jsxImportSource preact */
import { PLANS_WITH_PRICES } from "../../../actions/access.ts";
import { hasAccess, type Plan } from "../../../domain/shop.ts";
import type { Handler } from "../admin-request.ts";
import { Facts } from "../components.tsx";

const PLAN_NAMES: Record<Plan, string> = {
  pro: "Pro",
  free: "Free",
  "free+addon": "Free with the API and webhooks add-on",
};

export const showPlan: Handler = async ({ shop: { id, plan } }, { store }) => {
  const [{ planFixed }, connection] = await Promise.all([store.shops.settings(id), store.connections.find(id)]);
  const followsShopify = !planFixed && connection !== undefined;
  return { title: "Plan", tab: "/plan", content: <PlanPart plan={plan} followsShopify={followsShopify} /> };
};

function PlanPart({ plan, followsShopify }: { plan: Plan; followsShopify: boolean }) {
  const included = hasAccess(plan) ? "included" : "not included";
  return (
    <>
      <p>
        The plan of this shop: <strong id="plan">{PLAN_NAMES[plan]}</strong>.{" "}
        {followsShopify
          ? "It follows the shop's plan for this app in Shopify's admin: change it there."
          : "The operator of this service has set it, and can change it."}
      </p>
      <Facts id="plan-facts" facts={["API access", "Webhooks", "Workflow triggers"].map((name) => [name, included])} />
      <p>
        API access, webhooks and workflow triggers come {PLANS_WITH_PRICES}.{" "}
        {hasAccess(plan) ? "On a plan without them" : "On this plan"}, API calls are refused, and no webhook and no
        workflow is queued. What was queued before is still delivered. Keys, endpoint and delivery log stay.
      </p>
    </>
  );
}

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
  const { planFixed } = await store.shops.settings(id);
  return { title: "Plan", tab: "/plan", content: <PlanPart plan={plan} fixed={planFixed} /> };
};

function PlanPart({ plan, fixed }: { plan: Plan; fixed: boolean }) {
  const included = hasAccess(plan) ? "included" : "not included";
  return (
    <>
      <p>
        The plan of this shop: <strong id="plan">{PLAN_NAMES[plan]}</strong>
        {fixed ? ", set by the operator of this service." : "."}
      </p>
      <Facts id="plan-facts" facts={["API access", "Webhooks", "Workflow triggers"].map((name) => [name, included])} />
      <p>
        API access, webhooks and workflow triggers come {PLANS_WITH_PRICES}.{" "}
        {hasAccess(plan) ? "On a plan without them" : "On this plan"}, API calls are answered with 403{" "}
        <code>plan_required</code> and no event is queued. What was queued before is still delivered. Keys, endpoint and
        delivery log stay.
      </p>
    </>
  );
}

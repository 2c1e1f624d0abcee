/** @jsxImportSource preact */
import type { VNode } from "preact";
import type { ResourceCounts } from "../../domain/commit.ts";
import { RESOURCES } from "../../domain/resources.ts";
import { hasAccess, type Plan, type Shop } from "../../domain/shop.ts";
import type { AdminDependencies, Handler } from "./admin-request.ts";
import { Empty, Time } from "./components.tsx";
import { Live } from "./delivery-log.tsx";

const SECTION = "/admin/plan";

/** service.md, fact 4. */
const PLAN_NAMES: Record<Plan, string> = { pro: "Pro", free: "Free", "free+addon": "Free with the API and webhooks add-on" };

/** The plan and what comes with it, and how the mirror of the shop's data stands. */
export const showPlan: Handler = async ({ shop }, { store }) => {
  const [{ planFixed }, counts, mirror] = await Promise.all([store.shops.settings(shop.id), store.shops.rowCounts(shop.id), readMirror(store, shop)]);
  const live = <MirrorPart counts={counts} mirror={mirror} />;
  const content = (
    <>
      <PlanPart plan={shop.plan} fixed={planFixed} />
      <h2>Mirror</h2>
      <p>What the API serves: a copy of this shop's subscription data, which the platform's webhooks keep current and an hourly comparison repairs.</p>
      {live}
    </>
  );
  return { title: "Plan & mirror", section: SECTION, content, live };
};

function PlanPart({ plan, fixed }: { plan: Plan; fixed: boolean }) {
  const included = hasAccess(plan) ? "included" : "not included";
  return (
    <>
      <p>
        The plan of this shop: <strong id="plan">{PLAN_NAMES[plan]}</strong>
        {fixed ? ", set by whoever runs this service." : "."}
      </p>
      <dl class="facts" id="plan-facts">
        <dt>API access</dt>
        <dd>{included}</dd>
        <dt>Webhooks</dt>
        <dd>{included}</dd>
        <dt>Workflow triggers</dt>
        <dd>{included}</dd>
      </dl>
      <p>
        API access, webhooks and workflow triggers come with the Pro plan (39 per month, 30 days of trial), and with the Free plan through the API and webhooks
        add-on (19.99 per month). {hasAccess(plan) ? "Without them" : "As it is"}, API calls are answered with 403 <code>plan_required</code> and no event is
        queued; what was queued before is still delivered, and keys, endpoint and log stay.
      </p>
    </>
  );
}

type Mirror = Awaited<ReturnType<typeof readMirror>>;

async function readMirror({ shops: _, ...store }: AdminDependencies["store"], { id, domain }: Shop) {
  const [connection, lastWebhookAt, inbox, full, changes] = await Promise.all([
    store.connections.find(id),
    store.inbox.lastReceivedAt(id),
    store.inbox.count(id),
    store.syncs.lastComplete(id, "full"),
    store.syncs.lastComplete(id, "changes"),
  ]);
  return { domain, connection, lastWebhookAt, inbox, full, changes };
}

function MirrorPart({ counts, mirror }: { counts: ResourceCounts; mirror: Mirror }) {
  const { connection, lastWebhookAt, inbox, full, changes } = mirror;
  const facts: Record<string, VNode | string> = {
    ...Object.fromEntries(RESOURCES.map((resource) => [labelOf(resource), counts[resource].toLocaleString("en")])),
    Platform: connection === undefined ? "not connected" : (connection.trouble ?? "connected"),
    "Last webhook received": lastWebhookAt === null ? "none within a week" : <Time ms={lastWebhookAt} />,
    "Loaded whole": full === undefined ? "never" : <Time ms={full.endedAt} />,
    "Last comparison with the platform": changes === undefined ? "never" : <Time ms={changes.endedAt} />,
    "Rows that it repaired": changes === undefined ? "–" : changes.changed.toLocaleString("en"),
    "Webhooks that wait to be processed": inbox.waiting.toLocaleString("en"),
    "Webhooks that could not be processed": inbox.failed.toLocaleString("en"),
  };
  return (
    <Live poll announce="">
      <dl class="facts" id="mirror-facts">
        {Object.entries(facts).map(([name, value]) => (
          <>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </>
        ))}
      </dl>
      <Remark counts={counts} mirror={mirror} />
    </Live>
  );
}

/** What to do next. */
function Remark({ counts, mirror: { connection, full, inbox, domain } }: { counts: ResourceCounts; mirror: Mirror }) {
  const rows = Object.values(counts).reduce((sum, each) => sum + each, 0);
  if (rows === 0) {
    return (
      <Empty id="empty-mirror">
        Nothing is mirrored yet. Whoever runs this service {connection === undefined ? "connects the shop with " : "loads the shop with "}
        <code>
          sds {connection === undefined ? "shop connect" : "sync"} {domain}
        </code>
        , or imports its records.
      </Empty>
    );
  }
  return (
    <>
      {connection !== undefined && full === undefined ? (
        <p id="not-loaded">
          The shop was never loaded whole: <code>sds sync {domain}</code> does it.
        </p>
      ) : null}
      {inbox.failed > 0 ? (
        <p id="inbox-failed">
          Some webhooks could not be processed. Whoever runs this service sees why with <code>sds inbox list --status failed</code>.
        </p>
      ) : null}
    </>
  );
}

function labelOf(resource: string): string {
  return `${resource.charAt(0).toUpperCase()}${resource.slice(1)}`;
}

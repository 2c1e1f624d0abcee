/** @jsxImportSource preact */
import { SdsError } from "../../domain/error.ts";
import { hasAccess } from "../../domain/shop.ts";
import { parseTriggers, TRIGGER_HANDLES, TRIGGERS, type TriggerHandle } from "../../domain/trigger.ts";
import type { AdminRequest, Handler } from "./admin-request.ts";
import { CsrfField, Empty } from "./components.tsx";
import { liveLog, readLog } from "./delivery-log.tsx";
import { requireAccess } from "./plan-access.ts";

const SECTION = "/admin/triggers";

export const showTriggers: Handler = async (visit, { store }) => {
  const { shop } = visit;
  const [{ triggers }, connection, log] = await Promise.all([
    store.shops.settings(shop.id),
    store.connections.find(shop.id),
    readLog(store, shop.id, "trigger", SECTION),
  ]);
  const live = liveLog(
    visit,
    log,
    <Empty id="no-starts">No workflow was started yet. Switch a trigger on above, and build a workflow on it in the platform's automation tool.</Empty>,
  );
  const content = (
    <>
      <p>Each trigger starts the workflows that are built on it in the platform's automation tool, with the customer and some fields of its own.</p>
      <Connection trouble={connection === undefined ? undefined : connection.trouble} domain={shop.domain} />
      <TriggerForm visit={visit} on={triggers} />
      {live}
    </>
  );
  return { title: "Workflow triggers", section: SECTION, content, live };
};

export const saveTriggers: Handler = async ({ shop, form }, { store }) => {
  requireAccess(shop);
  const chosen = form.getAll("triggers");
  if (chosen.some((name) => !TRIGGER_HANDLES.some((handle) => handle === name))) throw new SdsError("invalid", "That is not a trigger.");
  const triggers = parseTriggers(chosen.length === 0 ? "none" : chosen.join(","));
  await store.shops.set(shop.domain, { triggers });
  const names = triggers.map((handle) => TRIGGERS[handle].name).join(", ");
  return { to: SECTION, notices: [{ text: names === "" ? "Saved. All triggers are off." : `Saved. On: ${names}.` }] };
};

/** @param trouble undefined where the shop was never connected, null where all is well */
function Connection({ trouble, domain }: { trouble: string | null | undefined; domain: string }) {
  if (trouble === null) return null;
  return (
    <div id="connection" class="notice warning">
      {trouble === undefined ? (
        <p>
          This shop is not connected to the platform, so no workflow can be started. Whoever runs this service connects it with{" "}
          <code>sds shop connect {domain}</code>.
        </p>
      ) : (
        <p>
          The platform doesn't let us in at present: {trouble}. Whoever runs this service connects the shop anew with <code>sds shop connect {domain}</code>.
        </p>
      )}
    </div>
  );
}

function TriggerForm({ visit, on }: { visit: AdminRequest; on: readonly TriggerHandle[] }) {
  return (
    <form id="triggers" method="post" action={SECTION}>
      <CsrfField csrf={visit.csrf} />
      <fieldset disabled={!hasAccess(visit.shop.plan)}>
        <legend>Triggers</legend>
        {TRIGGER_HANDLES.map((handle) => (
          <div class="choice">
            <input type="checkbox" id={`trigger-${handle}`} name="triggers" value={handle} checked={on.includes(handle)} aria-describedby={`about-${handle}`} />
            <label for={`trigger-${handle}`}>{TRIGGERS[handle].name}</label>
            <small id={`about-${handle}`}>
              {TRIGGERS[handle].description}. Fields: {["Customer", ...Object.keys(TRIGGERS[handle].fields)].join(", ")}.
            </small>
          </div>
        ))}
        <button type="submit" id="save-triggers">
          Save
        </button>
      </fieldset>
    </form>
  );
}

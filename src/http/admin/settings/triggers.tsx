/** @jsxImportSource preact */
import { changeShop } from "../../../actions/shop.ts";
import { invalid } from "../../../domain/error.ts";
import { parseTriggers, TRIGGER_HANDLES, TRIGGERS, type TriggerHandle } from "../../../domain/events/trigger.ts";
import { explainTrouble, NOT_CONNECTED } from "../../../domain/platform/connection-trouble.ts";
import { hasAccess } from "../../../domain/shop.ts";
import type { AdminRequest, Handler } from "../admin-request.ts";
import { Form } from "../components.tsx";

const TAB = "/triggers";

export const showTriggers: Handler = async (request, { store }) => {
  const { shop } = request;
  const [{ triggers }, connection] = await Promise.all([
    store.shops.settings(shop.id),
    store.connections.find(shop.id),
  ]);
  const content = (
    <>
      <p>
        While a trigger is switched on, it starts the workflows that you built on it in Shopify Flow. It passes on the
        fields below.
      </p>
      <Connection trouble={connection?.trouble} />
      <TriggerForm request={request} on={triggers} />
    </>
  );
  return { title: "Workflow triggers", tab: TAB, content };
};

export const saveTriggers: Handler = async ({ shop, actor, form }, { store, now }) => {
  const chosen = form.getAll("triggers");
  if (chosen.some((name) => !TRIGGER_HANDLES.some((handle) => handle === name)))
    throw invalid("That is not a trigger.");
  const triggers = parseTriggers(chosen.length === 0 ? "none" : chosen.join(","));
  await changeShop(store, { shop, change: { triggers }, actor }, now());
  const names = triggers.map((handle) => TRIGGERS[handle].name).join(", ");
  return { to: TAB, notices: [{ text: names === "" ? "Saved. All triggers are off." : `Saved. On: ${names}.` }] };
};

/**
 * Warns if the platform cannot start workflows.
 * @param trouble undefined if the shop is not connected, null if the connection works
 */
function Connection({ trouble }: { trouble: string | null | undefined }) {
  if (trouble === null) return null;
  const { what, todo } = trouble === undefined ? NOT_CONNECTED : explainTrouble(trouble);
  return (
    <div id="connection" class="notice warning">
      <p>
        No workflow can be started at present. {what} {todo}
      </p>
    </div>
  );
}

function fieldNames(handle: TriggerHandle): string[] {
  const { hasCustomer, fields } = TRIGGERS[handle];
  return [...(hasCustomer ? ["Customer"] : []), ...Object.keys(fields)];
}

function TriggerForm({ request, on }: { request: AdminRequest; on: readonly TriggerHandle[] }) {
  return (
    <Form id="triggers" action={TAB}>
      <fieldset disabled={!hasAccess(request.shop.plan)}>
        <legend>Triggers</legend>
        {TRIGGER_HANDLES.map((handle) => (
          <div class="choice">
            <input
              type="checkbox"
              id={`trigger-${handle}`}
              name="triggers"
              value={handle}
              checked={on.includes(handle)}
              aria-describedby={`about-${handle}`}
            />
            <label for={`trigger-${handle}`}>{TRIGGERS[handle].name}</label>
            <small id={`about-${handle}`}>
              {TRIGGERS[handle].description}. Fields: {fieldNames(handle).join(", ")}.
            </small>
          </div>
        ))}
        <button type="submit" id="save-triggers">
          Save
        </button>
      </fieldset>
    </Form>
  );
}

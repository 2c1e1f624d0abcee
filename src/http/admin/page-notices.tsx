/** @jsxImportSource preact */
import { noAccess } from "../../actions/access.ts";
import { merchantLoadText, type UnfinishedLoad } from "../../actions/shop.ts";
import { type Alert, alertTexts } from "../../domain/deliveries/alert.ts";
import { hasAccess, type Plan } from "../../domain/shop.ts";
import { sentence } from "../../lib/text.ts";
import type { AdminTab, Notice } from "./admin-request.ts";
import { Copyable, Link, NewKeyPart, Time } from "./components.tsx";

/** Notices that stay until their cause ends. */
export interface StandingNotices {
  load: UnfinishedLoad | null;
  alerts: readonly Alert[];
}

interface PageNoticesProps extends StandingNotices {
  notices: readonly Notice[];
  plan: Plan;
  tab: AdminTab;
}

export function PageNotices({ notices, plan, tab, load, alerts }: PageNoticesProps) {
  return (
    <>
      <div id="notices" role="status">
        {notices.map((notice) => (
          <NoticeBox {...notice} />
        ))}
      </div>
      {alerts.map((alert) => (
        <AlertNotice alert={alert} tab={tab} />
      ))}
      {hasAccess(plan) || tab === "/plan" ? null : <PlanNotice />}
      {load === null ? null : <LoadNotice load={load} />}
    </>
  );
}

/** Shows an alert on every page that does not show the alert in its content. */
function AlertNotice({ alert, tab }: { alert: Alert; tab: AdminTab }) {
  const { what, error, advice, path } = alertTexts(alert);
  const to = alert.cause === "dead" ? `${path}?status=dead` : path;
  return (
    <div id={`alert-${alert.cause}`} class="notice bad">
      <p>
        {what} since <Time ms={alert.since} />. {error} {advice}{" "}
        {path === tab ? null : <Link to={to}>{ALERT_LINKS[path]}</Link>}
      </p>
    </div>
  );
}

const ALERT_LINKS = {
  "/deliveries": "See the deliveries",
  "/deliveries/workflows": "See the workflows",
  "/data": "See the connection",
} as const;

function NoticeBox({ text, tone, newKey, copy }: Notice) {
  return (
    <div class={tone === "warning" ? "notice warning" : "notice"}>
      <p>{text}</p>
      {newKey === undefined ? null : <NewKeyPart {...newKey} />}
      {copy === undefined ? null : <Copyable id="new-secret" {...copy} />}
    </div>
  );
}

/** Says that the load is under way, on pages that do not show the load. An open page does not update this notice. */
function LoadNotice({ load }: { load: UnfinishedLoad }) {
  return (
    <div id="load-notice" class="notice plain">
      <p>
        {merchantLoadText(load)} <Link to="/data">See how far it is</Link>
      </p>
    </div>
  );
}

function PlanNotice() {
  return (
    <div id="plan-notice" class="notice warning">
      <p>
        {sentence(noAccess("API access, webhooks or workflow triggers"))} At present, API calls are answered with 403,
        no event is queued, and the widget's stylesheet is empty. <Link to="/plan">See the plan</Link>
      </p>
    </div>
  );
}

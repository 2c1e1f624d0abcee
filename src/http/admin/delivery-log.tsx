/** @jsxImportSource preact */
import type { ComponentChildren, VNode } from "preact";
import type { DeliveryKind, DeliveryStatus } from "../../domain/deliveries/delivery.ts";
import { counted } from "../../lib/text.ts";
import type { Delivery } from "../../store/port/deliveries.ts";
import type { Store } from "../../store/port/store.ts";
import type { AdminRequest, AdminSection } from "./admin-request.ts";
import { ACTION, CsrfField, Empty, Table, Time } from "./components.tsx";

const LAST_LISTED = 20;
/** This many dead deliveries are listed; the others are only counted. */
const DEAD_LISTED = 100;

export const STATUS_NAMES: Record<DeliveryStatus, string> = {
  pending: "Pending",
  retrying: "Retrying",
  delivered: "Delivered",
  dead: "Dead",
};

interface ShownLog {
  kind: DeliveryKind;
  section: AdminSection;
  last: Delivery[];
  dead: Delivery[];
  deadCount: number;
}

/** Reads the last deliveries of a kind and its dead deliveries. A dead delivery stays listed until a retry. */
export async function readLog(
  store: Store,
  shopId: number,
  kind: DeliveryKind,
  section: AdminSection,
): Promise<ShownLog> {
  const [last, dead, deadCount] = await Promise.all([
    store.deliveries.list(shopId, { limit: LAST_LISTED, kind }),
    store.deliveries.list(shopId, { limit: DEAD_LISTED, kind, status: "dead" }),
    store.deliveries.countDead(shopId, 0, kind),
  ]);
  return { kind, section, last, dead, deadCount };
}

/** The live part of a log page. */
export function liveLog(request: AdminRequest, log: ShownLog, empty: VNode): VNode {
  const name = log.kind === "webhook" ? "deliveries" : "workflow starts";
  return (
    <Live poll announce={announcement(log)}>
      <h2>Last {LAST_LISTED}</h2>
      {log.last.length === 0 ? (
        empty
      ) : (
        <LogTable id="last" name={`The last ${name}`} request={request} log={log} deliveries={log.last} />
      )}
      <h2>
        Dead <span id="dead-count">({log.deadCount.toLocaleString("en")})</span>
      </h2>
      {log.deadCount === 0 ? (
        <Empty id="no-dead">None. A delivery that fails five times is listed here until it is sent again.</Empty>
      ) : (
        <DeadList request={request} log={log} name={name} />
      )}
    </Live>
  );
}

/** The part of a page that the script keeps current. @param poll whether the part can still change */
export function Live({ poll, announce, children }: { poll: boolean; announce: string; children: ComponentChildren }) {
  return (
    <section id="live" data-poll={poll ? "on" : "off"} data-announce={announce} tabIndex={-1}>
      {children}
      {poll ? (
        <noscript>
          <p>Reload the page to see what changed.</p>
        </noscript>
      ) : null}
    </section>
  );
}

export function StatusBadge({ status }: { status: DeliveryStatus }) {
  return <span class={`badge ${status}`}>{STATUS_NAMES[status]}</span>;
}

/** A badge. The space before it lets a narrow table break the line. */
export function TestBadge() {
  return (
    <>
      {" "}
      <span class="badge">test</span>
    </>
  );
}

/** @param back the page to return to */
export function RetryForm({
  request,
  id,
  label,
  back,
  list,
}: {
  request: AdminRequest;
  id: string;
  label: string;
  back: "log" | "details";
  list: string;
}) {
  return (
    <form class="inline" method="post" action={`/admin/deliveries/${id}/retry`}>
      <CsrfField csrf={request.csrf} />
      <input type="hidden" name="back" value={back} />
      <button type="submit" id={`retry-${list}-${id}`} class="outline" aria-label={label}>
        Retry
      </button>
    </form>
  );
}

function announcement({ last, deadCount }: ShownLog): string {
  const [newest] = last;
  return newest === undefined ? "" : `Newest: ${newest.topic}, ${STATUS_NAMES[newest.status]}. Dead: ${deadCount}.`;
}

function DeadList({ request, log, name }: { request: AdminRequest; log: ShownLog; name: string }) {
  const hidden = log.deadCount - log.dead.length;
  return (
    <>
      <p>
        <a id="retry-dead" href={`${log.section}/retry-dead`}>
          Retry all Dead
        </a>
      </p>
      <LogTable id="dead" name={`Dead ${name}`} request={request} log={log} deliveries={log.dead} />
      {hidden > 0 ? (
        <p id="dead-hidden">
          {counted(hidden, "older delivery is", "older deliveries are")} dead too. "Retry all Dead" also sends{" "}
          {hidden === 1 ? "it" : "them"} again.
        </p>
      ) : null}
    </>
  );
}

function LogTable({
  id,
  name,
  request,
  log,
  deliveries,
}: {
  id: string;
  name: string;
  request: AdminRequest;
  log: ShownLog;
  deliveries: readonly Delivery[];
}) {
  const topic = log.kind === "webhook" ? "Topic" : "Trigger";
  return (
    <Table id={id} name={name} headings={[topic, "Status", "Attempts", "HTTP", "Error", "Queued", ACTION]}>
      {deliveries.map((each) => (
        <tr id={`${id}-${each.id}`}>
          <th scope="row">
            <a id={`open-${id}-${each.id}`} href={`/admin/deliveries/${each.id}`}>
              {each.topic}
            </a>
            {each.test ? <TestBadge /> : null}
          </th>
          <td>
            <StatusBadge status={each.status} />
          </td>
          <td>{each.attempts}</td>
          <td>{each.lastStatusCode ?? "–"}</td>
          <td class="error">{each.error ?? "–"}</td>
          <td>
            <Time ms={each.createdAt} />
          </td>
          <td class="action">
            <RetryForm request={request} id={each.id} label={`Retry ${each.topic}, ${each.id}`} back="log" list={id} />
          </td>
        </tr>
      ))}
    </Table>
  );
}

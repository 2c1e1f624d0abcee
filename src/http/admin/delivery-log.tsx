/** @jsxImportSource preact */
import type { ComponentChildren, VNode } from "preact";
import type { DeliveryKind, DeliveryStatus } from "../../domain/deliveries/delivery.ts";
import { printable } from "../../lib/log.ts";
import { counted } from "../../lib/text.ts";
import type { Delivery } from "../../store/port/deliveries.ts";
import type { Store } from "../../store/port/store.ts";
import type { AdminRequest, AdminTab } from "./admin-request.ts";
import { ACTION, Empty, Form, Link, Table, Time } from "./components.tsx";

const LAST_LISTED = 20;
/** This many dead deliveries are listed; the others are only counted. */
const DEAD_LISTED = 100;

export const STATUS_NAMES: Record<DeliveryStatus, string> = {
  pending: "Pending",
  retrying: "Retrying",
  delivered: "Delivered",
  dead: "Dead",
};

interface LogPage {
  kind: DeliveryKind;
  tab: AdminTab;
}

interface ShownLog extends LogPage {
  dead: Delivery[];
  deadCount: number;
}

/**
 * Renders the live part of a log page: the last deliveries, and the deliveries that are dead now.
 * @param empty shown in place of an empty log
 */
export async function liveLog(store: Store, request: AdminRequest, page: LogPage, empty: VNode): Promise<VNode> {
  const { kind } = page;
  const shopId = request.shop.id;
  const [last, dead, deadCount] = await Promise.all([
    store.deliveries.list(shopId, { limit: LAST_LISTED, kind }),
    store.deliveries.list(shopId, { limit: DEAD_LISTED, kind, status: "dead" }),
    store.deliveries.countDead(shopId, 0, kind),
  ]);
  const log = { ...page, dead, deadCount };
  const name = kind === "webhook" ? "deliveries" : "workflow starts";
  return (
    <Live poll announce={announcement(last[0], deadCount)}>
      <h2>Last {LAST_LISTED}</h2>
      {last.length === 0 ? empty : <LogTable id="last" name={`The last ${name}`} log={log} deliveries={last} />}
      <h2>
        Dead <span id="dead-count">({deadCount.toLocaleString("en")})</span>
      </h2>
      {deadCount === 0 ? (
        <Empty id="no-dead">None. A delivery that fails five times is listed here until it is sent again.</Empty>
      ) : (
        <DeadList log={log} name={name} />
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

interface RetryFormProps {
  id: string;
  label: string;
  /** The page to return to. */
  back: "log" | "details";
  list: string;
}

export function RetryForm({ id, label, back, list }: RetryFormProps) {
  return (
    <Form class="inline" action={`/deliveries/${id}/retry`}>
      <input type="hidden" name="back" value={back} />
      <button type="submit" id={`retry-${list}-${id}`} class="outline" aria-label={label}>
        Retry
      </button>
    </Form>
  );
}

function announcement(newest: Delivery | undefined, deadCount: number): string {
  return newest === undefined ? "" : `Newest: ${newest.topic}, ${STATUS_NAMES[newest.status]}. Dead: ${deadCount}.`;
}

function DeadList({ log, name }: { log: ShownLog; name: string }) {
  const hidden = log.deadCount - log.dead.length;
  return (
    <>
      <p>
        <Link id="retry-dead" to={`${log.tab}/retry-dead`}>
          Retry all Dead
        </Link>
      </p>
      <LogTable id="dead" name={`Dead ${name}`} log={log} deliveries={log.dead} />
      {hidden > 0 ? (
        <p id="dead-hidden">
          {counted(hidden, "older delivery is", "older deliveries are")} dead too. "Retry all Dead" also sends{" "}
          {hidden === 1 ? "it" : "them"} again.
        </p>
      ) : null}
    </>
  );
}

interface LogTableProps {
  id: string;
  name: string;
  log: ShownLog;
  deliveries: readonly Delivery[];
}

function LogTable({ id, name, log: { kind }, deliveries }: LogTableProps) {
  const topic = kind === "webhook" ? "Topic" : "Trigger";
  return (
    <Table id={id} name={name} headings={[topic, "Status", "Attempts", "HTTP", "Error", "Queued", ACTION]}>
      {deliveries.map((each) => (
        <tr id={`${id}-${each.id}`}>
          <th scope="row">
            <Link id={`open-${id}-${each.id}`} to={`/deliveries/${each.id}`}>
              {each.topic}
            </Link>
            {each.test ? <TestBadge /> : null}
          </th>
          <td>
            <StatusBadge status={each.status} />
          </td>
          <td>{each.attempts}</td>
          <td>{each.lastStatusCode ?? "–"}</td>
          <td class="error">{printable(each.error ?? "–")}</td>
          <td>
            <Time ms={each.createdAt} />
          </td>
          <td class="action">
            <RetryForm id={each.id} label={`Retry ${each.topic}, ${each.id}`} back="log" list={id} />
          </td>
        </tr>
      ))}
    </Table>
  );
}

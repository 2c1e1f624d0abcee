/** @jsxImportSource preact */
import { findDelivery, retryDelivery as retry, retryResultText } from "../../actions/delivery.ts";
import { webhookHeaders } from "../../delivery/deliverer.ts";
import { type DeliveryKind, retentionText } from "../../domain/deliveries/delivery.ts";
import { printable } from "../../lib/log.ts";
import { counted } from "../../lib/text.ts";
import type { DeliveryDetails } from "../../store/port/deliveries.ts";
import type { AdminTab, Handler } from "./admin-request.ts";
import { Confirm, Empty, type Fact, Facts, Link, Table, Time } from "./components.tsx";
import { Live, liveLog, RetryForm, STATUS_NAMES, StatusBadge, TestBadge } from "./delivery-log.tsx";
import { EmptySection, SAMPLE_DELIVERIES, SAMPLE_STARTS } from "./samples.tsx";

const LOG_OF: Record<DeliveryKind, AdminTab> = { webhook: "/deliveries", trigger: "/deliveries/workflows" };

export const showDeliveries: Handler = async (request, { store, keepDeliveredMs }) => {
  const tab = LOG_OF.webhook;
  const live = await liveLog(
    store,
    request,
    { kind: "webhook", tab },
    <EmptySection id="no-deliveries" sample={SAMPLE_DELIVERIES}>
      Nothing was sent yet. <Link to="/webhooks">Set an endpoint</Link>, choose topics, and send a test event.
    </EmptySection>,
  );
  const content = (
    <>
      <p>
        The webhooks that were sent to this shop's endpoint, newest first. {retentionText(keepDeliveredMs)} This page
        updates by itself.
      </p>
      {live}
    </>
  );
  return { title: "Deliveries", tab, content, live };
};

/** Shows the workflows that were started. Their attempts are deliveries too. */
export const showWorkflows: Handler = async (request, { store, keepDeliveredMs }) => {
  const tab = LOG_OF.trigger;
  const live = await liveLog(
    store,
    request,
    { kind: "trigger", tab },
    <EmptySection id="no-starts" sample={SAMPLE_STARTS}>
      No workflow was started yet. <Link to="/triggers">Switch a trigger on</Link>, and create a workflow in the
      platform's automation tool that starts with it.
    </EmptySection>,
  );
  const content = (
    <>
      <p>The workflows that were started, newest first. {retentionText(keepDeliveredMs)}</p>
      {live}
    </>
  );
  return { title: "Deliveries", tab, content, live };
};

export const showDelivery: Handler = async (request, { store }) => {
  const { delivery, signature } = await findDelivery(store, request.shop, request.id);
  const { kind, topic } = delivery;
  const tab = LOG_OF[kind];
  const live = <DeliveryLive delivery={delivery} />;
  const content = (
    <>
      <p>
        <Link to={tab}>Back to the log</Link>
      </p>
      {live}
      {signature === null ? null : <HeadersSent delivery={delivery} signature={signature} />}
      <h2 id="body-heading">Body</h2>
      <section class="overflow-auto" aria-labelledby="body-heading" tabIndex={0}>
        <pre>
          <code id="body" class="body">
            {printable(readable(delivery.body))}
          </code>
        </pre>
      </section>
    </>
  );
  return { title: `${kind === "webhook" ? "Delivery" : "Workflow start"}: ${topic}`, tab, content, live };
};

export const retryDelivery: Handler = async ({ shop, id, form }, { store, now, wake }) => {
  const { kind, topic } = (await retry(store, shop, id, now())).delivery;
  wake();
  const to = form.get("back") === "log" ? LOG_OF[kind] : `/deliveries/${id}`;
  return { to, notices: [{ text: `${topic} (${id}) is sent again now.` }] };
};

export function askToRetryDead(kind: DeliveryKind): Handler {
  const tab = LOG_OF[kind];
  return async ({ shop }, { store }) => {
    const count = await store.deliveries.countDead(shop.id, 0, kind);
    const content =
      count === 0 ? (
        <Empty id="no-dead">
          There are no dead deliveries. <Link to={tab}>Back to the log</Link>
        </Empty>
      ) : (
        <Confirm
          id="retry-all-dead"
          action={`${tab}/retry-dead`}
          button={`Retry ${counted(count, "delivery", "deliveries")}`}
          back={tab}
        >
          <p>
            <strong id="count">{counted(count, "delivery", "deliveries")}</strong>{" "}
            {count === 1 ? "is dead. Send it" : "are dead. Send all of them"} again now? Each gets up to five new
            attempts,
            {kind === "webhook" ? " with the same id, body and signature." : " with the same fields."}
          </p>
        </Confirm>
      );
    return { title: "Retry all Dead", tab, content };
  };
}

export function retryDead(kind: DeliveryKind): Handler {
  return async ({ shop }, { store, now, wake }) => {
    const count = await store.deliveries.retryDead(shop.id, 0, now(), kind);
    wake();
    return { to: LOG_OF[kind], notices: [{ text: retryResultText(count) }] };
  };
}

/** Indents JSON. Leaves a body unchanged if it has a number that JSON.parse would round. */
function readable(body: string): string {
  try {
    const laidOut = JSON.stringify(JSON.parse(body), null, 2);
    return JSON.stringify(JSON.parse(laidOut)) === body ? laidOut : body;
  } catch {
    return body;
  }
}

function DeliveryLive({ delivery }: { delivery: DeliveryDetails }) {
  const { id, status, attempts, lastStatusCode, error, createdAt, nextAttemptAt, history, test, topic } = delivery;
  const ended = status === "delivered" || status === "dead";
  const facts: Fact[] = [
    ["Status", [<StatusBadge status={status} />, test ? <TestBadge /> : null], "status"],
    ["Id", <code>{id}</code>],
    ["Queued", <Time ms={createdAt} />],
    ["Attempts", attempts],
    ["Next attempt", nextAttemptAt === null ? "none" : <Time ms={nextAttemptAt} />],
    ["Last HTTP status", lastStatusCode ?? "none", "last-status-code"],
    ["Error", error ?? "none", "error"],
  ];
  return (
    <Live poll={!ended} announce={`${STATUS_NAMES[status]}, attempts: ${attempts}`}>
      {status === "pending" ? <OnItsWay delivery={delivery} /> : null}
      <Facts id="facts" facts={facts} />
      <RetryForm id={id} label={`Retry ${topic}`} back="details" list="this" />
      <h2>Attempts</h2>
      {history.length === 0 ? <Empty id="no-attempts">None yet.</Empty> : <AttemptTable history={history} />}
    </Live>
  );
}

/** This text is live content, so it disappears when the status changes. */
function OnItsWay({ delivery: { kind, test } }: { delivery: DeliveryDetails }) {
  const what = test ? "The test event" : kind === "webhook" ? "The webhook" : "The workflow start";
  return (
    <div id="on-its-way" class="notice">
      <p>{what} is on its way. The result will appear here.</p>
    </div>
  );
}

function AttemptTable({ history }: { history: DeliveryDetails["history"] }) {
  return (
    <Table id="attempts" name="Attempts" headings={["Attempt", "Began", "Took", "HTTP", "Error", "URL", "Answer"]}>
      {history.map(({ number, startedAt, duration, statusCode, error, url, answer }) => (
        <tr>
          <th scope="row">{number}</th>
          <td>
            <Time ms={startedAt} />
          </td>
          <td class="nowrap">{duration} ms</td>
          <td>{statusCode ?? "–"}</td>
          <td class="error">{printable(error ?? "–")}</td>
          <td class="error">{printable(url ?? "–")}</td>
          <td>{answer === null ? "–" : <Answer number={number} text={answer} />}</td>
        </tr>
      ))}
    </Table>
  );
}

function Answer({ number, text }: { number: number; text: string }) {
  return text === "" ? (
    "empty"
  ) : (
    <details>
      <summary>Answer {number}</summary>
      <pre>
        <code class="body">{printable(text)}</code>
      </pre>
    </details>
  );
}

function HeadersSent({ delivery, signature }: { delivery: DeliveryDetails; signature: string }) {
  const headers = Object.entries(webhookHeaders(delivery, signature));
  return (
    <>
      <h2>Headers as sent</h2>
      <Facts id="headers" facts={headers.map(([name, value]) => [name, <code>{value}</code>])} />
      <p>
        Each attempt also has its own <code>webhook-timestamp</code> and <code>webhook-signature</code>.
      </p>
    </>
  );
}

/** @jsxImportSource preact */
import { webhookHeaders } from "../../delivery/attempt.ts";
import { signatureOf } from "../../delivery/deliverer.ts";
import type { DeliveryKind } from "../../domain/delivery.ts";
import type { DeliveryDetails } from "../../store/deliveries.ts";
import type { AdminRequest, Handler, Section } from "./admin-request.ts";
import { Confirm, Empty, Table, Time } from "./components.tsx";
import { Live, liveLog, RetryForm, readLog, STATUS_NAMES, StatusBadge, TestBadge } from "./delivery-log.tsx";

const SECTION_OF: Record<DeliveryKind, Section> = { webhook: "/admin/deliveries", trigger: "/admin/triggers" };

export const showDeliveries: Handler = async (visit, { store }) => {
  const section = SECTION_OF.webhook;
  const live = liveLog(
    visit,
    await readLog(store, visit.shop.id, "webhook", section),
    <Empty id="no-deliveries">
      Nothing was sent yet. <a href="/admin/webhooks">Set an endpoint</a>, choose topics, and send a test event.
    </Empty>,
  );
  const content = (
    <>
      <p>What was sent to this shop's endpoint, newest first. It updates by itself.</p>
      {live}
    </>
  );
  return { title: "Delivery log", section, content, live };
};

export const showDelivery: Handler = async (visit, { store }) => {
  const found = await store.deliveries.show(visit.shop.id, visit.id);
  const signature = await signatureOf(store.webhooks, visit.shop.id, found);
  const section = SECTION_OF[found.kind];
  const live = <DeliveryLive visit={visit} found={found} />;
  const content = (
    <>
      <p>
        <a href={section}>Back to the log</a>
      </p>
      {live}
      {signature === null ? null : <HeadersSent topic={found.topic} signature={signature} />}
      <h2 id="body-heading">Body</h2>
      <section class="overflow-auto" aria-labelledby="body-heading" tabIndex={0}>
        <pre>
          <code id="body" class="body">
            {readable(found.body)}
          </code>
        </pre>
      </section>
    </>
  );
  return { title: `${found.kind === "webhook" ? "Delivery" : "Workflow start"}: ${found.topic}`, section, content, live };
};

export const retryDelivery: Handler = async ({ shop, id, form }, { store, now, wake }) => {
  const { kind, topic } = await store.deliveries.retry(shop.id, id, now());
  wake();
  const to = form.get("back") === "log" ? SECTION_OF[kind] : `/admin/deliveries/${id}`;
  return { to, notices: [{ text: `${topic} (${id}) is sent again now.` }] };
};

/** Asks how all that is dead of a kind is to be sent again, with the count. */
export function askToRetryDead(kind: DeliveryKind): Handler {
  const section = SECTION_OF[kind];
  return async ({ shop, csrf }, { store }) => {
    const count = await store.deliveries.countDead(shop.id, 0, kind);
    const content =
      count === 0 ? (
        <Empty id="no-dead">
          Nothing is dead. <a href={section}>Back to the log</a>
        </Empty>
      ) : (
        <Confirm id="retry-all-dead" csrf={csrf} action={`${section}/retry-dead`} does={`Retry ${counted(count)}`} back={section}>
          <p>
            <strong id="count">{counted(count)}</strong> failed for good. Send {count === 1 ? "it" : "all of them"} again now? Each gets a new round of up to
            five attempts,
            {kind === "webhook" ? " with the same id, body and signature." : " with the same fields."}
          </p>
        </Confirm>
      );
    return { title: "Retry all Dead", section, content };
  };
}

export function retryDead(kind: DeliveryKind): Handler {
  return async ({ shop }, { store, now, wake }) => {
    const count = await store.deliveries.retryDead(shop.id, 0, now(), kind);
    wake();
    return { to: SECTION_OF[kind], notices: [{ text: `${counted(count)} ${count === 1 ? "is" : "are"} sent again now.` }] };
  };
}

function counted(count: number): string {
  return `${count.toLocaleString("en")} ${count === 1 ? "delivery" : "deliveries"}`;
}

/** Laid out for people; what is sent has no spaces in it. A trigger's customer can be a number beyond what JSON.parse holds, and stays as it is. */
function readable(body: string): string {
  try {
    const laidOut = JSON.stringify(JSON.parse(body), null, 2);
    return JSON.stringify(JSON.parse(laidOut)) === body ? laidOut : body;
  } catch {
    return body;
  }
}

function DeliveryLive({ visit, found }: { visit: AdminRequest; found: DeliveryDetails }) {
  const { id, status, attempts, lastStatusCode, error, createdAt, nextAttemptAt, history } = found;
  const ended = status === "delivered" || status === "dead";
  return (
    <Live poll={!ended} announce={`${STATUS_NAMES[status]}, attempts: ${attempts}`}>
      <dl class="facts" id="facts">
        <dt>Status</dt>
        <dd id="status">
          <StatusBadge status={status} />
          {found.test ? <TestBadge /> : null}
        </dd>
        <dt>Id</dt>
        <dd>
          <code>{id}</code>
        </dd>
        <dt>Queued</dt>
        <dd>
          <Time ms={createdAt} />
        </dd>
        <dt>Attempts</dt>
        <dd>{attempts}</dd>
        <dt>Next attempt</dt>
        <dd>{nextAttemptAt === null ? "none" : <Time ms={nextAttemptAt} />}</dd>
        <dt>Last HTTP status</dt>
        <dd id="last-status-code">{lastStatusCode ?? "none"}</dd>
        <dt>Error</dt>
        <dd id="error">{error ?? "none"}</dd>
      </dl>
      <RetryForm visit={visit} id={id} label={`Retry ${found.topic}`} back="details" list="this" />
      <h2>Attempts</h2>
      {history.length === 0 ? <Empty id="no-attempts">None yet.</Empty> : <AttemptTable history={history} />}
    </Live>
  );
}

function AttemptTable({ history }: { history: DeliveryDetails["history"] }) {
  return (
    <Table id="attempts" name="Attempts" headings={["Attempt", "Began", "Took", "HTTP", "Error"]}>
      {history.map(({ number, startedAt, duration, statusCode, error }) => (
        <tr>
          <th scope="row">{number}</th>
          <td>
            <Time ms={startedAt} />
          </td>
          <td class="nowrap">{duration} ms</td>
          <td>{statusCode ?? "–"}</td>
          <td class="error">{error ?? "–"}</td>
        </tr>
      ))}
    </Table>
  );
}

function HeadersSent({ topic, signature }: { topic: string; signature: string }) {
  return (
    <>
      <h2>Headers as sent</h2>
      <dl class="facts" id="headers">
        {Object.entries(webhookHeaders(topic, signature)).map(([name, value]) => (
          <>
            <dt>{name}</dt>
            <dd>
              <code>{value}</code>
            </dd>
          </>
        ))}
      </dl>
    </>
  );
}

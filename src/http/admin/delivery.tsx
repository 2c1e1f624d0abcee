/** @jsxImportSource preact */
import type { ComponentChildren } from "preact";
import { findDelivery } from "../../actions/delivery.ts";
import { webhookHeaders } from "../../delivery/deliverer.ts";
import { httpError } from "../../domain/deliveries/delivery.ts";
import { numberOf } from "../../domain/deliveries/subject.ts";
import { printable } from "../../lib/log.ts";
import { sentence } from "../../lib/text.ts";
import type { Attempt, DeliveryDetails, DeliveryLog } from "../../store/port/deliveries.ts";
import type { Handler } from "./admin-request.ts";
import { Code } from "./code.tsx";
import { CopyButton, Empty, type Fact, Facts, Link, Time } from "./components.tsx";
import { LOG_OF } from "./deliveries.tsx";
import { STATUS_NAMES } from "./delivery-filters.tsx";
import { aboutText, Live, nextText, ResendForm, StatusBadge } from "./delivery-log.tsx";

/** The most other deliveries of a subject that are counted. */
const COUNTED = 99;

export const showDelivery: Handler = async ({ shop, id }, { store, now }) => {
  const { delivery, signature } = await findDelivery(store, shop, id);
  const { kind, topic } = delivery;
  const tab = LOG_OF[kind];
  const live = <DeliveryLive delivery={delivery} now={now()} />;
  const content = (
    <>
      <div class="columns">
        {live}
        <div>
          <Payload body={delivery.body} />
          {signature === null ? null : <HeadersSent delivery={delivery} signature={signature} />}
        </div>
      </div>
      <Related delivery={delivery} count={await countRelated(store.deliveries, shop.id, delivery)} />
    </>
  );
  return {
    title: `${kind === "webhook" ? "Delivery" : "Workflow start"}: ${topic}`,
    tab,
    trail: { to: tab, name: "Deliveries" },
    actions: (
      <>
        {signature === null ? null : (
          <Link id="as-curl" class="button outline" to={`/deliveries/${id}/curl`}>
            Copy as curl
          </Link>
        )}
        <ResendForm id={id} buttonId={`retry-this-${id}`} label={`Resend ${topic}`} />
      </>
    ),
    content,
    live,
  };
};

function DeliveryLive({ delivery, now }: { delivery: DeliveryDetails; now: number }) {
  const { id, status, attempts, createdAt, history, test } = delivery;
  const isEnded = status === "delivered" || status === "dead";
  const facts: Fact[] = [
    ["Status", [<StatusBadge status={status} />, test ? " · test event" : null], "status"],
    ["About", aboutText(delivery)],
    ["Id", <code>{id}</code>],
    ["Queued", <Time ms={createdAt} />],
  ];
  return (
    <Live poll={!isEnded} announce={`${STATUS_NAMES[status]}, attempts: ${attempts}`}>
      <Verdict delivery={delivery} now={now} />
      <Facts id="facts" facts={facts} />
      <h2>Attempts</h2>
      {history.length === 0 ? <Empty id="no-attempts">Each attempt is listed here with its answer.</Empty> : null}
      <ol id="attempts" class="attempts" reversed>
        {history.toReversed().map((attempt, index) => (
          <AttemptItem attempt={attempt} isNewest={index === 0} />
        ))}
      </ol>
    </Live>
  );
}

/** Says in a sentence or two how the delivery went, and what to do. */
function Verdict({ delivery, now }: { delivery: DeliveryDetails; now: number }) {
  const { status, attempts, history, nextAttemptAt } = delivery;
  const last = history.at(-1);
  const next = nextAttemptAt === null ? "" : ` Next attempt ${nextText(nextAttemptAt, now)}.`;
  switch (status) {
    case "pending":
      return (
        <VerdictBox id="on-its-way" tone=" plain">
          {whatOf(delivery)} {attempts === 0 ? "is on its way" : "is sent again"}. The result will appear here.
        </VerdictBox>
      );
    case "delivered":
      return (
        <VerdictBox tone="">
          Delivered{last === undefined ? "" : ` in ${last.duration} ms`} at{" "}
          {attempts === 1 ? "the first attempt" : `attempt ${attempts}`}.
        </VerdictBox>
      );
    case "retrying":
      return (
        <VerdictBox tone=" warning">
          {failureText(delivery)}
          {next}
        </VerdictBox>
      );
    case "dead":
      return (
        <VerdictBox tone=" bad">
          Not delivered. {failureText(delivery)} We stopped
          {last === undefined ? null : [" on ", <Time ms={last.startedAt} />]}.
          {delivery.kind === "webhook" ? " Repair it, then resend." : ""}
        </VerdictBox>
      );
  }
}

function VerdictBox({ id, tone, children }: { id?: string; tone: string; children: ComponentChildren }) {
  return (
    <div id="verdict" class={`notice verdict${tone}`}>
      <p id={id}>{children}</p>
    </div>
  );
}

function whatOf({ kind, test }: DeliveryDetails): string {
  if (test) return "The test event";
  return kind === "webhook" ? "The webhook" : "The workflow start";
}

const TIMES = ["", "", " twice", " three times", " four times", " five times"];

/** Says how the last attempts failed: "Your endpoint answered 503 five times." */
function failureText({ kind, history, error }: DeliveryDetails): string {
  const last = history.at(-1);
  if (last === undefined) return sentence(error ?? "");
  const others = history.findLastIndex((each) => each.statusCode !== last.statusCode || each.error !== last.error);
  const count = history.length - 1 - others;
  const times = TIMES[count] ?? ` ${count} times`;
  if (kind === "webhook" && last.statusCode !== null && last.error === httpError(last.statusCode))
    return `Your endpoint answered ${last.statusCode}${times}.`;
  const text = sentence(printable(last.error ?? ""));
  return count === 1 ? text : `${text} That happened${times}.`;
}

function AttemptItem({ attempt, isNewest }: { attempt: Attempt; isNewest: boolean }) {
  const { number, startedAt, duration, statusCode, error, url, answer } = attempt;
  return (
    <li value={number}>
      <details id={`attempt-${number}`} open={isNewest}>
        <summary>
          <span class={error === null ? "delivered" : "dead"}>
            <span aria-hidden="true">{error === null ? "●" : "✕"}</span> {statusCode ?? "no answer"}
          </span>{" "}
          · {duration} ms · <Time ms={startedAt} />
        </summary>
        {url === null ? null : (
          <p class="error">
            <code>POST {printable(url)}</code>
          </p>
        )}
        {error === null ? null : <p class="error">{printable(error)}</p>}
        {answer === null ? null : <Answer text={answer} />}
      </details>
    </li>
  );
}

function Answer({ text }: { text: string }) {
  return text === "" ? (
    <p class="muted">The answer was empty.</p>
  ) : (
    <pre>
      <code class="body">{printable(text)}</code>
    </pre>
  );
}

function Payload({ body }: { body: string }) {
  return (
    <>
      <div class="title">
        <h2 id="body-heading">Payload</h2>
        <CopyButton of="body" name="the payload" />
      </div>
      <Code id="body" label="Payload" text={printable(readable(body))} />
    </>
  );
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

function HeadersSent({ delivery, signature }: { delivery: DeliveryDetails; signature: string }) {
  const headers = Object.entries(webhookHeaders(delivery, signature));
  return (
    <>
      <h2>Headers</h2>
      <Facts id="headers" facts={headers.map(([name, value]) => [name, <code>{value}</code>])} />
      <p class="muted">
        Each attempt also has its own <code>webhook-timestamp</code> and <code>webhook-signature</code>.
      </p>
    </>
  );
}

/** Counts the other deliveries of the same contract, or of the same customer, up to COUNTED. */
async function countRelated(
  deliveries: DeliveryLog,
  shopId: number,
  { kind, subject }: DeliveryDetails,
): Promise<number> {
  const named = subject.contract === null ? subject.customer : numberOf(subject.contract);
  if (named === null) return 0;
  const page = await deliveries.page(shopId, { kind, subjects: [{ subject: named }], limit: COUNTED + 1 });
  return Math.max(0, page.deliveries.length - 1);
}

function Related({ delivery: { kind, subject }, count }: { delivery: DeliveryDetails; count: number }) {
  if (count === 0) return null;
  const of = subject.contract === null ? "customer" : "subscription";
  const query = new URLSearchParams({ subject: subject.contract ?? subject.customer ?? "" });
  return (
    <p>
      <Link id="related" to={`${LOG_OF[kind]}?${query}`}>
        Of the same {of}: {count}
        {count === COUNTED ? " or more" : ""} more
      </Link>
    </p>
  );
}

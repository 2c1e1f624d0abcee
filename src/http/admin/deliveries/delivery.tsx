/** @jsxImportSource preact */
import type { ComponentChildren } from "preact";
import { findDelivery } from "../../../actions/delivery.ts";
import { webhookHeaders } from "../../../delivery/deliverer.ts";
import { httpError } from "../../../domain/deliveries/delivery.ts";
import { explainFailure } from "../../../domain/deliveries/failure.ts";
import { numberOf } from "../../../domain/deliveries/subject.ts";
import { explainError } from "../../../domain/platform/connection-trouble.ts";
import type { Resource } from "../../../domain/resources.ts";
import { printable } from "../../../lib/log.ts";
import type { Attempt, DeliveryDetails, DeliveryLog } from "../../../store/port/deliveries.ts";
import type { Handler } from "../admin-request.ts";
import { Code, readable } from "../code.tsx";
import { CopyButton, Empty, type Fact, Facts, Link, Live, Time } from "../components.tsx";
import { LOG_OF } from "./log.tsx";
import { STATUS_NAMES } from "./log-search.ts";
import { aboutText, failureOf, nextText, ResendForm, StatusBadge } from "./log-table.tsx";

/** How many attempts the page shows. A delivery can have more attempts, because each resend adds attempts. */
const SHOWN_ATTEMPTS = 20;
/** Maximum number of related deliveries to count. */
const COUNTED = 99;

export const showDelivery: Handler = async ({ shop, id }, { store, now }) => {
  const { delivery, signature } = await findDelivery(store, shop, id);
  const { kind, topic } = delivery;
  const tab = LOG_OF[kind];
  const live = <DeliveryLive delivery={delivery} now={now()} />;
  const content = (
    <div class="columns">
      <div>
        {live}
        <Related delivery={delivery} count={await countRelated(store.deliveries, shop.id, delivery)} />
      </div>
      <div>
        <Payload body={delivery.body} />
        {signature === null ? null : <HeadersSent delivery={delivery} signature={signature} />}
      </div>
    </div>
  );
  return {
    title: `${kind === "webhook" ? "Delivery" : "Workflow start"}: ${topic}`,
    tab,
    trail: { to: tab, name: "Deliveries" },
    actions: (
      <>
        {signature === null ? null : (
          <Link id="as-curl" class="button outline" to={`/deliveries/${id}/curl`}>
            Copy as curl…
          </Link>
        )}
        <ResendForm
          id={id}
          buttonId={`retry-this-${id}`}
          label={`Resend ${topic}`}
          isPrimary={delivery.status === "dead"}
        />
      </>
    ),
    content,
    live,
  };
};

function DeliveryLive({ delivery, now }: { delivery: DeliveryDetails; now: number }) {
  const { id, status, attempts, createdAt, history } = delivery;
  const isEnded = status === "delivered" || status === "dead";
  const links = dataLinks(delivery);
  const facts: Fact[] = [
    ["Status", <StatusBadge status={status} />, "status"],
    ["About", aboutText(delivery)],
    ...(links.length === 0 ? [] : [["Data", links] as const]),
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
        {history
          .slice(-SHOWN_ATTEMPTS)
          .toReversed()
          .map((attempt, index) => (
            <AttemptItem attempt={attempt} isNewest={index === 0} />
          ))}
      </ol>
      {history.length <= SHOWN_ATTEMPTS ? null : (
        <p id="older-attempts">
          These are the newest {SHOWN_ATTEMPTS} of {history.length.toLocaleString("en")} attempts.
        </p>
      )}
    </Live>
  );
}

/** Links to the rows that a delivery is about. A test event gets no links, because its ids are samples. */
function dataLinks({ subject: { order, contract, customer }, test }: DeliveryDetails): ComponentChildren[] {
  const named: [resource: Resource, name: string, id: string | null][] = [
    ["orders", "Order", order],
    ["subscriptions", "Subscription", contract],
    ["customers", "Customer", customer],
  ];
  return named.flatMap(([resource, name, id]) =>
    id === null || test
      ? []
      : [<Link to={`/data/browse?${new URLSearchParams({ resource, find: id })}`}>{name}</Link>, " "],
  );
}

/** Says in one or two sentences whether the delivery arrived, and what to do. */
function Verdict({ delivery, now }: { delivery: DeliveryDetails; now: number }) {
  const { status, attempts, history, nextAttemptAt } = delivery;
  const last = history.at(-1);
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
        <VerdictBox tone=" warning" todo={todoOf(delivery)}>
          {failureText(delivery)}
          {nextAttemptAt === null ? "" : ` Next attempt ${nextText(nextAttemptAt, now)}.`}
        </VerdictBox>
      );
    case "dead":
      return (
        <VerdictBox tone=" bad" todo={[todoOf(delivery), " Then resend."]}>
          Not delivered. {failureText(delivery)} We stopped
          {last === undefined ? null : [" on ", <Time ms={last.startedAt} />]}.
        </VerdictBox>
      );
  }
}

interface VerdictBoxProps {
  id?: string;
  tone: string;
  /** What the merchant should change. */
  todo?: ComponentChildren;
  children: ComponentChildren;
}

function VerdictBox({ id, tone, todo, children }: VerdictBoxProps) {
  return (
    <div id="verdict" class={`notice${tone}`}>
      <p id={id} class="verdict">
        {children}
      </p>
      {todo === undefined ? null : <p id="todo">{todo}</p>}
    </div>
  );
}

function whatOf({ kind, test }: DeliveryDetails): string {
  if (test) return "The test event";
  return kind === "webhook" ? "The webhook" : "The workflow start";
}

const TIMES = ["", "", "twice", "three times", "four times", "five times"];

/** Says how the last attempts failed: "Your endpoint answered 503 five times." */
function failureText(delivery: DeliveryDetails): string {
  const { history } = delivery;
  const last = history.at(-1);
  const others = history.findLastIndex((each) => each.statusCode !== last?.statusCode || each.error !== last.error);
  const count = history.length - 1 - others;
  const what = failureOf(delivery).replace(/\.$/, "");
  if (count < 2) return `${what}.`;
  return `${what}${last?.statusCode === null ? "," : ""} ${TIMES[count] ?? `${count} times`}.`;
}

/** Says what to change after a failure. If Shopify refused a workflow start, the page shows Shopify's reason too. */
function todoOf({ kind, lastStatusCode: statusCode, error }: DeliveryDetails): string {
  const todo = kind === "webhook" ? explainFailure({ statusCode, error })?.todo : explainError(error ?? "").todo;
  return todo || "Correct what Shopify names here.";
}

function AttemptItem({ attempt, isNewest }: { attempt: Attempt; isNewest: boolean }) {
  const { number, startedAt, duration, statusCode, error, url, answer } = attempt;
  return (
    <li value={number}>
      <details id={`attempt-${number}`} open={isNewest}>
        <summary>
          <span class="muted">{number}</span>{" "}
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
        {error === null || error === httpError(statusCode ?? 0) ? null : (
          <p class="error">{printable(explainError(error).what)}</p>
        )}
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

/** Counts the contract's other deliveries, or the customer's if the delivery names no contract. Stops at COUNTED. */
async function countRelated(
  deliveries: DeliveryLog,
  shopId: number,
  { kind, subject, test }: DeliveryDetails,
): Promise<number> {
  const named = subject.contract === null ? subject.customer : numberOf(subject.contract);
  // A test event has sample ids, so it has no related deliveries.
  if (named === null || test) return 0;
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
        See {count === COUNTED ? `at least ${count}` : count} more about this {of}
      </Link>
    </p>
  );
}

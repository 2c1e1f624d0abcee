/** @jsxImportSource preact */
import { type DeliveryKind, type DeliveryStatus, httpError } from "../../../domain/deliveries/delivery.ts";
import { explainFailure } from "../../../domain/deliveries/failure.ts";
import { numberOf } from "../../../domain/deliveries/subject.ts";
import { explainError } from "../../../domain/platform/connection-trouble.ts";
import { printable } from "../../../lib/log.ts";
import { counted } from "../../../lib/text.ts";
import { spanText } from "../../../lib/time.ts";
import type { Delivery } from "../../../store/port/deliveries.ts";
import { CardTable, Cell, NameCell, Row } from "../card-table.ts";
import { Age, Form, Link } from "../components.tsx";
import { STATUS_NAMES } from "./log-search.ts";

/** Each status has a shape too, because some readers cannot tell the colours apart. */
export const SHAPES: Record<DeliveryStatus, string> = { pending: "○", retrying: "◐", delivered: "●", dead: "✕" };

export function StatusBadge({ status }: { status: DeliveryStatus }) {
  return (
    <span class={`status ${status}`}>
      <span aria-hidden="true">{SHAPES[status]}</span> {STATUS_NAMES[status]}
    </span>
  );
}

interface ResendFormProps {
  id: string;
  buttonId: string;
  label: string;
  /** After the resend, the log opens with this query. Without a query, the delivery's page opens instead. */
  query?: string;
  /** Whether the button is the most important button of its page. */
  isPrimary?: boolean;
}

export function ResendForm({ id, buttonId, label, query, isPrimary = false }: ResendFormProps) {
  return (
    <Form class="inline" action={`/deliveries/${id}/retry`}>
      {query === undefined ? null : <input type="hidden" name="log" value={query} />}
      <button type="submit" id={buttonId} class={isPrimary ? undefined : "outline"} aria-label={label}>
        Resend
      </button>
    </Form>
  );
}

export interface LogTableProps {
  id: string;
  name: string;
  kind: DeliveryKind;
  deliveries: readonly Delivery[];
  now: number;
  /** After a resend, the log opens with this query. undefined for a sample, which has no links and no buttons. */
  query: string | undefined;
}

export function LogTable({ id, name, kind, deliveries, now, query }: LogTableProps) {
  const headings = ["Status", kind === "webhook" ? "Topic" : "Trigger", "About", "Result", "Queued"];
  return (
    <CardTable id={id} name={name} headings={headings}>
      {deliveries.map((each) => (
        <Row id={`${id}-${each.id}`}>
          <Cell>
            <StatusBadge status={each.status} />
          </Cell>
          <NameCell>
            {query === undefined ? (
              each.topic
            ) : (
              <Link id={`open-${id}-${each.id}`} to={`/deliveries/${each.id}`}>
                {each.topic}
              </Link>
            )}
          </NameCell>
          <Cell>{aboutText(each)}</Cell>
          <Cell>
            <div class="actions">
              <Result delivery={each} now={now} />
              {query === undefined || each.status !== "dead" ? null : (
                <ResendForm
                  id={each.id}
                  buttonId={`retry-${id}-${each.id}`}
                  label={`Resend ${each.topic}, ${aboutText(each)}`}
                  query={query}
                />
              )}
            </div>
          </Cell>
          <Cell class="corner">
            <Age ms={each.createdAt} now={now} />
          </Cell>
        </Row>
      ))}
    </CardTable>
  );
}

/** Says what a delivery is about: "Order 1042 · subscription 5003". */
export function aboutText({ subject: { contract, customer, order, cycle }, test }: Pick<Delivery, "subject" | "test">) {
  if (test) return "Test event";
  const charge = order === null ? chargeText(cycle) : [`Order ${numberOf(order)}`];
  const subscription = contract === null ? [] : [`subscription ${numberOf(contract)}`];
  const named = [...charge, ...subscription];
  if (named.length === 0) return customer === null ? "A customer" : `Customer ${customer}`;
  const text = named.join(" · ");
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}

/** Names a charge by its cycle, because a declined charge has no order. */
function chargeText(cycle: number | null): string[] {
  if (cycle === null) return [];
  return [cycle === 0 ? "Checkout" : `Renewal ${cycle}`];
}

function Result({ delivery, now }: { delivery: Delivery; now: number }) {
  const { status, attempts, lastDuration, nextAttemptAt } = delivery;
  const took = lastDuration === null || status !== "delivered" ? "" : ` · ${lastDuration} ms`;
  const next = nextAttemptAt === null ? "" : nextText(nextAttemptAt, now);
  const waiting = attempts === 0 ? `first attempt ${next}` : `attempt ${attempts}, next ${next}`;
  const hints: Record<DeliveryStatus, string> = {
    pending: waiting,
    retrying: waiting,
    delivered: attempts > 1 ? `attempt ${attempts}` : "",
    dead: counted(attempts, "attempt", "attempts"),
  };
  return (
    <span>
      {answerText(delivery)}
      {took} <span class="muted nowrap">{hints[status]}</span>
    </span>
  );
}

/** Says when the next attempt is made: "in 3 min", or "now". */
export function nextText(nextAttemptAt: number, now: number): string {
  return nextAttemptAt - now < 1_000 ? "now" : `in ${spanText(nextAttemptAt - now)}`;
}

/** Returns the HTTP status of the last answer, or why no answer arrived; empty before the first attempt. */
function answerText(delivery: Delivery): string {
  const { lastStatusCode, error } = delivery;
  if (error === null || (lastStatusCode !== null && error === httpError(lastStatusCode)))
    return String(lastStatusCode ?? "");
  return failureOf(delivery);
}

/** Says how the last attempt failed. */
export function failureOf({ kind, lastStatusCode: statusCode, error }: Delivery): string {
  const isAnswer = statusCode === null || error === httpError(statusCode);
  const what =
    kind === "webhook" && isAnswer ? explainFailure({ statusCode, error })?.what : explainError(error ?? "").what;
  return printable(what ?? "");
}

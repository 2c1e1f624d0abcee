/** @jsxImportSource preact */
import type { ComponentChildren } from "preact";
import type { DeliveryStatus } from "../../domain/deliveries/delivery.ts";
import { sampleEvent } from "../../domain/events/sample.ts";
import { TRIGGERS } from "../../domain/events/trigger.ts";
import { sampleRows } from "../openapi/sample-rows.ts";
import { Table } from "./components.tsx";
import { StatusBadge } from "./delivery-log.tsx";

/**
 * A section without rows: what it will show, what to do next, and a sample. The sample is marked as one, and has no
 * links and no data of the shop.
 */
export function EmptySection({ id, children, sample }: { id: string; children: ComponentChildren; sample: Sample }) {
  return (
    <>
      <p id={id} class="empty">
        {children}
      </p>
      <figure class="sample" id={`${id}-sample`}>
        <figcaption>
          <span class="badge">Sample</span> {sample.caption}
        </figcaption>
        {sample.content}
      </figure>
    </>
  );
}

interface Sample {
  caption: string;
  content: ComponentChildren;
}

interface SampleDelivery {
  topic: string;
  status: DeliveryStatus;
  attempts: number;
  answer: string;
}

const DELIVERIES: SampleDelivery[] = [
  { topic: "order.charged", status: "delivered", attempts: 1, answer: "200" },
  { topic: "subscription.updated", status: "retrying", attempts: 2, answer: "503" },
  { topic: "order.failed", status: "dead", attempts: 5, answer: "500" },
];

export const SAMPLE_DELIVERIES: Sample = {
  caption: "This is how deliveries look.",
  content: <DeliveryTable id="sample-deliveries" name="Sample deliveries" deliveries={DELIVERIES} heading="Topic" />,
};

const STARTS: SampleDelivery[] = [
  { topic: "subscription-created", status: "delivered", attempts: 1, answer: "200" },
  { topic: "billing-attempt-failed", status: "pending", attempts: 0, answer: "–" },
];

export const SAMPLE_STARTS: Sample = {
  caption:
    `This is how started workflows look. “${TRIGGERS["subscription-created"].name}” passes on the customer, ` +
    "the contract and its interval.",
  content: <DeliveryTable id="sample-starts" name="Sample workflow starts" deliveries={STARTS} heading="Trigger" />,
};

interface DeliveryTableProps {
  id: string;
  name: string;
  deliveries: readonly SampleDelivery[];
  heading: string;
}

function DeliveryTable({ id, name, deliveries, heading }: DeliveryTableProps) {
  return (
    <Table id={id} name={name} headings={[heading, "Status", "Attempts", "HTTP"]}>
      {deliveries.map(({ topic, status, attempts, answer }) => (
        <tr>
          <th scope="row">{topic}</th>
          <td>
            <StatusBadge status={status} />
          </td>
          <td>{attempts}</td>
          <td>{answer}</td>
        </tr>
      ))}
    </Table>
  );
}

export const SAMPLE_EVENT: Sample = {
  caption: "Your endpoint gets such a body when an order is charged.",
  content: <Code id="sample-event" value={sampleEvent("order.charged")} />,
};

/** A call with a key. @param address of the API */
export function sampleCall(address: string): Sample {
  const command = `curl -H "Authorization: Bearer cad_pk_…" \\\n  ${address}/api/v1/subscriptions?limit=1`;
  return {
    caption: "A system with a key reads the shop's data so:",
    content: <Code id="sample-call" value={command} />,
  };
}

export const SAMPLE_FIELD: Sample = {
  caption: "A field “Gift note” would be in each subscription that the API serves:",
  content: <Code id="sample-field" value={{ customFields: { gift_note: "Happy birthday!" } }} />,
};

/** The rows that the API serves. Made at the first use, because they are decided like real ones. */
export function sampleData(): Sample {
  const { subscription } = sampleRows();
  return {
    caption: "The API serves such a row for each subscription.",
    content: <Code id="sample-row" value={subscription} />,
  };
}

function Code({ id, value }: { id: string; value: object | string }) {
  return (
    <section aria-label="Sample">
      <pre tabIndex={0}>
        <code id={id}>{typeof value === "string" ? value : JSON.stringify(value, null, 2)}</code>
      </pre>
    </section>
  );
}

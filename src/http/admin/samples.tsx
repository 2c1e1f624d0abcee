/** @jsxImportSource preact */
import type { ComponentChildren } from "preact";
import { httpError } from "../../domain/deliveries/delivery.ts";
import { sampleEvent } from "../../domain/events/sample.ts";
import { TRIGGERS } from "../../domain/events/trigger.ts";
import type { Delivery } from "../../store/port/deliveries.ts";
import { sampleRows } from "../openapi/sample-rows.ts";
import { Code } from "./code.tsx";
import { readCommand } from "./components.tsx";
import { LogTable, type LogTableProps } from "./delivery-log.tsx";

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

const NOW = Date.parse("2026-01-31T09:30:00.000Z");
const SAMPLE: Delivery = {
  id: "whd_sample",
  kind: "webhook",
  topic: "order.charged",
  test: false,
  status: "delivered",
  attempts: 1,
  nextAttemptAt: null,
  lastStatusCode: 200,
  lastDuration: 48,
  error: null,
  createdAt: NOW - 12_000,
  subject: {
    contract: "gid://shopify/SubscriptionContract/5003",
    customer: null,
    order: "gid://shopify/Order/1042",
    cycle: 3,
  },
};
const WITHOUT_ORDER = { ...SAMPLE.subject, order: null, cycle: null };

const DELIVERIES: Delivery[] = [
  SAMPLE,
  {
    ...SAMPLE,
    topic: "subscription.updated",
    status: "retrying",
    attempts: 2,
    nextAttemptAt: NOW + 180_000,
    lastStatusCode: 503,
    error: httpError(503),
    createdAt: NOW - 130_000,
    subject: WITHOUT_ORDER,
  },
  {
    ...SAMPLE,
    topic: "order.failed",
    status: "dead",
    attempts: 5,
    lastStatusCode: 500,
    error: httpError(500),
    createdAt: NOW - 2 * 3_600_000,
    subject: { ...SAMPLE.subject, order: null },
  },
];

export const SAMPLE_DELIVERIES: Sample = {
  caption: "This is how deliveries look.",
  content: <SampleLog id="sample-deliveries" name="Sample deliveries" kind="webhook" deliveries={DELIVERIES} />,
};

const STARTS: Delivery[] = [
  { ...SAMPLE, topic: "subscription-created", subject: WITHOUT_ORDER },
  {
    ...SAMPLE,
    topic: "billing-attempt-failed",
    status: "pending",
    attempts: 0,
    nextAttemptAt: NOW,
    lastStatusCode: null,
    subject: WITHOUT_ORDER,
  },
];

export const SAMPLE_STARTS: Sample = {
  caption:
    `This is how started workflows look. “${TRIGGERS["subscription-created"].name}” passes on the customer, ` +
    "the contract and its interval.",
  content: <SampleLog id="sample-starts" name="Sample workflow starts" kind="trigger" deliveries={STARTS} />,
};

function SampleLog(log: Pick<LogTableProps, "id" | "name" | "kind" | "deliveries">) {
  return <LogTable {...log} now={NOW} query={undefined} />;
}

export const SAMPLE_EVENT: Sample = {
  caption: "Your endpoint gets such a body when an order is charged.",
  content: <Code id="sample-event" label="Sample" text={JSON.stringify(sampleEvent("order.charged"), null, 2)} />,
};

/** A call with a key. @param address of the API */
export function sampleCall(address: string): Sample {
  const command = readCommand({ value: "cad_pk_…", address });
  return {
    caption: "A system with a key reads the shop's data so:",
    content: <Code id="sample-call" label="Sample" text={command} />,
  };
}

export const SAMPLE_FIELD: Sample = {
  caption: "A field “Gift note” would be in each subscription that the API serves:",
  content: (
    <Code
      id="sample-field"
      label="Sample"
      text={JSON.stringify({ customFields: { gift_note: "Happy birthday!" } }, null, 2)}
    />
  ),
};

/** The rows that the API serves. Made at the first use, because they are decided like real ones. */
export function sampleData(): Sample {
  const { subscription } = sampleRows();
  return {
    caption: "The API serves such a row for each subscription.",
    content: <Code id="sample-row" label="Sample" text={JSON.stringify(subscription, null, 2)} />,
  };
}

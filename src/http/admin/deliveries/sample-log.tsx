/** @jsxImportSource preact */
import { httpError } from "../../../domain/deliveries/delivery.ts";
import { TRIGGERS } from "../../../domain/events/trigger.ts";
import type { Delivery } from "../../../store/port/deliveries.ts";
import type { Sample } from "../samples.tsx";
import { LogTable, type LogTableProps } from "./log-table.tsx";

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

function SampleLog({ deliveries, ...log }: Pick<LogTableProps, "id" | "name" | "kind" | "deliveries">) {
  const numbered = deliveries.map((each, index) => ({ ...each, id: `${each.id}_${index + 1}` }));
  return <LogTable {...log} deliveries={numbered} now={NOW} query={undefined} />;
}

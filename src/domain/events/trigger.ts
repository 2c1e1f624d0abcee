import { invalid } from "../error.ts";

type FieldType = "single_line_text_field" | "number_decimal";

interface TriggerKind {
  name: string;
  /** The event that starts a workflow. */
  description: string;
  /** Whether the platform gets the customer too. */
  hasCustomer: boolean;
  /** Fields in addition to the customer. The platform allows only letters and spaces in their names. */
  fields: Record<string, FieldType>;
}

/** Handle of the trigger that tells a merchant about an alert. No webhook topic starts this trigger. */
export const ENDPOINT_FAILING = "endpoint-failing";

/**
 * The triggers in the platform's automation tool, by handle (docs/webhooks.md, "Workflow triggers"). The extensions
 * that declare the triggers are generated from this table. A handle must never change once the platform knows it.
 */
export const TRIGGERS = {
  "subscription-created": {
    name: "Subscription created",
    description: "A new subscription contract is created",
    hasCustomer: true,
    fields: { "Contract ID": "single_line_text_field", Interval: "single_line_text_field" },
  },
  "subscription-cancelled": {
    name: "Subscription cancelled",
    description: "A subscription contract is cancelled",
    hasCustomer: true,
    fields: {
      "Contract ID": "single_line_text_field",
      Interval: "single_line_text_field",
      "Churn type": "single_line_text_field",
    },
  },
  "billing-attempt-failed": {
    name: "Billing attempt failed",
    description: "A renewal charge is declined",
    hasCustomer: true,
    fields: {
      "Contract ID": "single_line_text_field",
      Interval: "single_line_text_field",
      "Decline reason": "single_line_text_field",
      "Attempt count": "number_decimal",
    },
  },
  "streak-milestone-reached": {
    name: "Streak milestone reached",
    description: "A subscriber crosses a streak milestone",
    hasCustomer: true,
    fields: { Milestone: "number_decimal" },
  },
  [ENDPOINT_FAILING]: {
    name: "Webhook endpoint failing",
    description: "The endpoint for webhooks fails for an hour, or a webhook is dead",
    hasCustomer: false,
    fields: {
      Host: "single_line_text_field",
      Error: "single_line_text_field",
      Since: "single_line_text_field",
      Link: "single_line_text_field",
    },
  },
} as const satisfies Record<string, TriggerKind>;

export type TriggerHandle = keyof typeof TRIGGERS;
export const TRIGGER_HANDLES = Object.keys(TRIGGERS) as TriggerHandle[];

/** A workflow to start. */
export type Trigger = {
  [H in TriggerHandle]: {
    handle: H;
    /** The customer's gid. */
    customer: (typeof TRIGGERS)[H]["hasCustomer"] extends true ? string : null;
    fields: {
      [K in keyof (typeof TRIGGERS)[H]["fields"]]: (typeof TRIGGERS)[H]["fields"][K] extends "number_decimal"
        ? number
        : string;
    };
  };
}[TriggerHandle];

/** Reads `a,b`, `all` or `none`. @throws SdsError `invalid` */
export function parseTriggers(text: string): TriggerHandle[] {
  if (text === "all") return TRIGGER_HANDLES;
  if (text === "none") return [];
  const names = text.split(",").map((part) => part.trim());
  const unknown = names.find((name) => !TRIGGER_HANDLES.some((handle) => handle === name));
  if (unknown !== undefined)
    throw invalid(`"${unknown}" is not a trigger: choose from ${TRIGGER_HANDLES.join(", ")}, or all or none`);
  return TRIGGER_HANDLES.filter((handle) => names.includes(handle));
}

/**
 * Writes the variables of the platform's `flowTriggerReceive` as JSON. A customer's number is inserted as text,
 * because a float cannot hold every such number.
 */
export function triggerBody({ handle, customer, fields }: Trigger): string {
  if (customer === null) return JSON.stringify({ handle, payload: fields });
  const number = customer.slice(customer.lastIndexOf("/") + 1);
  return `{"handle":${JSON.stringify(handle)},"payload":{"customer_id":${number},${JSON.stringify(fields).slice(1)}}`;
}

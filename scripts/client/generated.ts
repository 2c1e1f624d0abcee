import { join } from "node:path";
import { type TSchema, Type } from "@sinclair/typebox";
import { ENVELOPE, EVENT_DATA } from "../../src/domain/events/event-schemas.ts";
import { Customer, Order, Subscription } from "../../src/domain/resources.ts";
import { CustomFields } from "../../src/http/answers.ts";
import { interfaceText, type Names } from "./type-text.ts";

const HEADER =
  "// `bun scripts/build.ts --client-types` writes this file from the schemas in src/domain. Do not edit it.\n";

const LineItem = Subscription.properties.lines.items;

const NAMES: Names = new Map<TSchema, string>([
  [LineItem, "LineItem"],
  [EVENT_DATA["order.recovered"], 'WebhookData["order.charged"]'],
]);

/** The files of the client that are written from schemas, by their names in src/client. */
export function generatedFiles(): Map<string, string> {
  return new Map([
    ["resources.ts", resources()],
    ["webhook-event.ts", webhookEvent()],
  ]);
}

export async function writeGeneratedFiles(): Promise<void> {
  for (const [name, text] of generatedFiles()) await Bun.write(join(import.meta.dir, "../../src/client", name), text);
}

function resources(): string {
  const all = { LineItem, Subscription, Customer, Order };
  const description = 'A subscription as `include: ["customFields"]` gives it.';
  const withFields = Type.Object({ customFields: CustomFields }, { description });
  return [
    HEADER,
    ...Object.entries(all).map(([name, schema]) => interfaceText(name, schema, NAMES)),
    interfaceText("SubscriptionWithFields", withFields, NAMES, "Subscription"),
  ].join("\n");
}

function webhookEvent(): string {
  const data = Type.Object(EVENT_DATA, { description: "What each topic's event has as `data`." });
  const { topic: _topic, data: _data, ...fields } = ENVELOPE.properties;
  const envelope = Type.Object(fields, { description: "What every event has." });
  return [
    HEADER,
    interfaceText("WebhookData", data, NAMES),
    "export type WebhookTopic = keyof WebhookData;\n",
    interfaceText("WebhookEnvelope", envelope, NAMES),
    "/** A webhook of ours. Look at `topic` first: it tells which data there is. */",
    "export type WebhookEvent = {",
    "  [T in WebhookTopic]: WebhookEnvelope & { topic: T; data: WebhookData[T] };",
    "}[WebhookTopic];\n",
  ].join("\n");
}

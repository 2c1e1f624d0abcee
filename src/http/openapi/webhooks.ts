import { type TObject, Type } from "@sinclair/typebox";
import { envelope } from "../../domain/deliveries/delivery.ts";
import { TOPIC_NAMES, TOPICS, type Topic } from "../../domain/events/event.ts";
import { ENVELOPE, EVENT_DATA } from "../../domain/events/event-schemas.ts";
import { sampleEvent } from "../../domain/events/sample.ts";
import { idPattern } from "../../domain/resources.ts";
import { headerParameter } from "./headers.ts";
import { jsonBody, type OpenApiOperation, type OpenApiParameter } from "./parts.ts";
import { DOMAIN } from "./sample-rows.ts";

const SAMPLE_ID = `whd_${"a".repeat(24)}`;
const QUEUED_AT = Date.parse("2026-02-01T00:00:10.000Z");

/** Returns the topic as part of a type name: `SubscriptionCreated`. */
function typeName(topic: Topic): string {
  return topic
    .split(/[._]/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join("");
}

/** Returns the schemas of a topic's data and of its whole body, for `components.schemas`. */
export function webhookSchemas(): TObject[] {
  return TOPIC_NAMES.flatMap((topic) => {
    const title = typeName(topic);
    const data = { ...EVENT_DATA[topic], title: `${title}Data` };
    const body = Type.Object(
      { ...ENVELOPE.properties, topic: Type.Literal(topic, { description: "The same as in X-Service-Topic." }), data },
      { title: `${title}Event`, description: TOPICS[topic], examples: [sampleBody(topic)] },
    );
    return [data, body];
  });
}

/** Returns the body of a topic's test event. */
export function sampleBody(topic: Topic): unknown {
  return JSON.parse(envelope(SAMPLE_ID, sampleEvent(topic), QUEUED_AT, DOMAIN));
}

/** Returns the `webhooks` of the document, by topic. */
export function webhookOperations(): Record<string, { post: OpenApiOperation }> {
  return Object.fromEntries(TOPIC_NAMES.map((topic) => [topic, { post: webhookOperation(topic) }]));
}

function webhookOperation(topic: Topic): OpenApiOperation {
  const title = typeName(topic);
  return {
    operationId: `on${title}`,
    tags: ["Webhooks"],
    summary: topic,
    description: TOPICS[topic],
    security: [],
    parameters: webhookParameters(topic),
    requestBody: { required: true, content: jsonBody(`${title}Event`, sampleBody(topic)) },
    responses: {
      "2XX": { description: "The webhook arrived. Answer within 10 seconds and work afterwards." },
      "4XX": {
        description: "Answer 401 to a wrong signature. Anything but a 2xx is a failed attempt, and is tried again.",
      },
    },
  };
}

/** Returns the headers of a webhook, except general headers such as Content-Type. */
function webhookParameters(topic: Topic): OpenApiParameter[] {
  return [
    headerParameter("X-Service-Topic", "The topic.", { type: "string", const: topic }),
    headerParameter(
      "X-Service-Signature",
      "`sha256=` and the hex HMAC-SHA256 of the raw body with the signing secret.",
      { type: "string", pattern: "^sha256=[0-9a-f]{64}$" },
    ),
    headerParameter("X-Service-Test", "Only test events have it.", { type: "string", const: "true" }, false),
    headerParameter("webhook-id", "The `id` of the body (Standard Webhooks).", {
      type: "string",
      pattern: idPattern("whd_"),
    }),
    headerParameter("webhook-timestamp", "When this attempt was made, in seconds since 1970 (Standard Webhooks).", {
      type: "string",
      pattern: "^[0-9]+$",
    }),
    headerParameter(
      "webhook-signature",
      "`v1,` and the base64 HMAC-SHA256 of `id.timestamp.body` (Standard Webhooks). For a while after the secret was " +
        "rotated there are two, separated by a space. It is missing if the secret has no base64 behind `whsec_`.",
      { type: "string", pattern: "^v1,[A-Za-z0-9+/]{43}=( v1,[A-Za-z0-9+/]{43}=)*$" },
      false,
    ),
  ];
}

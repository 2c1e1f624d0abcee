import type { TSchema } from "@sinclair/typebox";
import { version } from "../../../package.json";
import { RECORD_SCHEMAS } from "../../domain/records/record-schemas.ts";
import { ANSWER_SCHEMAS, ErrorBody, Health, IntakeResult, PageInfo, ShopAnswer } from "../answers.ts";
import { createDocument, type Document, READABLE_ANYWHERE, respondDocument } from "../documents.ts";
import { apiError } from "../respond.ts";
import type { RouteHandler } from "../routes.ts";
import { ERROR_CASES, refusalRefs, sharedRefusals } from "./errors.ts";
import { COMMON, HEADERS, headerParameter, headerRefs } from "./headers.ts";
import { INTAKE_RECORD, intakeOperation, recordSchemas } from "./intake.ts";
import { createSchemaWriter } from "./json-schema.ts";
import { listPaths, pageSchemas } from "./lists.ts";
import { type JsonSchema, jsonBody, type OpenApiDocument, type OpenApiOperation } from "./parts.ts";
import { sampleRows } from "./sample-rows.ts";
import { webhookOperations, webhookSchemas } from "./webhooks.ts";

const DESCRIPTION = `A read-only JSON API over a local mirror of a shop's subscription data, signed webhooks, and an
intake for records.

- Money is an integer in minor units (cents) of the shop's currency.
- Dates are ISO 8601 strings in UTC with milliseconds.
- Platform ids are gids: \`gid://shopify/<ObjectType>/<number>\`. Internal ids are \`sub_\`, \`cus_\`, \`ord_\` and 24
  characters.
- Topics and keys of webhooks, error codes, headers, and fields that a request asks for may be added within v1. Ignore
  those that you don't know.
`;

/** How long clients may keep the document. Only an upgrade of the program changes it. */
const MAX_AGE_SECONDS = 300;

/**
 * GET and HEAD /openapi.json. The first request builds the document.
 * @param serverUrl returns the address of the API. This address is known only after the program has begun to listen.
 */
export function createOpenApiHandler(serverUrl: () => string): RouteHandler {
  let made: Document | undefined;
  return (request) => {
    made ??= createDocument(JSON.stringify(openApiDocument(serverUrl())));
    return respondDocument(request, made, {
      ...READABLE_ANYWHERE,
      "Content-Type": "application/json",
      "Cache-Control": `public, max-age=${MAX_AGE_SECONDS}`,
    });
  };
}

/**
 * Describes everything that integrators use (docs/api.md, "OpenAPI"). The description is built from the program's own
 * schemas of records, answers and webhooks.
 * @param serverUrl the address of the API; "/" is the host that serves the document
 */
export function openApiDocument(serverUrl: string): OpenApiDocument {
  return {
    openapi: "3.1.1",
    info: {
      title: "Subscription Data Service",
      summary: "Subscriptions, customers and orders of a shop, and what happens to them.",
      description: DESCRIPTION,
      version,
      contact: { name: "Whoever runs this service" },
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: serverUrl }],
    security: [{ apiKey: [] }],
    tags: [
      { name: "Subscriptions", description: "Subscription contracts." },
      { name: "Customers", description: "Customers who have, or had, a subscription." },
      { name: "Orders", description: "First checkouts and renewals of contracts." },
      { name: "Shop", description: "The shop that the API key belongs to." },
      { name: "Intake", description: "Records from the billing system." },
      { name: "Webhooks", description: "What is sent to the shop's endpoint." },
      { name: "Service", description: "The program itself." },
    ],
    paths: {
      ...listPaths(),
      "/intake": { post: intakeOperation() },
      "/healthz": { get: healthOperation("getHealth", "Whether the program runs") },
      "/readyz": { get: healthOperation("getReadiness", "Whether the program can take work", ["Unavailable"]) },
      "/openapi.json": { get: documentOperation() },
    },
    webhooks: webhookOperations(),
    components: {
      securitySchemes: {
        apiKey: { type: "http", scheme: "bearer", description: "An API key: `cad_pk_` and 48 hexadecimal digits." },
        intakeSignature: {
          type: "apiKey",
          in: "header",
          name: "X-Service-Signature",
          description: "`sha256=` and the hex HMAC-SHA256 of the raw body. The key is what `sds intake secret` prints.",
        },
      },
      headers: HEADERS,
      responses: sharedRefusals(),
      schemas: schemas(),
    },
  };
}

function schemas(): Record<string, JsonSchema> {
  const { subscriptions: subscription, customers: customer, orders: order } = sampleRows();
  const { subscriptions: Subscription, customers: Customer, orders: Order } = ANSWER_SCHEMAS;
  const all: TSchema[] = [
    { ...Subscription, examples: [subscription, { ...subscription, customFields: { gift_note: "Happy birthday!" } }] },
    { ...Customer, examples: [customer] },
    { ...Order, examples: [order] },
    Subscription.properties.lines.items,
    ...pageSchemas(),
    PageInfo,
    ShopAnswer,
    { ...ErrorBody, examples: Object.values(ERROR_CASES).map(({ error }) => apiError(error)) },
    ...recordSchemas(),
    RECORD_SCHEMAS.order.properties.lines.items,
    IntakeResult,
    Health,
    ...webhookSchemas(),
  ];
  const byName = new Map(all.map((schema) => [schema.title ?? "", schema]));
  const { define } = createSchemaWriter((title) => byName.has(title));
  const written = [...byName].map(([name, schema]) => [name, define(schema)] as const);
  return { ...Object.fromEntries(written), IntakeRecord: INTAKE_RECORD };
}

function healthOperation(operationId: string, summary: string, refusals: "Unavailable"[] = []): OpenApiOperation {
  return {
    operationId,
    tags: ["Service"],
    summary,
    description: `${summary}. HEAD is answered too.`,
    security: [],
    responses: {
      200: {
        description: "Yes.",
        headers: headerRefs(COMMON),
        content: jsonBody("Health", { status: "ok" }),
      },
      ...refusalRefs(["HeadersTooLarge", "Internal", ...refusals]),
    },
  };
}

function documentOperation(): OpenApiOperation {
  return {
    operationId: "getOpenApi",
    tags: ["Service"],
    summary: "This document",
    description: "This document. HEAD is answered too.",
    security: [],
    parameters: [headerParameter("If-None-Match", "`ETag` of the copy that you have.", { type: "string" }, false)],
    responses: {
      200: {
        description: "The document.",
        headers: headerRefs([...COMMON, "ETag", "Vary", "Access-Control-Allow-Origin"]),
        content: { "application/json": { schema: { type: "object" } } },
      },
      304: {
        description: "The document with that `ETag` is the current one.",
        headers: headerRefs([...COMMON, "ETag", "Vary", "Access-Control-Allow-Origin"]),
      },
      ...refusalRefs(["HeadersTooLarge", "Internal"]),
    },
  };
}

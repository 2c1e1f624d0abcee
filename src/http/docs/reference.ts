import type { ErrorBody } from "../answers.ts";
import {
  headerOf,
  type JsonSchema,
  type Media,
  type OpenApiDocument,
  type OpenApiOperation,
  type ResponseObject,
  responseOf,
  schemaOf,
} from "../openapi/parts.ts";
import { type SampleWithPath, samples } from "./reference-samples.ts";
import { fieldTable, paragraphs, schemaSections, table, typeText } from "./reference-schemas.ts";

/** The reference has no section for this schema, because docs/api.md, "Errors" describes it. */
const ERROR_SCHEMA = "ApiError";

/** Writes a page of the reference in Markdown: the operations of a tag, with their headers and types. */
export function referencePage(document: OpenApiDocument, tag: string): string {
  const operations = operationsOf(document.paths, tag);
  const events = operationsOf(document.webhooks, tag).map(({ operation }) => operation);
  const page = paragraphs([
    `# ${tag}`,
    document.tags.find(({ name }) => name === tag)?.description,
    ...operations.map((located) => operationSection(document, located)),
    ...eventSections(document, events),
    headerSection(document, operations),
    ...schemaSections(document, schemasOf(document, operations), new Set([ERROR_SCHEMA])),
  ]);
  return `${page}\n`;
}

function operationsOf(paths: Record<string, Record<string, OpenApiOperation>>, tag: string): SampleWithPath[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, operation]) =>
      operation.tags.includes(tag) ? [{ path, method: method.toUpperCase(), operation }] : [],
    ),
  );
}

function operationSection(document: OpenApiDocument, located: SampleWithPath): string {
  const { method, path, operation } = located;
  const parameters = (operation.parameters ?? []).map(({ name, in: place, required, description, schema }) => [
    `\`${name}\``,
    place,
    `${typeText(schema)}${required ? ", required" : ""}`,
    description,
  ]);
  return paragraphs([
    `## ${operation.summary}`,
    `    ${method} ${path}`,
    operation.description,
    parameters.length === 0 ? "" : table(["parameter", "in", "type", "meaning"], parameters),
    operation.requestBody?.description === undefined ? "" : `**Body**: ${operation.requestBody.description}`,
    samples(document, located),
    answer(document, operation),
    table(["status", "code", "when"], refusals(document, operation)),
    "[Errors](api.md#errors) says what to do.",
  ]);
}

function isSuccess(status: string): boolean {
  return status.startsWith("2");
}

/** Writes the successful response, with its example. */
function answer(document: OpenApiDocument, { responses }: OpenApiOperation): string {
  const [status, response] = Object.entries(responses).find(([each]) => isSuccess(each)) ?? [];
  if (status === undefined || response === undefined) return "";
  const { description, content } = responseOf(document, response);
  const { schema, example } = jsonOf(content);
  const type = schema?.$ref === undefined ? "" : ` The body is ${typeText(schema)}.`;
  const shown = example === undefined ? "" : `\n\n${json(example)}`;
  return `**${status}**: ${description}${type}${shown}`;
}

function jsonOf(content: Record<string, Media> | undefined): { schema: JsonSchema | undefined; example: unknown } {
  const { schema, example, examples = {} } = content?.["application/json"] ?? {};
  return { schema, example: example ?? Object.values(examples)[0]?.value };
}

function json(value: unknown): string {
  return `\`\`\`json\n${JSON.stringify(value, null, 2)}\n\`\`\``;
}

/** Returns a row for each refusal: status, error code, and condition. */
function refusals(document: OpenApiDocument, { responses }: OpenApiOperation): string[][] {
  return Object.entries(responses)
    .filter(([status]) => !isSuccess(status))
    .flatMap(([status, response]) => casesOf(responseOf(document, response)).map((row) => [status, ...row]));
}

function casesOf({ description, content }: ResponseObject): string[][] {
  const { examples = {} } = content?.["application/json"] ?? {};
  const cases = Object.values(examples).map(({ summary = "", value }) => {
    // Takes the code from the error, because the name of an example can have a number after the code.
    const { error } = value as ErrorBody;
    return [`\`${error.code}\``, summary];
  });
  return cases.length === 0 ? [["", description]] : cases;
}

/** Writes a table of all response headers of the page's operations. */
function headerSection(document: OpenApiDocument, operations: readonly SampleWithPath[]): string {
  const found = operations
    .flatMap(({ operation }) => Object.values(operation.responses))
    .flatMap((response) => Object.entries(responseOf(document, response).headers ?? {}));
  const rows = [...new Map(found)].map(([name, header]) => {
    const { description, example } = headerOf(document, header);
    return [`\`${name}\``, description, `\`${example}\``];
  });
  return rows.length === 0 ? "" : `## Headers of answers\n\n${table(["header", "meaning", "example"], rows)}`;
}

function schemasOf(document: OpenApiDocument, operations: readonly SampleWithPath[]): JsonSchema[] {
  return operations.flatMap(({ operation: { requestBody, responses } }) => {
    const contents = [
      requestBody?.content,
      ...Object.values(responses).map((each) => responseOf(document, each).content),
    ];
    return contents.map((content) => jsonOf(content).schema).filter((schema) => schema !== undefined);
  });
}

/** Writes the parts that all webhooks share, and a section for each topic. */
function eventSections(document: OpenApiDocument, events: readonly OpenApiOperation[]): string[] {
  const [first] = events;
  if (first === undefined) return [];
  const headers = (first.parameters ?? []).map(({ name, required, description }) => [
    `\`${name}\``,
    required ? "always" : "sometimes",
    description,
  ]);
  const { data: _, ...common } = bodySchema(document, first).properties ?? {};
  const { topic: __, ...shared } = common;
  const body = { ...shared, topic: { type: "string", description: "One of the topics below." } };
  const intro = paragraphs([
    "## Headers of a webhook",
    table(["header", "sent", "meaning"], headers),
    "[Signature](webhooks.md#signature) says how to check the signature.",
    "## Body of a webhook",
    fieldTable({ properties: body, required: Object.keys(body) }),
    "The field `data` is different for each topic.",
  ]);
  return [intro, ...events.map((event) => eventSection(document, event))];
}

function bodySchema(document: OpenApiDocument, { requestBody }: OpenApiOperation): JsonSchema {
  return schemaOf(document, jsonOf(requestBody?.content).schema ?? {});
}

function eventSection(document: OpenApiDocument, event: OpenApiOperation): string {
  const { example } = jsonOf(event.requestBody?.content);
  const data = schemaOf(document, bodySchema(document, event).properties?.["data"] ?? {});
  return paragraphs([
    `## ${event.summary}`,
    event.description,
    fieldTable(data),
    data.additionalProperties === true ? data.description : "",
    example === undefined ? "" : json(example),
  ]);
}

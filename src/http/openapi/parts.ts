/** The parts of OpenAPI 3.1 that this program writes. The reference and tests read them. */
export interface OpenApiDocument {
  openapi: string;
  info: Record<string, unknown>;
  servers: readonly { url: string }[];
  security: readonly Security[];
  tags: readonly { name: string; description: string }[];
  paths: Record<string, Record<string, OpenApiOperation>>;
  webhooks: Record<string, { post: OpenApiOperation }>;
  components: {
    securitySchemes: Record<string, unknown>;
    headers: Record<string, HeaderObject>;
    responses: Record<string, ResponseObject>;
    schemas: Record<string, JsonSchema>;
  };
}

type Security = Readonly<Record<string, readonly string[]>>;

/** One method of a path. */
export interface OpenApiOperation {
  operationId: string;
  tags: readonly string[];
  summary: string;
  description: string;
  /** By default, the document's `security`. */
  security?: readonly Security[];
  parameters?: readonly OpenApiParameter[];
  requestBody?: { required: boolean; description?: string; content: Record<string, Media> };
  responses: Record<string, ResponseObject | Ref>;
}

export interface OpenApiParameter {
  name: string;
  in: "query" | "path" | "header";
  required: boolean;
  description: string;
  schema: JsonSchema;
  example?: unknown;
}

export interface ResponseObject {
  description: string;
  headers?: Record<string, Ref>;
  content?: Record<string, Media>;
}

/** A response header. */
export interface HeaderObject {
  description: string;
  required: boolean;
  schema: JsonSchema;
  example: string | number;
}

/** A body in one content type. */
export interface Media {
  schema: JsonSchema;
  example?: unknown;
  examples?: Record<string, { summary: string; value: unknown }>;
}

/** A reference to a component. */
export interface Ref {
  $ref: string;
}

/** A JSON Schema (draft 2020-12) with only the keywords that the reference shows. */
export interface JsonSchema {
  $ref?: string;
  description?: string;
  type?: string | readonly string[];
  format?: string;
  pattern?: string;
  const?: unknown;
  enum?: readonly unknown[];
  items?: JsonSchema;
  properties?: Record<string, JsonSchema>;
  required?: readonly string[];
  additionalProperties?: boolean | JsonSchema;
  anyOf?: readonly JsonSchema[];
  oneOf?: readonly JsonSchema[];
  [keyword: string]: unknown;
}

/** Describes a JSON body with the schema of a component. */
export function jsonBody(component: string, example: unknown): Record<string, Media> {
  return { "application/json": { schema: { $ref: `#/components/schemas/${component}` }, example } };
}

/** Returns the name of the referenced component, such as `Order`. */
export function nameOf({ $ref }: Ref): string {
  return $ref.slice($ref.lastIndexOf("/") + 1);
}

/** Resolves a reference to a response. */
export function responseOf({ components }: OpenApiDocument, response: ResponseObject | Ref): ResponseObject {
  return "$ref" in response ? componentOf(components.responses, response) : response;
}

/** Resolves a reference to a header. */
export function headerOf({ components }: OpenApiDocument, header: Ref): HeaderObject {
  return componentOf(components.headers, header);
}

/** Resolves a reference to a schema. */
export function schemaOf({ components }: OpenApiDocument, schema: JsonSchema): JsonSchema {
  return schema.$ref === undefined ? schema : componentOf(components.schemas, { $ref: schema.$ref });
}

function componentOf<T>(components: Record<string, T>, ref: Ref): T {
  const found = components[nameOf(ref)];
  if (found === undefined) throw new Error(`${ref.$ref} leads nowhere`);
  return found;
}

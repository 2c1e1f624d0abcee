/** An OpenAPI 3.1 document, as far as the program writes it, and the reference and tests read it. */
export interface OpenApiDocument {
  openapi: string;
  info: Record<string, unknown>;
  servers: readonly { url: string }[];
  security: readonly Security[];
  tags: readonly { name: string; description: string }[];
  paths: Record<string, Record<string, Operation>>;
  webhooks: Record<string, { post: Operation }>;
  components: {
    securitySchemes: Record<string, unknown>;
    headers: Record<string, HeaderObject>;
    responses: Record<string, ResponseObject>;
    schemas: Record<string, JsonSchema>;
  };
}

type Security = Readonly<Record<string, readonly string[]>>;

/** What a path does with one method. */
export interface Operation {
  operationId: string;
  tags: readonly string[];
  summary: string;
  description: string;
  /** That of the document if it is missing. */
  security?: readonly Security[];
  parameters?: readonly Parameter[];
  requestBody?: { required: boolean; description?: string; content: Record<string, Media> };
  responses: Record<string, ResponseObject | Ref>;
}

/** A parameter of a query or path, or a header of a request. */
export interface Parameter {
  name: string;
  in: "query" | "path" | "header";
  required: boolean;
  description: string;
  schema: JsonSchema;
  example?: unknown;
}

/** An answer. */
export interface ResponseObject {
  description: string;
  headers?: Record<string, Ref>;
  content?: Record<string, Media>;
}

/** A header of an answer. */
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

/** Stands for a component of the document. */
export interface Ref {
  $ref: string;
}

/** A JSON Schema of draft 2020-12, as OpenAPI 3.1 has them: the keywords that the reference shows, and all others. */
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

/** The component that a reference names, such as `Order`. */
export function nameOf({ $ref }: Ref): string {
  return $ref.slice($ref.lastIndexOf("/") + 1);
}

/** An answer, or the component that it refers to. */
export function responseOf({ components }: OpenApiDocument, response: ResponseObject | Ref): ResponseObject {
  return "$ref" in response ? componentOf(components.responses, response) : response;
}

/** The component that a header refers to. */
export function headerOf({ components }: OpenApiDocument, header: Ref): HeaderObject {
  return componentOf(components.headers, header);
}

/** A schema, or the component that it refers to. */
export function schemaOf({ components }: OpenApiDocument, schema: JsonSchema): JsonSchema {
  return schema.$ref === undefined ? schema : componentOf(components.schemas, { $ref: schema.$ref });
}

function componentOf<T>(components: Record<string, T>, ref: Ref): T {
  const found = components[nameOf(ref)];
  if (found === undefined) throw new Error(`${ref.$ref} leads nowhere`);
  return found;
}

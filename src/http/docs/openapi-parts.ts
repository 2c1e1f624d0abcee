/** The parts of an OpenAPI 3.1 document that the reference shows. */
export interface Described {
  tags?: readonly { name: string; description?: string }[];
  security?: readonly Record<string, unknown>[];
  paths?: Record<string, Record<string, DescribedOperation>>;
  webhooks?: Record<string, Record<string, DescribedOperation>>;
  components?: {
    schemas?: Record<string, Schema>;
    responses?: Record<string, DescribedResponse>;
    headers?: Record<string, DescribedHeader>;
  };
}

export interface DescribedOperation {
  operationId: string;
  tags?: readonly string[];
  summary?: string;
  description?: string;
  security?: readonly Record<string, unknown>[];
  parameters?: readonly Parameter[];
  requestBody?: { description?: string; content: Record<string, Media> };
  responses: Record<string, DescribedResponse | Ref>;
}

interface Parameter {
  name: string;
  in: string;
  required?: boolean;
  description?: string;
  schema?: Schema;
  example?: unknown;
}

export interface DescribedResponse {
  description: string;
  headers?: Record<string, DescribedHeader | Ref>;
  content?: Record<string, Media>;
}

export interface DescribedHeader {
  description?: string;
  example?: unknown;
}

export interface Media {
  schema?: Schema;
  example?: unknown;
  examples?: Record<string, { summary?: string; value: unknown }>;
}

export interface Ref {
  $ref: string;
}

/** The parts of a JSON Schema that the reference shows. */
export interface Schema {
  $ref?: string;
  description?: string;
  type?: string | readonly string[];
  format?: string;
  pattern?: string;
  const?: unknown;
  enum?: readonly unknown[];
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: readonly string[];
  additionalProperties?: boolean | Schema;
  anyOf?: readonly Schema[];
  oneOf?: readonly Schema[];
}

/** The component that a reference names, such as `Order`. */
export function nameOf({ $ref }: Ref): string {
  return $ref.slice($ref.lastIndexOf("/") + 1);
}

/** An answer, or the component that it refers to. */
export function responseOf(document: Described, response: DescribedResponse | Ref): DescribedResponse {
  if (!("$ref" in response)) return response;
  return document.components?.responses?.[nameOf(response)] ?? { description: "" };
}

export function headerOf(document: Described, header: DescribedHeader | Ref): DescribedHeader {
  return "$ref" in header ? (document.components?.headers?.[nameOf(header)] ?? {}) : header;
}

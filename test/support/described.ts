import type { App } from "../../src/compose/app.ts";
import { openApiDocument } from "../../src/http/openapi/document.ts";
import {
  headerOf,
  type JsonSchema,
  type OpenApiDocument,
  type ResponseObject,
  responseOf,
} from "../../src/http/openapi/parts.ts";
import { STATUS } from "../../src/http/respond.ts";
import { urlPathOf } from "../../src/http/routes.ts";
import { isWrittenDate } from "../../src/lib/time.ts";
import { createCompiler } from "./document-schemas.ts";
import { pageProblems } from "./page-problems.ts";

/**
 * Checks answers against the OpenAPI document (src/docs/api.md, "OpenAPI"), and checks pages of HTML. A field that the
 * document does not have is an error here.
 */

/** Paths that are not for integrators, or that do not answer in JSON. Only their refusals are checked. */
const OUTSIDE = /^\/(?:(?:admin|alerts|app|assets|docs|platform|storefront)(?:\/|$)|$)/;
const API_ERROR: JsonSchema = { $ref: "#/components/schemas/ApiError" };
/**
 * Statuses of Bun's own answers. These answers have no body, and the program never sees the request (src/docs/api.md).
 */
const BUNS_OWN = [400, 413, 431, 505];
/** Headers that belong to the connection. */
const TRANSPORT = new Set(["content-type", "content-length", "content-encoding", "date", "transfer-encoding"]);

/** Asks an app of this process, and checks its answer. */
export async function askApp(app: Pick<App, "handle">, path: string, init?: RequestInit): Promise<Response> {
  return described(init?.method ?? "GET", path, await app.handle(new Request(`http://sds.test${path}`, init)));
}

/** Checks a webhook that arrived. @returns its differences from the description */
export function webhookProblems(headers: Headers, body: unknown): string[] {
  check ??= createCheck(openApiDocument("/"));
  return check.webhook(headers, body);
}

/**
 * `head` and `body` throw an error that names the differences from the description. `webhook` returns the differences.
 */
interface Check {
  head(method: string, path: string, response: Response): void;
  body(method: string, path: string, status: number, text: string): void;
  webhook(headers: Headers, body: unknown): string[];
}

let check: Check | undefined;

/**
 * Checks the status and the headers of the program's answer immediately. Checks the body when the test reads it as text
 * or JSON.
 * @returns the same response
 */
export function described(method: string, url: string, response: Response): Response {
  // Made once, because making it takes 0.2 seconds.
  check ??= createCheck(openApiDocument("/"));
  const { head, body } = check;
  const path = urlPathOf(url);
  if (!response.headers.has("x-request-id") && BUNS_OWN.includes(response.status)) return response;
  head(method, path, response);
  const { status } = response;
  const read = response.text.bind(response);
  response.text = async () => {
    const text = await read();
    body(method, path, status, text);
    if (response.headers.get("content-type")?.startsWith("text/html")) checkPage(path, text);
    return text;
  };
  response.json = async () => JSON.parse(await response.text());
  return response;
}

function checkPage(path: string, html: string): void {
  const problems = pageProblems(html);
  if (problems.length > 0) throw new Error(`the page ${path} is wrong: ${problems.join("; ")}`);
}

/** Validates a value against a schema. @throws an error that names the value and says what is not as described */
type Validate = (schema: JsonSchema, value: unknown, what: string) => void;

function createCheck(document: OpenApiDocument): Check {
  const compile = createCompiler(document, { isDate: isWrittenDate, isClosed: true });
  const find = createFinder(document);
  const validate: Validate = (schema, value, what) => {
    const problem = compile(schema)(value);
    if (problem !== undefined) throw new Error(`${what} is not as described: ${problem}`);
  };
  return {
    head(method, path, response) {
      const found = find(method, path, response.status);
      const what = `${method} ${path}, answered with ${response.status},`;
      if (found !== undefined) checkHead(document, found, response.headers, validate, what);
    },
    body(method, path, status, text) {
      const found = find(method, path, status);
      const what = `the body of ${method} ${path}, answered with ${status},`;
      if (found !== undefined) return checkBody(found, method, status, text, validate, what);
      if (!OUTSIDE.test(path) || text.startsWith("{")) validateRefusal(status, text, validate, what);
    },
    webhook: (headers, body) => problemsOfWebhook(document, compile, headers, body),
  };
}

/**
 * @returns a function that finds the description of an answer. The function returns undefined for an answer that needs
 *   no description
 */
function createFinder(document: OpenApiDocument) {
  const paths = Object.keys(document.paths).map((path) => ({
    path,
    // A gid in a path may have plain slashes.
    form: new RegExp(`^${path.replace("{id}", "[^/]+(?://?\\w+/\\w+/\\w+)?")}$`),
  }));

  return (method: string, path: string, status: number): ResponseObject | undefined => {
    const known = paths.find(({ form }) => form.test(path))?.path;
    const operations = known === undefined ? undefined : document.paths[known];
    const operation = operations?.[(method === "HEAD" ? "GET" : method).toLowerCase()];
    const described = operation?.responses[status];
    if (described !== undefined) return responseOf(document, described);
    const isRefused = status === 404 || status === 405 || (operation === undefined && OUTSIDE.test(path));
    if (isRefused) return undefined;
    throw new Error(`${method} ${path} is not described to answer with ${status}`);
  };
}

function checkHead(
  document: OpenApiDocument,
  { headers: described = {} }: ResponseObject,
  headers: Headers,
  validate: Validate,
  what: string,
): void {
  const names = new Set(Object.keys(described).map((name) => name.toLowerCase()));
  const extra = [...headers.keys()].filter((name) => !TRANSPORT.has(name) && !names.has(name));
  if (extra.length > 0) throw new Error(`${what} has headers that are not described: ${extra.join(", ")}`);
  for (const [name, reference] of Object.entries(described)) {
    const value = headers.get(name);
    const { required, schema } = headerOf(document, reference);
    if (value === null) {
      if (required) throw new Error(`${what} lacks ${name}`);
    } else validate(schema, schema.type === "integer" ? Number(value) : value, `${name} of ${what}`);
  }
}

function checkBody(
  { content }: ResponseObject,
  method: string,
  status: number,
  text: string,
  validate: Validate,
  what: string,
): void {
  if (content === undefined || method === "HEAD") {
    if (text !== "") throw new Error(`${what} is not empty`);
    return;
  }
  validate(content["application/json"]?.schema ?? {}, JSON.parse(text), what);
  validateRefusal(status, text, validate, what);
}

/** Checks that an error has the common form, and that its code matches its status. Bun's own refusals have no body. */
function validateRefusal(status: number, text: string, validate: Validate, what: string): void {
  if (status < 400 || text === "") return;
  const value = JSON.parse(text);
  validate(API_ERROR, value, what);
  const { code } = value.error as { code: keyof typeof STATUS };
  if (STATUS[code] !== status) throw new Error(`${what} has the code ${code}`);
}

function problemsOfWebhook(
  document: OpenApiDocument,
  compile: ReturnType<typeof createCompiler>,
  headers: Headers,
  body: unknown,
): string[] {
  const operation = document.webhooks[headers.get("x-service-topic") ?? ""]?.post;
  if (operation === undefined) return ["the topic is not described"];
  const { parameters = [], requestBody } = operation;
  const names = new Map(parameters.map(({ name, ...rest }) => [name.toLowerCase(), { name, ...rest }]));
  const own = [...headers].filter(([name]) => /^(?:x-|webhook-)/.test(name));
  const problems = own.map(([name, value]) => {
    const schema = names.get(name)?.schema;
    return schema === undefined ? `the header ${name} is not described` : compile(schema)(value);
  });
  const missing = [...names.values()].map(({ name, required }) =>
    required && !headers.has(name) ? `the header ${name} is missing` : undefined,
  );
  const { schema = {} } = requestBody?.content["application/json"] ?? {};
  return [...problems, ...missing, compile(schema)(body)].filter((problem) => problem !== undefined);
}

import { asObject } from "../../lib/json.ts";
import type { ThrottleStatus } from "../../lib/rate-limiter.ts";
import { type DataLevel, type PartialAnswer, PlatformError } from "./platform-error.ts";
import type { JsonResponse } from "./post-json.ts";
import { troubleOfStatus } from "./trouble.ts";

interface GraphqlError {
  message: string;
  path: (string | number)[];
  extensions: { code?: string; typeName?: string; fieldName?: string };
}

/** The estimated cost of an operation, and the points that the shop has now. */
export interface QueryCost {
  requestedQueryCost: number;
  throttleStatus?: ThrottleStatus;
}

/** A field that the app is not allowed to read, and the platform's message. */
export interface DeniedField {
  name: string;
  message: string;
  /** The missing level of protected customer data. */
  level: DataLevel | undefined;
}

export interface GraphqlData {
  data: object;
  /** The first field that the app is not allowed to read; undefined if the app is allowed to read all fields. */
  denied: DeniedField | undefined;
}

/** Fields that need an extra grant, or that belong to another app. All other data can be mirrored without them. */
const OPTIONAL_FIELDS = new Set([
  ...["firstName", "lastName", "defaultEmailAddress", "emailAddress", "variant", "product"],
  // The contract of an order's line. An app sees only contracts that it made.
  "contract",
]);

/** Objects that can be protected customer data of level 1. A contract is mirrored without them. */
const PROTECTED_FIELDS = new Set(["customer", "originOrder", "order"]);

/** The wait after THROTTLED if the response does not tell how long to wait for points. */
const THROTTLED_WAIT_MS = 1_000;
const NO_STATUS: ThrottleStatus = { maximumAvailable: Number.POSITIVE_INFINITY, currentlyAvailable: 0, restoreRate: 0 };

/**
 * Returns the data, without optional fields that the app is not allowed to read. The platform sends null for such a
 * field, which would look like an empty value.
 * @throws PlatformError for any other error, with all other data that the platform sent
 */
export function readGraphqlData(response: JsonResponse): GraphqlData {
  const body = readBody(response);
  const errors = Array.isArray(body["errors"]) ? body["errors"].map(readError) : [];
  const data = asObject(body["data"]);
  const optional = errors.filter(isOptional);
  if (data !== undefined) for (const { path } of optional) removeDenied(data, path);
  if (data === undefined || optional.length < errors.length) {
    const others = errors.filter((error) => !optional.includes(error));
    throw graphqlError(others.length > 0 ? others : errors, response, data);
  }
  const [first] = optional;
  return { data, denied: first && deniedField(first) };
}

/** Reads an error of any form: a malformed error must not pass as success. */
function readError(error: unknown): GraphqlError {
  const { message, path, extensions } = asObject(error) ?? {};
  const steps = Array.isArray(path) ? path.filter((step) => ["string", "number"].includes(typeof step)) : [];
  return { message: String(message ?? "no message"), path: steps, extensions: asObject(extensions) ?? {} };
}

function readBody(response: JsonResponse): Record<string, unknown> {
  const { status, body, retryAfterMs } = response;
  const message = `the platform answered HTTP ${status}`;
  const trouble = troubleOfStatus(response);
  if (trouble !== undefined) {
    throw new PlatformError("unauthorized", trouble, { status, needsMerchant: true, movedTo: response.movedTo });
  }
  if (status === 429 || status >= 500) throw new PlatformError("unavailable", message, { status, retryAfterMs });
  if (status !== 200) throw new PlatformError("refused", message, { status });
  if (body === undefined) throw new PlatformError("unavailable", "the platform's answer is not JSON", { status });
  return body;
}

function partialAnswer(errors: readonly GraphqlError[], { status }: JsonResponse, data: object = {}): PartialAnswer {
  return {
    data,
    errors: errors.map((error) => ({
      path: error.path,
      error: new PlatformError(reasonOf([error]), messageOf([error]), { status, isDenied: isDenied(error) }),
    })),
  };
}

function messageOf([first]: readonly GraphqlError[]): string {
  return `the platform answered: ${(first?.message ?? "no data").slice(0, 300)}`;
}

function isDenied(error: GraphqlError): boolean {
  return codeOf(error) === "ACCESS_DENIED";
}

function graphqlError(errors: readonly GraphqlError[], response: JsonResponse, data?: object): PlatformError {
  const { status } = response;
  const codes = errors.map(codeOf);
  if (codes.includes("THROTTLED")) return throttledError(readCost(response), status);
  const obsolete = errors.find(isObsolete);
  if (obsolete !== undefined) {
    const field = `${obsolete.extensions.typeName ?? "?"}.${obsolete.extensions.fieldName ?? "?"}`.slice(0, 100);
    const message = `the platform no longer has ${field}, which this sds reads: update sds; ${messageOf([obsolete])}`;
    return new PlatformError("refused", message, { status, isObsolete: true });
  }
  const hasPaths = errors.every(({ path }) => path.length > 0);
  return new PlatformError(reasonOf(errors), messageOf(errors), {
    status,
    isTooCostly: codes.includes("MAX_COST_EXCEEDED"),
    isDenied: errors.some(isDenied),
    missingLevel: errors.filter(isDenied).map(levelOf).find(Boolean),
    partial: hasPaths && errors.length > 0 ? partialAnswer(errors, response, data) : undefined,
  });
}

function reasonOf(errors: readonly GraphqlError[]): PlatformError["reason"] {
  const codes = errors.map(codeOf);
  const denied = errors.filter(isDenied);
  // A path of one step names a whole list or object. The platform then refuses every query for this list or object.
  const isAllDenied = denied.some(({ path }) => path.length <= 1);
  if (codes.includes("INTERNAL_SERVER_ERROR") || codes.includes("TIMEOUT")) return "incomplete";
  if (isAllDenied) return "unauthorized";
  return denied.length > 0 ? "incomplete" : "refused";
}

/**
 * Makes the error for missing points. If the rate limiter can compute the wait from the response, `retryAfterMs` is 0.
 * The retry then waits in the rate limiter, which serves urgent requests first.
 */
function throttledError(cost: QueryCost | undefined, status: number): PlatformError {
  const { maximumAvailable, currentlyAvailable, restoreRate } = cost?.throttleStatus ?? NO_STATUS;
  const requested = cost?.requestedQueryCost ?? 0;
  const isWaitKnown = restoreRate > 0 && requested > currentlyAvailable;
  return new PlatformError("unavailable", "the platform's limit of requests is reached", {
    status,
    retryAfterMs: isWaitKnown ? 0 : THROTTLED_WAIT_MS,
    // A query that costs more than the shop's maximum must fail, because it would wait for ever.
    isThrottled: requested <= maximumAvailable,
    isTooCostly: requested > maximumAvailable,
  });
}

function isOptional(error: GraphqlError): boolean {
  if (!isDenied(error)) return false;
  const { path } = error;
  const isProtectedPart = levelOf(error) === 1 && path.length > 1 && PROTECTED_FIELDS.has(fieldName(error));
  return isProtectedPart || OPTIONAL_FIELDS.has(fieldName(error));
}

function deniedField(error: GraphqlError): DeniedField {
  return { name: fieldName(error), message: error.message, level: levelOf(error) };
}

/** The level of protected customer data that the app lacks. Only the platform's message names it. */
function levelOf({ message }: GraphqlError): DataLevel | undefined {
  if (/not approved to access the \w+ object/.test(message)) return 1;
  return /not approved to use the \w+ field/.test(message) ? 2 : undefined;
}

/** Whether the query names a field that does not exist in the platform's version of the API. */
function isObsolete(error: GraphqlError): boolean {
  return codeOf(error) === "undefinedField" || /^Field '\w+' doesn't exist on type/.test(error.message);
}

function codeOf({ extensions }: GraphqlError): string {
  return extensions.code ?? "";
}

function fieldName({ path }: GraphqlError): string {
  return String(path.at(-1));
}

/** Removes the denied field, or its parent if the platform set the whole parent to null. */
function removeDenied(data: object, path: readonly (string | number)[]): void {
  let parent = data as Record<string | number, unknown>;
  for (const step of path) {
    const child = parent[step];
    if (typeof child !== "object" || child === null) {
      delete parent[step];
      return;
    }
    parent = child as Record<string | number, unknown>;
  }
}

/** Returns the cost that the platform reports; undefined if it reports no cost. */
export function readCost({ body }: JsonResponse): QueryCost | undefined {
  const cost = asObject(asObject(body?.["extensions"])?.["cost"]);
  const requestedQueryCost = cost?.["requestedQueryCost"];
  if (!isAmount(requestedQueryCost)) return undefined;
  const { maximumAvailable, currentlyAvailable, restoreRate } = asObject(cost?.["throttleStatus"]) ?? {};
  if (!isAmount(maximumAvailable) || !isAmount(currentlyAvailable) || !isAmount(restoreRate)) {
    return { requestedQueryCost };
  }
  return { requestedQueryCost, throttleStatus: { maximumAvailable, currentlyAvailable, restoreRate } };
}

function isAmount(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value) && value >= 0;
}

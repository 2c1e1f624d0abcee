import { type ApiErrorCode, SdsError } from "../../domain/error.ts";
import { readListQuery, readRowQuery } from "../read/list-query.ts";
import { DATABASE_BUSY, INTAKE_LIMIT, refusals } from "../refusals.ts";
import { apiError, STATUS } from "../respond.ts";
import { COMMON, type HeaderName, headerRefs } from "./headers.ts";
import type { Ref, ResponseObject } from "./parts.ts";
import { DOMAIN } from "./sample-rows.ts";

/** An error and the condition that causes it. */
interface ErrorCase {
  when: string;
  error: SdsError;
}

/** An example of every error of the API and the intake. */
export const ERROR_CASES: Record<ApiErrorCode, ErrorCase> = {
  bad_cursor: { when: "The cursor was not issued here.", error: refusals.badCursor("not_issued") },
  bad_parameter: {
    when: "A parameter has an impossible value, or its name looks like a mistake.",
    error: thrownBy(() => readListQuery("updated_since=", "orders", DOMAIN, false)),
  },
  bad_record: {
    when: "A record is refused. Nothing of the body was kept.",
    error: refusals.badRecord({ index: 1, field: "lines[0].productId", reason: "is missing" }),
  },
  unauthorized: { when: "There is no valid key. The answer does not say why.", error: refusals.unknownKey() },
  plan_required: { when: "The shop's plan has no API access.", error: refusals.planRequired() },
  not_found: { when: "There is nothing at this path.", error: refusals.notFound() },
  method_not_allowed: { when: "The path does not have this method.", error: refusals.methodNotAllowed(["GET"]) },
  too_large: {
    when: "The body has more than 1 MiB, or more than 250 records.",
    error: refusals.tooLargeForIntake(INTAKE_LIMIT.maxBytes),
  },
  rate_limited: {
    when: "The key made too many requests. There is no limit unless the operator set one.",
    error: refusals.tooManyRequests(),
  },
  unavailable: {
    when: "The database is busy, or too much work waits. It is safe to try again.",
    error: new SdsError("unavailable", DATABASE_BUSY),
  },
  internal: { when: "An error in `sds`. It is safe to try again.", error: refusals.internal() },
};
const OTHER_SHOP: ErrorCase = {
  when: "The checkpoint is from another shop: the key is wrong. Keep the copy.",
  error: refusals.badCheckpoint("other_shop"),
};
const RESTORED: ErrorCase = {
  when: "The database was restored since the checkpoint. Read all rows again.",
  error: refusals.badCheckpoint("restored"),
};
const STRICT_PARAMETER: ErrorCase = {
  when: "The request has an unknown parameter, and `Prefer: handling=strict`. Without that, they are ignored.",
  error: thrownBy(() => readRowQuery("limit=1", "orders", true)),
};
const BAD_INCLUDE: ErrorCase = {
  when: "`include` has another value than `customFields`, is given twice, or belongs to another resource.",
  error: thrownBy(() => readRowQuery("include=lines", "subscriptions", false)),
};
const TOO_MANY_RECORDS: ErrorCase = {
  when: "The message says which limit was exceeded.",
  error: refusals.tooManyRecords(),
};
const NO_ROW: ErrorCase = { when: "The shop has no such row.", error: refusals.noRow("orders") };
const WRONG_SIGNATURE: ErrorCase = {
  when: "The signature is wrong or the shop is unknown. The answer does not say which.",
  error: refusals.wrongSignature(),
};

/** Error responses shared by operations, by component name. */
const SHARED = {
  BadPageRequest: { cases: [ERROR_CASES.bad_cursor, OTHER_SHOP, RESTORED, ERROR_CASES.bad_parameter] },
  BadRowRequest: { cases: [BAD_INCLUDE, STRICT_PARAMETER] },
  BadRecord: { cases: [ERROR_CASES.bad_record] },
  Unauthorized: { cases: [ERROR_CASES.unauthorized], headers: ["WWW-Authenticate"] },
  WrongSignature: { cases: [WRONG_SIGNATURE], headers: ["WWW-Authenticate"] },
  PlanRequired: { cases: [ERROR_CASES.plan_required] },
  NotFound: { cases: [NO_ROW, ERROR_CASES.not_found] },
  TooLarge: { cases: [ERROR_CASES.too_large, TOO_MANY_RECORDS] },
  RateLimited: { cases: [ERROR_CASES.rate_limited], headers: ["Retry-After", "RateLimit", "RateLimit-Policy"] },
  Internal: { cases: [ERROR_CASES.internal] },
  Unavailable: { cases: [ERROR_CASES.unavailable], headers: ["Retry-After", "Connection"] },
} satisfies Record<string, { cases: ErrorCase[]; headers?: HeaderName[] }>;
export type SharedRefusal = keyof typeof SHARED | "HeadersTooLarge";

/**
 * The response that Bun sends before the program sees the request (docs/api.md, "Answers without a body"). An operation
 * lists this response only if it has no other client error. Otherwise generated clients would have to expect client
 * errors without a body.
 */
const HEADERS_TOO_LARGE = { description: "Address and headers have more than 16 KB. The answer has no body." };

/** Returns the error that `run` throws. */
function thrownBy(run: () => unknown): SdsError {
  try {
    run();
  } catch (thrown) {
    if (thrown instanceof SdsError) return thrown;
  }
  throw new Error("nothing was refused");
}

/** Returns the refusals for `components.responses`. */
export function sharedRefusals(): Record<string, ResponseObject> {
  const entries = Object.entries<{ cases: ErrorCase[]; headers?: HeaderName[] }>(SHARED);
  const described = entries.map(([name, { cases, headers = [] }]) => [name, refusalOf(cases, headers)] as const);
  return { ...Object.fromEntries(described), HeadersTooLarge: HEADERS_TOO_LARGE };
}

/** Returns references to the refusals of an operation, by status. */
export function refusalRefs(names: readonly SharedRefusal[]): Record<string, Ref> {
  return Object.fromEntries(names.map((name) => [statusOf(name), { $ref: `#/components/responses/${name}` }]));
}

function statusOf(name: SharedRefusal): string {
  if (name === "HeadersTooLarge") return "431";
  const [first] = SHARED[name].cases;
  return String(first === undefined ? 500 : STATUS[first.error.code]);
}

/** Returns the name of an example: the error code. If an earlier case has the same code, a number follows the code. */
function nameOf(cases: readonly ErrorCase[], index: number): string {
  const code = cases[index]?.error.code ?? "";
  const before = cases.slice(0, index).filter(({ error }) => error.code === code).length;
  return before === 0 ? code : `${code}_${before + 1}`;
}

function refusalOf(cases: readonly ErrorCase[], headers: readonly HeaderName[]): ResponseObject {
  return {
    description: cases.map(({ when, error }) => `\`${error.code}\`: ${when}`).join("\n\n"),
    headers: headerRefs([...COMMON, "Vary", ...headers]),
    content: {
      "application/json": {
        schema: { $ref: "#/components/schemas/ApiError" },
        examples: Object.fromEntries(
          cases.map(({ when, error }, index) => [nameOf(cases, index), { summary: when, value: apiError(error) }]),
        ),
      },
    },
  };
}

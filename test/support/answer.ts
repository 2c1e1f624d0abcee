import { expect } from "bun:test";

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** An answer in JSON: status, headers and the whole body, parsed. */
export interface Answer {
  status: number;
  headers: Record<string, string>;
  body: unknown;
}

/** Headers that differ from answer to answer. `answerOf` checks their form, and leaves them out. */
const FORMS: Record<string, RegExp> = {
  "x-request-id": UUID,
  etag: /^W\/"[\w.+-]+-\d+-[0-9a-z]+"$/,
  "x-checkpoint": /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z~chg_[a-z2-7]{24}$/,
};

/** Reads an answer in JSON. */
export async function answerOf(response: Response): Promise<Answer> {
  expect(response.headers.has("x-request-id")).toBe(true);
  for (const [name, form] of Object.entries(FORMS)) {
    const value = response.headers.get(name);
    if (value !== null) expect(value).toMatch(form);
  }
  const headers = Object.fromEntries([...response.headers].filter(([name]) => !(name in FORMS)));
  return { status: response.status, headers, body: await response.json() };
}

const JSON_HEADERS = { "content-type": "application/json", "x-content-type-options": "nosniff" };

/** The expected answer to a successful request. */
export function success(
  status: number,
  body: unknown,
  headers: Record<string, string> = { "cache-control": "no-store" },
): Answer {
  return { status, headers: { ...JSON_HEADERS, ...headers }, body };
}

/** The expected answer with a page of rows. */
export function page(data: unknown[], limit: number, nextCursor: string | null): Answer {
  return success(
    200,
    { data, page: { limit, nextCursor } },
    { "cache-control": "private, no-cache", vary: "Authorization" },
  );
}

/** The expected answer to a refused request. */
export function refusal(status: number, code: string, message: string, headers: Record<string, string> = {}): Answer {
  const own = { "cache-control": "no-store", vary: "Authorization", ...headers };
  return success(status, { error: { code, message } }, own);
}

/** The expected answer to a request with a refused cursor or checkpoint. */
export function badCursor(reason: string, message: string): Answer {
  return { ...refusal(400, "bad_cursor", message), body: { error: { code: "bad_cursor", message, reason } } };
}

export const NOT_FOUND = refusal(
  404,
  "not_found",
  "There is nothing here. The API has /api/v1/subscriptions, /api/v1/customers, /api/v1/orders, /api/v1/shop.",
);

export const UNAUTHORIZED = refusal(
  401,
  "unauthorized",
  "Send a valid API key as `Authorization: Bearer cad_pk_...`.",
  {
    "www-authenticate": "Bearer",
  },
);

export const INTERNAL = refusal(500, "internal", "Something went wrong on our side. It is safe to try again.");

/** @param allow the methods of the path, as in the Allow header */
export function notAllowed(allow: string): Answer {
  return refusal(405, "method_not_allowed", `Only ${allow} ${allow.includes(",") ? "are" : "is"} allowed here.`, {
    allow,
  });
}

import type { FuzzedRequest } from "./request.ts";
import type { Answer } from "./wire.ts";
import type { FuzzedShop, World } from "./world.ts";

const ID = /\b(?:sub|cus|ord)_[a-z2-7]{24}\b/g;
const MOST_ROWS = 250;

/** Checks an answer. @returns its fault in plain words; undefined for a right answer */
export type AnswerCheck = (request: FuzzedRequest, answer: Answer) => string | undefined;

export function createAnswerCheck({ shops, secrets }: World): AnswerCheck {
  const owners = new Map(shops.flatMap((shop) => shop.known.ids.map((id) => [id, shop] as const)));
  const secretsOf = (shop: FuzzedShop) => [shop.key, shop.intakeSecret, shop.cookie, shop.csrf];

  /** Finds the first text of another shop in an answer, unless the request had this text too. */
  function foreignIn({ as, target, body, raw }: FuzzedRequest, answer: string): string | undefined {
    const sent = `${target}${decoded(target)}${body?.toString() ?? ""}${decoded(body?.toString() ?? "")}${raw ?? ""}`;
    const others = shops.filter((shop) => shop !== as);
    const numbers = others.flatMap(({ digits }) => answer.match(new RegExp(`${digits}\\d{5}`, "g")) ?? []);
    const ids = (answer.match(ID) ?? []).filter((id) => owners.has(id) && owners.get(id) !== as);
    return [...numbers, ...ids, ...others.flatMap(secretsOf).filter((secret) => answer.includes(secret))].find(
      (text) => !sent.includes(text),
    );
  }

  return (request, answer) => {
    const { status, headers, body } = answer;
    const page = isAdmin(request.target);
    if (status >= 500 && !expected(request, answer)) return `was answered with ${status}`;
    const foreign = foreignIn(request, body);
    if (foreign !== undefined) return `was answered with what belongs to another shop: ${foreign}`;
    if (!page && secrets.some((secret) => body.includes(secret))) return "was answered with a secret";
    if (headers.has("x-injected")) return "wrote a header of the answer";
    if (!page && !isDocs(request.target) && isHtml(answer)) return "was answered with a page of HTML";
    if (request.kind === "raw") return undefined;
    if (!headers.has("x-request-id") && !isAsset(request.target)) return "has an answer without X-Request-Id";
    return page || request.method === "HEAD" ? undefined : wrongJson(request, answer);
  };
}

/** Whether an error is expected: 503 with Retry-After, or 505 for an unknown version of HTTP. */
function expected({ kind }: FuzzedRequest, { status, headers }: Answer): boolean {
  return (status === 503 && headers.has("retry-after")) || (kind === "raw" && status === 505);
}

/** Whether a path is of the settings page, in the browser or in the platform's admin. */
function isAdmin(target: string): boolean {
  return /^(?:https?:\/\/[^/]*)?\/(?:admin|alerts|app)(?:[/?]|$)/.test(target);
}

function isDocs(target: string): boolean {
  return /^(?:https?:\/\/[^/]*)?\/docs(?:[/?]|$)/.test(target);
}

/** Whether a path is a style sheet or script of the settings page. */
function isAsset(target: string): boolean {
  return /^\/admin\/[\w-]+\.(?:css|js)(?:\?|$)/.test(target);
}

function isHtml({ headers, body }: Answer): boolean {
  return (headers.get("content-type") ?? "").includes("html") || /^\s*</.test(body);
}

function wrongJson({ target, headers: sent }: FuzzedRequest, { status, headers, body }: Answer): string | undefined {
  const isList = target.startsWith("/api/") && status === 200;
  if (status >= 400 || isList) {
    if (headers.get("content-type") !== "application/json") return `has ${status} that is no JSON`;
    if (headers.has("content-encoding")) return undefined;
    const parsed = parsedBody(body);
    if (parsed === undefined) return `has ${status} with a body that is no JSON`;
    if (status >= 400 && !isError(parsed["error"])) return `has ${status} without code and message`;
    if (Array.isArray(parsed["data"]) && parsed["data"].length > MOST_ROWS) return "has more rows than a page may have";
  }
  const hasKey = sent.some(([name, value]) => name === "Authorization" && /^Bearer cad_pk_[0-9a-f]{48}$/.test(value));
  if (isList && !hasKey) return "was answered without a key";
  if (status === 401 && headers.get("www-authenticate") !== "Bearer" && target.startsWith("/api/"))
    return "has 401 without WWW-Authenticate";
  return status === 405 && !headers.has("allow") ? "has 405 without Allow" : undefined;
}

function parsedBody(body: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

function isError(error: unknown): boolean {
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown };
  return typeof code === "string" && typeof message === "string";
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}

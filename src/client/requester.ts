import { isLoopback, readAddress } from "./address.ts";
import { ApiError, ConnectionError } from "./api-error.ts";
import { parseRetryAfter, requireTime, retryWait, sleepUnlessAborted, timeLimit } from "./waits.ts";

export interface ClientOptions {
  /** The address of the server, such as `https://sds.example.com`. It may contain a path. */
  url: string;
  /** An API key, `cad_pk_…`. It is sent in a header, and no error contains it. */
  key: string;
  /** Time limit of one attempt, including the body of its answer. 30,000 by default. */
  timeoutMs?: number;
  /** Time limit of a request with all its attempts. 120,000 by default. No attempt begins in the last second. */
  deadlineMs?: number;
  /** Allows `http:` to another machine. Everybody between the two machines can then read the key. */
  allowHttp?: boolean;
  /** For a log: called when an attempt failed and another attempt follows after `waitMs`. */
  onRetry?: (error: ApiError | ConnectionError, waitMs: number) => void;
  /** Replaces the global `fetch`. */
  fetch?: Fetch;
}

/** The part of `fetch` that the client uses. */
export type Fetch = (url: string, init: FetchInit) => Promise<Response>;
interface FetchInit {
  headers: Record<string, string>;
  redirect: "manual";
  credentials: "omit";
  signal: AbortSignal;
  /**
   * An option of Bun. Requests to this machine use no proxy, because a proxy from the environment could read
   * the key.
   */
  proxy?: false;
}

/** Clock, randomness and waits, which tests replace. Times in milliseconds. */
export interface RequesterDependencies {
  /** A monotonic clock. */
  clock: () => number;
  /** From 0 to 1. */
  random: () => number;
  /** Rejects with the signal's reason if the signal aborts. */
  sleep: (ms: number, signal: AbortSignal | undefined) => Promise<void>;
}

interface ApiAnswer {
  headers: Headers;
  /** The parsed JSON. */
  body: unknown;
}

/** GETs a path below `/api/v1/`. @throws ApiError, ConnectionError, or the reason of the signal */
export type Requester = (path: string, query: Query, signal: AbortSignal | undefined) => Promise<ApiAnswer>;
/** Parameters by name. A parameter with several values is repeated. */
type Query = Record<string, string | readonly string[]>;

interface FailedAttempt {
  error: ApiError | ConnectionError;
  /** Minimum wait before the next attempt; undefined if another attempt cannot help. */
  retryAfterMs: number | undefined;
}

const REAL: RequesterDependencies = { clock: () => performance.now(), random: Math.random, sleep: sleepUnlessAborted };

/**
 * No attempt begins if less time than this is left until the deadline. The attempt would time out, and its error would
 * hide the error of the previous attempt.
 */
const SHORTEST_ATTEMPT_MS = 1_000;

/** Creates a requester that repeats failed requests (429, 5xx, network) until the deadline. @throws TypeError */
export function createRequester(
  options: ClientOptions,
  { clock, random, sleep }: RequesterDependencies = REAL,
): Requester {
  const { key, timeoutMs = 30_000, deadlineMs = 120_000 } = options;
  // Each request looks up the global fetch, so that tests and tracing can replace it later.
  const fetchUrl: Fetch = options.fetch ?? ((url, init) => fetch(url, init));
  const base = baseOf(options.url, options.allowHttp ?? false);
  const direct = isLoopback(base.hostname) ? { proxy: false as const } : {};
  requireTime("timeoutMs", timeoutMs);
  requireTime("deadlineMs", deadlineMs);
  // JavaScript callers can pass undefined, for example from a variable that is not set.
  if (typeof key !== "string" || !/^[\x21-\x7e]+$/.test(key)) throw new TypeError("key must be an API key, cad_pk_…");
  // With `strict`, the server refuses parameters that it does not know.
  const headers = { Authorization: `Bearer ${key}`, Accept: "application/json", Prefer: "handling=strict" };

  async function attempt(
    url: string,
    limitMs: number,
    signal: AbortSignal | undefined,
  ): Promise<ApiAnswer | FailedAttempt> {
    const limit = timeLimit(limitMs, signal);
    try {
      const init: FetchInit = { headers, redirect: "manual", credentials: "omit", signal: limit.signal, ...direct };
      const response = await fetchUrl(url, init);
      return readAnswer(response, await readText(response));
    } catch (thrown) {
      signal?.throwIfAborted();
      const why = limit.signal.aborted ? `no answer within ${Math.round(limitMs) / 1000} s` : messageOf(thrown);
      const error = new ConnectionError(`No answer from ${base.origin}: ${why}`, { cause: thrown });
      return { error, retryAfterMs: 0 };
    } finally {
      limit.end();
    }
  }

  return async (path, query, signal) => {
    const url = urlOf(base, path, query);
    const endsAt = clock() + deadlineMs;
    const lastStartAt = endsAt - Math.min(timeoutMs, SHORTEST_ATTEMPT_MS);
    for (let failures = 1; ; failures++) {
      signal?.throwIfAborted();
      const result = await attempt(url, Math.min(timeoutMs, endsAt - clock()), signal);
      if (!("error" in result)) return result;
      const { error, retryAfterMs } = result;
      if (retryAfterMs === undefined) throw error;
      const waitMs = retryWait(failures, retryAfterMs, random());
      if (clock() + waitMs > lastStartAt) throw error;
      options.onRetry?.(error, waitMs);
      await sleep(waitMs, signal);
      // On a busy machine, the wait can end late.
      if (clock() > lastStartAt) throw error;
    }
  };
}

/** Parses the server's address. @throws TypeError, which does not show the address: it may contain a password */
function baseOf(text: string, allowHttp: boolean): URL {
  const url = readAddress(text, allowHttp);
  if (url === "form")
    throw new TypeError("url must be an address such as https://sds.example.com, without user, query and fragment");
  if (url === "http")
    throw new TypeError("url must be https:, because everybody on the way could read the key; allowHttp allows http:");
  if (!url.pathname.endsWith("/")) url.pathname += "/";
  return url;
}

function urlOf(base: URL, path: string, query: Query): string {
  const url = new URL(`api/v1/${path}`, base);
  for (const [name, values] of Object.entries(query))
    for (const value of [values].flat()) url.searchParams.append(name, value);
  return url.href;
}

/**
 * Reads an answer.
 * @param text undefined if the text is too large. Then no retry follows, because a retry would load the text again
 */
function readAnswer(response: Response, text: string | undefined): ApiAnswer | FailedAttempt {
  const { status, headers } = response;
  const body = text === undefined ? undefined : parseJson(text);
  if (status === 200 && body !== undefined) return { headers, body };
  const retryAfterMs = parseRetryAfter(headers.get("retry-after"), Date.now());
  const problem = text === undefined ? TOO_LARGE : explain(response);
  const { code, message, reason } = errorIn(body) ?? { code: "", message: problem };
  const error = new ApiError(message, { status, code, reason, requestId: headers.get("x-request-id"), retryAfterMs });
  const again = text !== undefined && (status === 429 || status >= 500);
  return { error, retryAfterMs: again ? (retryAfterMs ?? 0) : undefined };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function errorIn(body: unknown): { code: string; message: string; reason?: string } | undefined {
  if (typeof body !== "object" || body === null || !("error" in body)) return undefined;
  const { error } = body;
  if (typeof error !== "object" || error === null || !("code" in error) || !("message" in error)) return undefined;
  const reason = "reason" in error ? { reason: String(error.reason) } : {};
  return { code: String(error.code), message: String(error.message), ...reason };
}

/** Explains why an answer cannot come from `sds`. */
function explain({ status, type }: Response): string {
  // The client does not follow redirects: a redirect could send the key to another host.
  if (type === "opaqueredirect" || (status >= 300 && status < 400 && status !== 304))
    return "The address redirects. Use the address that it leads to.";
  return `The answer is HTTP ${status} and not from sds. Is the address right?`;
}

/** Messages for frequent connection errors. */
const ADDRESS_ERRORS: Record<string, string> = {
  ECONNREFUSED: "nothing listens there. Start the server, or correct the address.",
  ENOTFOUND: "there is no machine of this name. Correct the address.",
  ECONNRESET: "the server closed the connection. Try again.",
  EPROTO: "the server speaks no TLS there. Correct the address.",
};

function messageOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  // Node's message is only "fetch failed"; the cause has the reason.
  const reason = thrown.cause instanceof Error && thrown.cause.message !== "" ? thrown.cause : thrown;
  return ADDRESS_ERRORS[String((reason as { code?: unknown }).code)] ?? reason.message;
}

/** Maximum size of a response: four times the largest page (8 MiB). A larger response cannot come from `sds`. */
const MAX_BODY_BYTES = 32 * 1024 * 1024;
const TOO_LARGE = `The answer is larger than ${MAX_BODY_BYTES} bytes, so it is not from sds. Is the address right?`;

/** Reads a body without `for await`, which Safari lacks. @returns undefined for a body above MAX_BODY_BYTES */
async function readText({ body }: Response): Promise<string | undefined> {
  if (body === null) return "";
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    bytes += value.length;
    if (bytes > MAX_BODY_BYTES) {
      await reader.cancel();
      return undefined;
    }
    text += decoder.decode(value, { stream: true });
  }
}

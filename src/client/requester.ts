import { isLoopback, readAddress } from "./address.ts";
import { ApiError, ConnectionError } from "./api-error.ts";
import { parseRetryAfter, retryWait } from "./retry-wait.ts";

export interface ClientOptions {
  /** The address of the server, such as `https://sds.example.com`. A path in it is kept. */
  url: string;
  /** An API key, `cad_pk_…`. It is sent in a header, and is in no error. */
  key: string;
  /** How long one attempt of a request may take, its body included. 30,000 by default. */
  timeoutMs?: number;
  /** How long a request with all attempts and waits may take. In the last second none begins. 120,000 by default. */
  deadlineMs?: number;
  /** Allows `http:` to another machine, where everybody on the way can read the key. */
  allowHttp?: boolean;
  /** Called when an attempt failed and another one follows after a wait, for a log. */
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
  /** Bun has it: no proxy of the environment may see the key of a server on this machine. */
  proxy?: false;
}

/** What the requester needs from outside. Times in milliseconds. */
export interface Dependencies {
  /** A clock that only goes forward. */
  clock: () => number;
  /** From 0 to 1. */
  random: () => number;
  /** Rejects with the signal's reason if it aborts. */
  sleep: (ms: number, signal: AbortSignal | undefined) => Promise<void>;
}

interface Answer {
  headers: Headers;
  /** The parsed JSON. */
  body: unknown;
}

type Query = Record<string, string>;
/**
 * GETs a path below `/api/v1/`.
 * @throws ApiError, ConnectionError, or the reason of the signal
 */
export type Requester = (path: string, query: Query, signal: AbortSignal | undefined) => Promise<Answer>;

/** A failed attempt: its error, and how long to wait at least before the next one; undefined if none makes sense. */
interface Failure {
  error: ApiError | ConnectionError;
  retryAfterMs: number | undefined;
}

const REAL: Dependencies = { clock: () => performance.now(), random: Math.random, sleep: sleepUnlessAborted };

/** So much of a deadline must be left for another attempt: a shorter one would only hide the last error. */
const SHORTEST_ATTEMPT_MS = 1_000;

/**
 * Repeats requests that fail by 429, by 5xx or by the network, until the deadline.
 * @throws TypeError for wrong options
 */
export function createRequester(options: ClientOptions, { clock, random, sleep }: Dependencies = REAL): Requester {
  const { key, timeoutMs = 30_000, deadlineMs = 120_000 } = options;
  // Looked up at each request, so that tests and tracing can replace the global one later.
  const fetchUrl: Fetch = options.fetch ?? ((url, init) => fetch(url, init));
  const base = baseOf(options.url, options.allowHttp ?? false);
  const direct = isLoopback(base.hostname) ? { proxy: false as const } : {};
  requireTime("timeoutMs", timeoutMs);
  requireTime("deadlineMs", deadlineMs);
  // JavaScript may pass anything, such as the undefined of a variable that is not set.
  if (typeof key !== "string" || !/^[\x21-\x7e]+$/.test(key)) throw new TypeError("key must be an API key, cad_pk_…");
  // A parameter that the server does not know is an error, not ignored.
  const headers = { Authorization: `Bearer ${key}`, Accept: "application/json", Prefer: "handling=strict" };

  async function attempt(url: string, limitMs: number, signal: AbortSignal | undefined): Promise<Answer | Failure> {
    const limit = timeLimit(limitMs, signal);
    try {
      const init: FetchInit = { headers, redirect: "manual", credentials: "omit", signal: limit.signal, ...direct };
      const response = await fetchUrl(url, init);
      return readAnswer(response, await readText(response));
    } catch (thrown) {
      signal?.throwIfAborted();
      const why = limit.signal.aborted ? `no answer within ${Math.round(limitMs) / 1000} s` : messageOf(thrown);
      return {
        error: new ConnectionError(`No answer from ${base.origin}: ${why}`, { cause: thrown }),
        retryAfterMs: 0,
      };
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
      // A busy machine wakes up late.
      if (clock() > lastStartAt) throw error;
    }
  };
}

/** @throws TypeError. Its message does not repeat the text, because it may hold a password. */
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
  url.search = new URLSearchParams(query).toString();
  return url.href;
}

/** @param text undefined if it is too large: a second attempt would only load it once more */
function readAnswer(response: Response, text: string | undefined): Answer | Failure {
  const { status, headers } = response;
  const body = text === undefined ? undefined : parseJson(text);
  if (status === 200 && body !== undefined) return { headers, body };
  const retryAfterMs = parseRetryAfter(headers.get("retry-after"), Date.now());
  const problem = text === undefined ? TOO_LARGE : explain(response);
  const { code, message } = errorIn(body) ?? { code: "", message: problem };
  const error = new ApiError(message, { status, code, requestId: headers.get("x-request-id"), retryAfterMs });
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

function errorIn(body: unknown): { code: string; message: string } | undefined {
  if (typeof body !== "object" || body === null || !("error" in body)) return undefined;
  const { error } = body;
  if (typeof error !== "object" || error === null || !("code" in error) || !("message" in error)) return undefined;
  return { code: String(error.code), message: String(error.message) };
}

/** What an answer that `sds` does not give means. */
function explain({ status, type }: Response): string {
  // Redirects are not followed: they could lead the key to another host.
  if (type === "opaqueredirect" || (status >= 300 && status < 400 && status !== 304))
    return "The address redirects. Use the address that it leads to.";
  return `The answer is HTTP ${status} and not from sds. Is the address right?`;
}

function messageOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  // Node says only "fetch failed", and the reason in the cause.
  return thrown.cause instanceof Error && thrown.cause.message !== "" ? thrown.cause.message : thrown.message;
}

/** A signal that aborts with another one, or after a time. `end` takes the listener off the other one. */
function timeLimit(limitMs: number, signal: AbortSignal | undefined): { signal: AbortSignal; end: () => void } {
  const controller = new AbortController();
  const abort = () => controller.abort();
  const timer = setTimeout(abort, limitMs);
  signal?.addEventListener("abort", abort);
  return {
    signal: controller.signal,
    end() {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
    },
  };
}

/** The longest time of a timer, in milliseconds. A timer with a longer one ends at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** @throws TypeError for what is no time of a timer, in milliseconds, or zero */
export function requireTime(name: string, ms: number): void {
  if (ms > 0 && ms <= LONGEST_TIMER_MS) return;
  throw new TypeError(`${name} must be a number above zero and up to ${LONGEST_TIMER_MS}, in milliseconds`);
}

/** Sleeps for 24 days at most. @throws the reason of the signal */
export function sleepUnlessAborted(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(
      () => {
        signal?.removeEventListener("abort", abort);
        resolve();
      },
      Math.min(ms, LONGEST_TIMER_MS),
    );
    signal?.addEventListener("abort", abort, { once: true });
    if (signal?.aborted === true) abort();
  });
}

/** A page has 8 MiB at most, unless a single row is larger. */
const MAX_BODY_BYTES = 32 * 1024 * 1024;
const TOO_LARGE = `The answer is larger than ${MAX_BODY_BYTES} bytes, so it is not from sds. Is the address right?`;

/**
 * The text of a body, or undefined if it is larger than any that `sds` sends. It takes a reader, because streams in
 * Safari have no `for await`.
 */
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

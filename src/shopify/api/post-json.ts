import { connectReason } from "../../domain/connect-reason.ts";
import { PlatformError } from "./platform-error.ts";

/** How long the platform may take over an answer. Milliseconds. */
const ANSWER_MAY_TAKE = 30_000;
/** Longer than any page that we ask for. */
const MAX_ANSWER = 32 * 1024 * 1024;

export interface Answer {
  status: number;
  retryAfter: number | undefined;
  /** undefined where the body is no JSON object. */
  body: Record<string, unknown> | undefined;
}

/**
 * Posts to the platform and reads the answer, whatever its status. Redirects are not followed, for the token would go with them.
 * @throws PlatformError `unavailable` where no answer came
 */
export async function postJson(
  fetch: typeof globalThis.fetch,
  url: string,
  body: string,
  headers: Record<string, string>,
  signal?: AbortSignal,
): Promise<Answer> {
  const limit = AbortSignal.timeout(ANSWER_MAY_TAKE);
  const options: BunFetchRequestInit = {
    method: "POST",
    body,
    headers: { Accept: "application/json", "User-Agent": "sds", ...headers },
    redirect: "manual",
    proxy: false,
    signal: signal === undefined ? limit : AbortSignal.any([limit, signal]),
  };
  try {
    const response = await fetch(url, options);
    const text = await readText(response);
    return { status: response.status, retryAfter: retryAfter(response.headers.get("retry-after")), body: parseObject(text) };
  } catch (thrown) {
    if (thrown instanceof PlatformError) throw thrown;
    if (limit.aborted || signal?.aborted === true) throw new PlatformError("unavailable", "the platform did not answer in time");
    throw new PlatformError("unavailable", `the platform cannot be reached: ${connectReason(thrown)}`);
  }
}

async function readText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    if (size > MAX_ANSWER) throw new PlatformError("unavailable", "the platform's answer is too long");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

/** @returns milliseconds */
function retryAfter(header: string | null): number | undefined {
  return header !== null && /^\d{1,5}(\.\d+)?$/.test(header) ? Number(header) * 1000 : undefined;
}

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

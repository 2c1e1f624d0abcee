import { addTo } from "../../lib/slots.ts";
import type { Awaitable } from "../../lib/waits.ts";
import { type Bytes, compressLater, type Encoding } from "../encoding.ts";
import { type HeaderFields, respond, respondUnavailable } from "../respond.ts";

/** Maximum size of a page that is sent in one part. Such pages mostly fit into the buffers of their connection. */
const LARGE_BYTES = 256 * 1024;
/** Number of bytes in a part. When the client has received a part, the next part follows. */
const PART_BYTES = 256 * 1024;
/** Maximum number of unsent bytes of large pages for one shop. MAX_BYTES is the limit for all shops together. */
const MAX_BYTES_OF_SHOP = 48 * 1024 * 1024;
const MAX_BYTES = 64 * 1024 * 1024;
/** Time limit for sending a page. Without a limit, a few slow clients could block all large pages. */
const SENDING_TIMEOUT_MS = 120_000;

export function isLarge(page: Uint8Array): boolean {
  return page.length > LARGE_BYTES;
}

/** Sends large pages. Limits how many of their bytes wait for clients that read slowly or not at all. */
export interface LargePages {
  /**
   * Sends a page. If `encoding` is given, compresses the page first. During compression, the full size counts against
   * the limits. After compression, the compressed size counts against the limits, until the page is sent or the
   * connection is closed.
   * @returns 503 if too many bytes wait already
   */
  respond(
    request: Request,
    shopId: number,
    page: Bytes,
    headers: HeaderFields,
    encoding?: Encoding,
  ): Awaitable<Response>;
}

/** @param limits for tests */
export function createLargePages({
  maxBytes = MAX_BYTES,
  maxBytesOfShop = MAX_BYTES_OF_SHOP,
  sendingTimeoutMs = SENDING_TIMEOUT_MS,
} = {}): LargePages {
  const unsentByShop = new Map<number, number>();
  let unsent = 0;

  function count(shopId: number, bytes: number): void {
    unsent += bytes;
    addTo(unsentByShop, shopId, bytes);
  }

  /** Counts waiting bytes. @returns 503 above a limit; otherwise a function that subtracts the bytes, at most once */
  function take(shopId: number, bytes: number): (() => void) | Response {
    if ((unsentByShop.get(shopId) ?? 0) + bytes > maxBytesOfShop) return tooMany(" of this shop");
    if (unsent + bytes > maxBytes) return tooMany("");
    count(shopId, bytes);
    let isCounted = true;
    return () => {
      if (isCounted) count(shopId, -bytes);
      isCounted = false;
    };
  }

  function send(request: Request, shopId: number, page: Bytes, headers: HeaderFields): Response {
    const end = take(shopId, page.length);
    return end instanceof Response ? end : respond(200, partsOf(page, request.signal, sendingTimeoutMs, end), headers);
  }

  async function compressAndSend(
    request: Request,
    shopId: number,
    page: Bytes,
    headers: HeaderFields,
    encoding: Encoding,
  ): Promise<Response> {
    const end = take(shopId, page.length);
    if (end instanceof Response) return end;
    const compressed = await compressLater[encoding](page).finally(end);
    return send(request, shopId, compressed, { ...headers, "Content-Encoding": encoding });
  }

  return {
    respond: (request, shopId, page, headers, encoding) =>
      encoding === undefined
        ? send(request, shopId, page, headers)
        : compressAndSend(request, shopId, page, headers, encoding),
  };
}

function tooMany(whose: string): Response {
  return respondUnavailable(`Too many large pages${whose} are not read by their clients. It is safe to try again.`);
}

/**
 * Makes a stream of the parts of a page.
 * @param signal of the request, aborted when the client closes the connection
 * @param onEnd called when the client has taken the last part, or when sending has failed; may be called twice
 */
function partsOf(page: Bytes, signal: AbortSignal, timeoutMs: number, onEnd: () => void): ReadableStream<Bytes> {
  let sent = 0;
  let timer: Timer | undefined;
  function end(): void {
    clearTimeout(timer);
    onEnd();
  }
  const parts = new ReadableStream({
    start(controller) {
      timer = setTimeout(() => {
        onEnd();
        controller.error(new Error("the client took too long to read the page"));
      }, timeoutMs);
    },
    pull(controller) {
      controller.enqueue(page.subarray(sent, sent + PART_BYTES));
      sent += PART_BYTES;
      if (sent < page.length) return;
      controller.close();
      end();
    },
    cancel: end,
  });
  // If the client is already gone, Bun neither reads nor cancels the stream. Without this call, the timer would keep
  // the page in memory.
  if (signal.aborted) end();
  else signal.addEventListener("abort", end, { once: true });
  return parts;
}

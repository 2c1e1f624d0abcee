import { createByteBudget } from "../../lib/byte-budget.ts";
import { type Bytes, compressLater, type Encoding } from "../encoding.ts";
import { type HeaderFields, respond, respondUnavailable } from "../respond.ts";

/** A page of more bytes is sent in parts. Smaller pages mostly fit into the buffers of their connection. */
const LARGE_BYTES = 256 * 1024;
/** Bytes of a part. The next part follows when the client has taken this part. */
const PART_BYTES = 256 * 1024;
/** The most bytes of large pages that were made and not sent, for one shop and for all shops. */
const MAX_BYTES_OF_SHOP = 48 * 1024 * 1024;
const MAX_BYTES = 64 * 1024 * 1024;
/**
 * A client that takes longer for a page is cut off. Otherwise a few slow clients would block the pages of other clients
 * for ever.
 */
const SENDING_TIMEOUT_MS = 120_000;

export function isLarge(page: Uint8Array): boolean {
  return page.length > LARGE_BYTES;
}

/** Sends large pages. Limits how many bytes of them wait for clients that read slowly or not at all. */
export interface LargePages {
  /**
   * Sends the page. It counts until it is sent or the connection is closed. @returns 503 if too many bytes wait already
   */
  respond(request: Request, shopId: number, page: Bytes, headers: HeaderFields): Response;
  /**
   * Like `respond`, but compresses the page first. The page counts with its full size during the compression, and with
   * its compressed size after it.
   */
  respondCompressed(
    request: Request,
    shopId: number,
    page: Bytes,
    encoding: Encoding,
    headers: HeaderFields,
  ): Promise<Response>;
}

/** @param limits for tests */
export function createLargePages({
  maxBytes = MAX_BYTES,
  maxBytesOfShop = MAX_BYTES_OF_SHOP,
  sendingTimeoutMs = SENDING_TIMEOUT_MS,
} = {}): LargePages {
  const unsent = createByteBudget({ maxBytes, maxBytesOfOwner: maxBytesOfShop });

  function send(request: Request, shopId: number, page: Bytes, headers: HeaderFields): Response {
    const share = unsent.take(shopId, page.length);
    if ("exceeded" in share) return tooMany(share.exceeded);
    const onEnd = () => share[Symbol.dispose]();
    return respond(200, partsOf(page, { signal: request.signal, timeoutMs: sendingTimeoutMs, onEnd }), headers);
  }

  return {
    respond: send,
    async respondCompressed(request, shopId, page, encoding, headers) {
      const share = unsent.take(shopId, page.length);
      if ("exceeded" in share) return tooMany(share.exceeded);
      let compressed: Bytes;
      {
        using _ = share;
        compressed = await compressLater[encoding](page);
      }
      return send(request, shopId, compressed, { ...headers, "Content-Encoding": encoding });
    },
  };
}

function tooMany(exceeded: "own" | "total"): Response {
  const whose = exceeded === "own" ? " of this shop" : "";
  return respondUnavailable(`Too many large pages${whose} are not read by their clients. It is safe to try again.`);
}

interface Sending {
  /** The request's signal: aborted when the client closes the connection. */
  signal: AbortSignal;
  timeoutMs: number;
  /** Called when the last part was taken, or when sending has failed. It may be called twice. */
  onEnd: () => void;
}

function partsOf(page: Bytes, { signal, timeoutMs, onEnd }: Sending): ReadableStream<Bytes> {
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
  // If the client is gone already, Bun neither reads nor cancels the stream. The timer would keep the page in memory.
  if (signal.aborted) end();
  else signal.addEventListener("abort", end, { once: true });
  return parts;
}

import { SdsError } from "../domain/error.ts";
import { type Awaitable, untilAborted } from "../lib/waits.ts";
import { refusals } from "./refusals.ts";

/**
 * Maximum number of bytes of all bodies that arrive or are in use. All senders share the limit, because the sender of a
 * body is unknown until the signature is checked.
 */
const MAX_TOTAL_BYTES = 64 * 1024 * 1024;
/**
 * A body with a Content-Length up to this size is read in one call, because a stream would take 15 µs more. The
 * bytes of such a body are counted before they arrive.
 */
const SMALL_BYTES = 16 * 1024;
/** Share of the total that bodies may use while they arrive in pieces. The rest is reserved for small bodies. */
const STREAM_SHARE = 3 / 4;
/** Memory that a body takes in addition to its bytes. */
const OVERHEAD_BYTES = 1024;
/** Number of bytes that must arrive before a body has made progress again. */
const PROGRESS_BYTES = 16 * 1024;
/** Time without progress after which a body is stalled. */
const STALLED_MS = 1_000;
/** Timeout for a body to arrive. A slower sender may try again. */
const TIMEOUT_MS = 30_000;
/** How long the body of a refused request is read and dropped. */
const DROP_MS = 1_000;
/**
 * How many bodies are dropped at once. Each may take some megabytes, which no budget counts. Beyond this number, the
 * answer is sent at once, so a client that holds all drops only makes other clients miss their answers.
 */
const MAX_DROPS = 16;
const NO_BYTES = new Uint8Array();
const TOO_MANY = "Too many bodies are being read at once.";

/** A whole body. It counts against the limit until it is disposed. After that it has no bytes. */
export interface Body extends Disposable {
  bytes: Uint8Array<ArrayBuffer>;
}

/** How large a body may be. */
export interface BodyLimit {
  maxBytes: number;
  /** Makes the error for a body of more than `maxBytes`. */
  tooLarge?: (maxBytes: number) => SdsError;
}

interface BodyReadOptions extends BodyLimit {
  /** Name of a sender, such as a network. The bodies of a sender are counted together. */
  sender: string;
}

/** Reads bodies. Limits how many bytes of bodies are in memory, and how long each body may take. */
export interface BodyReader {
  /**
   * Reads a body. Counts the bytes as they arrive. If the body is small, counts the announced bytes at once. If all
   * bodies together exceed the limit, gives up the body that has stalled longest. If no body is stalled, gives up a
   * body of the sender with the most bytes. In two cases, refuses the body of this call instead: the body of this call
   * has made no progress, or its sender has the most bytes.
   * @throws SdsError `too_large`, without waiting for the rest; `unavailable` if the body was given up or refused
   */
  read(request: Request, options: BodyReadOptions): Promise<Body>;
}

/** @param options for tests; `clock` in milliseconds */
export function createBodyReader({
  maxTotalBytes = MAX_TOTAL_BYTES,
  timeoutMs = TIMEOUT_MS,
  clock = () => performance.now(),
} = {}): BodyReader {
  const budget = new BodyBudget(maxTotalBytes, clock);
  return {
    async read(request, { sender, ...limit }) {
      const announced = announcedBytes(request, limit);
      const stop = new AbortController();
      const giveUp = (reason: string) => stop.abort(unavailable(reason));
      const isSmall = announced !== undefined && announced <= SMALL_BYTES;
      const arrival = budget.begin(sender, isSmall ? announced : 0, giveUp);
      const timer = setTimeout(giveUp, timeoutMs, "The body took too long to arrive.");
      try {
        const whole = isSmall
          ? untilAborted(request.bytes(), stop.signal)
          : readPieces(request, limit, stop.signal, (bytes) => budget.add(arrival, bytes));
        return budget.finish(arrival, await whole);
      } finally {
        clearTimeout(timer);
        budget.leave(arrival);
      }
    },
  };
}

/**
 * Reads the pieces of a body. When the signal aborts, stops and frees the pieces. Of a body that is too large, leaves
 * the rest to Bun, or to the body dropper if the connection ends.
 * @param count counts a piece
 */
async function readPieces(
  request: Request,
  limit: BodyLimit,
  signal: AbortSignal,
  count: (bytes: number) => void,
): Promise<Uint8Array<ArrayBuffer>> {
  const reader = request.body?.getReader();
  if (reader === undefined) return NO_BYTES;
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  const cancel = () => void reader.cancel().catch(() => undefined);
  signal.addEventListener("abort", cancel, { once: true });
  try {
    let size = 0;
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      size += next.value.length;
      if (size > limit.maxBytes) {
        if (endsConnection(request)) reader.releaseLock();
        throw tooLarge(limit);
      }
      count(next.value.length);
      pieces.push(next.value);
    }
    signal.throwIfAborted();
    const [only = NO_BYTES, ...more] = pieces;
    return more.length === 0 ? only : Buffer.concat(pieces);
  } finally {
    signal.removeEventListener("abort", cancel);
    cancel();
  }
}

/** Whether the sender asked to close the connection after the answer (RFC 9112, 9.6). */
function endsConnection({ headers }: Request): boolean {
  const options = headers.get("connection")?.toLowerCase().split(",") ?? [];
  return options.some((option) => option.trim() === "close");
}

/** Returns a response, after the body of the request was dropped if necessary. */
type BodyDropper = (request: Request, response: Response) => Awaitable<Response>;

/**
 * Makes a body dropper. If a response is a refusal and the request ends the connection, the dropper first reads and
 * drops the request's body. Otherwise a sender that still writes would get an error, and not see the response
 * (RFC 9112, 9.6). In other connections, Bun itself drops the body. Before a 503 nothing is dropped, because the
 * program has too much to do. A client of HTTP/1.0 that sends no `Connection: close` is not recognized.
 * @param options for tests
 */
export function createBodyDropper({ timeoutMs = DROP_MS, maxDrops = MAX_DROPS } = {}): BodyDropper {
  let drops = 0;
  async function drop(reader: ReadableStreamDefaultReader): Promise<void> {
    drops += 1;
    const timer = setTimeout(() => void reader.cancel().catch(() => undefined), timeoutMs);
    try {
      while (!(await reader.read()).done);
    } catch {
      // The sender has closed the connection.
    } finally {
      clearTimeout(timer);
      drops -= 1;
    }
  }

  return (request, response) => {
    const isDropped = response.status >= 400 && response.status !== 503 && drops < maxDrops && endsConnection(request);
    const body = isDropped ? request.body : null;
    return body === null || body.locked ? response : drop(body.getReader()).then(() => response);
  };
}

/** A body that is not complete yet. */
interface Arrival {
  sender: string;
  /** Bytes that the budget counts for this body. */
  bytes: number;
  /** When the body last made progress. */
  progressAt: number;
  /** How many bytes the body had at `progressAt`. */
  progressBytes: number;
  giveUp(reason: string): void;
}

/** Counts the bytes of all bodies, and decides which arrival to give up. */
class BodyBudget {
  /** Sorted by the time of last progress. The arrival without progress for the longest time comes first. */
  private readonly arrivals = new Set<Arrival>();
  private readonly maxBytes: number;
  private readonly clock: () => number;
  private total = 0;

  constructor(maxBytes: number, clock: () => number) {
    this.maxBytes = maxBytes;
    this.clock = clock;
  }

  /**
   * Counts a new arrival.
   * @param bytes size of a small body, which is counted before it arrives; 0 for other bodies
   * @throws SdsError `unavailable`
   */
  begin(sender: string, bytes: number, giveUp: Arrival["giveUp"]): Arrival {
    const arrival = { sender, bytes: 0, progressAt: this.clock(), progressBytes: 0, giveUp };
    this.makeRoom(arrival, bytes + OVERHEAD_BYTES, this.maxBytes);
    this.arrivals.add(arrival);
    return arrival;
  }

  /** Counts more bytes of an arrival, unless it was given up. @throws SdsError `unavailable` */
  add(arrival: Arrival, bytes: number): void {
    if (!this.arrivals.has(arrival)) return;
    if (arrival.bytes + bytes >= arrival.progressBytes + PROGRESS_BYTES) {
      arrival.progressAt = this.clock();
      arrival.progressBytes = arrival.bytes + bytes;
      this.arrivals.delete(arrival);
      this.arrivals.add(arrival);
    }
    this.makeRoom(arrival, bytes, this.maxBytes * STREAM_SHARE);
  }

  /** Turns a complete arrival into a body in use. The budget never gives up a body in use. */
  finish(arrival: Arrival, bytes: Uint8Array<ArrayBuffer>): Body {
    this.leave(arrival);
    let counted = bytes.length + OVERHEAD_BYTES;
    this.total += counted;
    const uncount = () => {
      this.total -= counted;
      counted = 0;
    };
    return {
      bytes,
      [Symbol.dispose]() {
        uncount();
        // Frees the bytes, because the handler may keep this object.
        this.bytes = NO_BYTES;
      },
    };
  }

  leave(arrival: Arrival): void {
    this.arrivals.delete(arrival);
    this.total -= arrival.bytes;
    arrival.bytes = 0;
  }

  private makeRoom(arrival: Arrival, bytes: number, maxTotal: number): void {
    while (this.total + bytes > maxTotal) {
      const other = this.longestStalled() ?? this.rivalOf(arrival, bytes);
      if (other === undefined || other === arrival) throw unavailable(TOO_MANY);
      this.leave(other);
      other.giveUp(TOO_MANY);
    }
    this.total += bytes;
    arrival.bytes += bytes;
  }

  private longestStalled(): Arrival | undefined {
    const [longest] = this.arrivals;
    return longest !== undefined && this.clock() - longest.progressAt >= STALLED_MS ? longest : undefined;
  }

  /**
   * Picks an arrival of the sender with the most bytes. The picked arrival is given up to make room for `arrival`.
   * @returns undefined if `arrival` made no progress, or if its own sender would have the most bytes
   */
  private rivalOf(arrival: Arrival, bytes: number): Arrival | undefined {
    if (arrival.progressBytes === 0) return undefined;
    const bySender = Map.groupBy(this.arrivals, ({ sender }) => sender);
    const sums = [...bySender].map(([sender, all]) => ({ sender, sum: all.reduce((n, each) => n + each.bytes, 0) }));
    const most = sums.reduce((a, b) => (b.sum > a.sum ? b : a));
    const own = sums.find(({ sender }) => sender === arrival.sender)?.sum ?? 0;
    return own + bytes < most.sum ? bySender.get(most.sender)?.[0] : undefined;
  }
}

/**
 * Returns the value of Content-Length.
 * @returns undefined for a chunked body, and for a header that was sent twice, such as "5, 5" (RFC 9110, 8.6)
 * @throws SdsError `too_large`
 */
export function announcedBytes({ headers }: Request, limit: BodyLimit): number | undefined {
  const announced = headers.get("content-length");
  if (announced === null || !/^\d+$/.test(announced)) return undefined;
  if (Number(announced) > limit.maxBytes) throw tooLarge(limit);
  return Number(announced);
}

function tooLarge({ maxBytes, tooLarge: refuse = refusals.tooLarge }: BodyLimit): SdsError {
  return refuse(maxBytes);
}

function unavailable(reason: string): SdsError {
  return new SdsError("unavailable", `${reason} It is safe to try again.`);
}

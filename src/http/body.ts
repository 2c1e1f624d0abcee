import { SdsError } from "../domain/error.ts";
import { refusals } from "./refusals.ts";

/** The largest body of the intake or of a platform webhook. */
export const MAX_INBOUND_BYTES = 5 * 1024 * 1024;
/** Bytes of all bodies that arrive or are worked on: senders are not known before their bodies are complete. */
const MAX_TOTAL_BYTES = 64 * 1024 * 1024;
/** The first room of a body in chunks. */
const FIRST_ROOM_BYTES = 16 * 1024;
/** What a body takes beside its bytes. */
const OVERHEAD_BYTES = 1024;
/** A slower sender may try again. */
const TIMEOUT_MS = 30_000;
const NO_BYTES = new Uint8Array();
const TOO_MANY = "Too many bodies are being read at once.";

/**
 * A whole body, as raw bytes, because signatures are over bytes. It counts against the limit until it is disposed, and
 * has no bytes from then on.
 */
export interface Body extends Disposable {
  bytes: Uint8Array<ArrayBuffer>;
}

interface ReadOptions {
  maxBytes: number;
  /** Whose bodies are counted together, such as a network. */
  sender: string;
}

/** Reads bodies, and limits how many bytes of them are in memory and how long each may take. */
export interface BodyReader {
  /**
   * Room is kept for what Content-Length announces. A body in chunks gets room for twice the bytes that have arrived.
   * If there is none, one body is given up: of the sender who has the most of them, the one that began first. So many
   * stalled uploads do not keep out a new one.
   * @throws SdsError `too_large`, without waiting for the rest; `unavailable` if the body was given up
   */
  read(request: Request, options: ReadOptions): Promise<Body>;
}

interface Arrival {
  sender: string;
  /** The room that is kept for it. */
  bytes: number;
  giveUp(reason: string): void;
}

/** @param limits for tests */
export function createBodyReader({ maxTotalBytes = MAX_TOTAL_BYTES, timeoutMs = TIMEOUT_MS } = {}): BodyReader {
  /** The bodies that are not complete, in the order in which they began. */
  const arriving = new Set<Arrival>();
  let total = 0;

  /** Keeps room for so many bytes of an arrival, which may lose its own. @throws SdsError `unavailable` */
  function keepRoom(arrival: Arrival, bytes: number): void {
    while (total + bytes - arrival.bytes > maxTotalBytes) {
      const stalled = oldestOfBusiestSender(arriving);
      if (stalled === undefined) throw unavailable(TOO_MANY);
      leave(stalled);
      stalled.giveUp(TOO_MANY);
      if (stalled === arrival) return;
    }
    total += bytes - arrival.bytes;
    arrival.bytes = bytes;
  }

  function leave(arrival: Arrival): void {
    arriving.delete(arrival);
    total -= arrival.bytes;
    arrival.bytes = 0;
  }

  async function streamed({ body }: Request, maxBytes: number, arrival: Arrival): Promise<Uint8Array> {
    const chunks: Uint8Array[] = [];
    let size = 0;
    for await (const chunk of body ?? []) {
      size += chunk.length;
      if (size > maxBytes) throw refusals.tooLarge(maxBytes);
      // Nobody waits for a body that was given up.
      if (!arriving.has(arrival)) break;
      if (size > arrival.bytes / 2) keepRoom(arrival, Math.min(2 * size, maxBytes) + OVERHEAD_BYTES);
      chunks.push(chunk);
    }
    return Buffer.concat(chunks);
  }

  /** The body is complete: it is worked on, and cannot be given up. */
  function finish(arrival: Arrival, bytes: Uint8Array<ArrayBuffer>): Body {
    arriving.delete(arrival);
    total -= arrival.bytes;
    let kept = bytes.length + OVERHEAD_BYTES;
    total += kept;
    arrival.bytes = 0;
    return {
      bytes,
      [Symbol.dispose]() {
        total -= kept;
        kept = 0;
        // The handler that waits for the answer still has this object.
        this.bytes = NO_BYTES;
      },
    };
  }

  return {
    async read(request, { maxBytes, sender }) {
      const announced = announcedBytes(request, maxBytes);
      const { promise, reject } = Promise.withResolvers<never>();
      const arrival: Arrival = { sender, bytes: 0, giveUp: (reason) => reject(unavailable(reason)) };
      keepRoom(arrival, (announced ?? Math.min(FIRST_ROOM_BYTES, maxBytes)) + OVERHEAD_BYTES);
      arriving.add(arrival);
      const timer = setTimeout(() => arrival.giveUp("The body took too long to arrive."), timeoutMs);
      try {
        const whole = announced === undefined ? streamed(request, maxBytes, arrival) : request.arrayBuffer();
        return finish(arrival, new Uint8Array(await Promise.race([whole, promise])));
      } finally {
        clearTimeout(timer);
        leave(arrival);
      }
    },
  };
}

/** The arrival that began first, of the sender who has the most. */
function oldestOfBusiestSender(arriving: ReadonlySet<Arrival>): Arrival | undefined {
  const counts = new Map<string, number>();
  for (const { sender } of arriving) counts.set(sender, (counts.get(sender) ?? 0) + 1);
  const most = Math.max(...counts.values());
  return [...arriving].find(({ sender }) => counts.get(sender) === most);
}

/**
 * The value of Content-Length; undefined for a body in chunks, and for a value that is not one number, such as "5, 5"
 * of a header that was sent twice (RFC 9110, 8.6). The bytes of such a body are counted as they arrive.
 * @throws SdsError `too_large`
 */
export function announcedBytes({ headers }: Request, maxBytes: number): number | undefined {
  const announced = headers.get("content-length");
  if (announced === null || !/^\d+$/.test(announced)) return undefined;
  if (Number(announced) > maxBytes) throw refusals.tooLarge(maxBytes);
  return Number(announced);
}

function unavailable(reason: string): SdsError {
  return new SdsError("unavailable", `${reason} It is safe to try again.`);
}

import { SdsError } from "../domain/error.ts";

/** The largest body of the intake or of a platform webhook. */
export const MAX_INBOUND_BYTES = 5 * 1024 * 1024;
/** Bytes of all bodies that arrive or are worked on: senders are not known before their bodies are complete. */
const MAX_TOTAL_BYTES = 64 * 1024 * 1024;
/** What a body takes beside its bytes. */
const OVERHEAD_BYTES = 1024;
/** A slower sender may try again. */
const TIMEOUT_MS = 30_000;

/** A whole body, as raw bytes, because signatures are over bytes. It counts against the limit until it is disposed. */
export interface Body extends Disposable {
  bytes: Uint8Array<ArrayBuffer>;
}

interface ReadOptions {
  maxBytes: number;
  /** Whose bodies are counted together, such as an address. */
  sender: string;
}

/** Reads bodies, and limits how many bytes of them are in memory and how long each may take. */
export interface BodyReader {
  /**
   * Room is kept for what Content-Length announces, or for `maxBytes`. If there is none, the body that arrives for the
   * longest is given up, of the sender who has the most of them: many stalled uploads do not keep out a new one.
   * @throws SdsError `too_large`, without waiting for the rest; `unavailable` if the body was given up
   */
  read(request: Request, options: ReadOptions): Promise<Body>;
}

interface Arrival {
  sender: string;
  bytes: number;
  giveUp(reason: string): void;
}

/** @param limits for tests */
export function createBodyReader({ maxTotalBytes = MAX_TOTAL_BYTES, timeoutMs = TIMEOUT_MS } = {}): BodyReader {
  /** The bodies that are not complete, in the order in which they began. */
  const arriving = new Set<Arrival>();
  let total = 0;

  function makeRoom(bytes: number): void {
    while (total + bytes > maxTotalBytes) {
      const stalled = longestOfMost(arriving);
      if (stalled === undefined) throw unavailable("Too many bodies are being read at once.");
      leave(stalled);
      stalled.giveUp("Too many bodies are being read at once.");
    }
    total += bytes;
  }

  function leave(arrival: Arrival): void {
    if (arriving.delete(arrival)) total -= arrival.bytes;
  }

  return {
    async read(request, { maxBytes, sender }) {
      const announced = announcedBytes(request, maxBytes);
      const bytes = (announced ?? maxBytes) + OVERHEAD_BYTES;
      makeRoom(bytes);
      const { promise, reject } = Promise.withResolvers<never>();
      const arrival: Arrival = { sender, bytes, giveUp: (reason) => reject(unavailable(reason)) };
      arriving.add(arrival);
      const timer = setTimeout(() => arrival.giveUp("The body took too long to arrive."), timeoutMs);
      try {
        const whole = announced === undefined ? streamed(request, maxBytes) : request.arrayBuffer();
        const body = new Uint8Array(await Promise.race([whole, promise]));
        // From now on it is worked on, and cannot be given up.
        arriving.delete(arrival);
        let kept = bytes;
        return {
          bytes: body,
          [Symbol.dispose]() {
            total -= kept;
            kept = 0;
          },
        };
      } finally {
        clearTimeout(timer);
        leave(arrival);
      }
    },
  };
}

/** The arrival that began first, of the sender who has the most. */
function longestOfMost(arriving: ReadonlySet<Arrival>): Arrival | undefined {
  const counts = new Map<string, number>();
  for (const { sender } of arriving) counts.set(sender, (counts.get(sender) ?? 0) + 1);
  const most = Math.max(...counts.values());
  return [...arriving].find(({ sender }) => counts.get(sender) === most);
}

/**
 * The value of Content-Length; undefined for a body in chunks.
 * @throws SdsError `too_large`
 */
export function announcedBytes({ headers }: Request, maxBytes: number): number | undefined {
  const announced = headers.get("content-length");
  if (announced === null) return undefined;
  if (Number(announced) > maxBytes) throw tooLarge(maxBytes);
  return Number(announced);
}

async function streamed({ body }: Request, maxBytes: number): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body ?? []) {
    size += chunk.length;
    if (size > maxBytes) throw tooLarge(maxBytes);
    chunks.push(chunk);
  }
  return new Uint8Array(Buffer.concat(chunks));
}

function tooLarge(maxBytes: number): SdsError {
  return new SdsError("too_large", `The body may have ${maxBytes} bytes at most.`);
}

function unavailable(reason: string): SdsError {
  return new SdsError("unavailable", `${reason} It is safe to try again.`);
}

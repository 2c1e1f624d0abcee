import { closeSync, openSync } from "node:fs";
import { connect, type Socket, type SocketHandler } from "bun";
import { codeOf, SdsError } from "../domain/error.ts";
import type { DescriptorReserve } from "../lib/descriptor-reserve.ts";
import { AnswerError, createAnswerReader } from "./answer-reader.ts";

export interface Target {
  address: string;
  port: number;
  /** What the TLS certificate must be for; undefined for plain http. */
  tlsHost?: string;
  /** The host is an address. TLS has no server name for it (RFC 6066, 3). */
  isAddress: boolean;
  /** Authorities to trust in place of the public ones, as PEM. */
  authorities?: string;
}

/** Lends descriptors, so that a connection can be opened although clients have taken all others. */
export type SocketReserve = Pick<DescriptorReserve, "withSpare" | "refill">;

const NO_RESERVE: SocketReserve = { withSpare: (open) => open(), refill: () => {} };

/** One connection for one request. Close it in any case. */
export interface Connection {
  /** Whether the system still waits for the address. A connection that waits stays open after `close`. */
  readonly isPending: boolean;
  /**
   * Sends the request, as soon as the connection is open and TLS has checked the certificate, and reads the answer.
   * @returns the status @throws an error with a code of `connectReason`
   */
  exchange(request: Uint8Array): Promise<number>;
  close(): void;
}

/**
 * Opens a connection. It reads no more than an answer reader wants and one read of the socket beyond it, so nobody can
 * keep it busy with an endless answer.
 *
 * `Bun.connect` costs half of what `fetch` costs. It has one trap: what waits for an address cannot be taken back, and
 * the system waits for two minutes. The caller limits how many such connections are left.
 * @param onSettled called once, when the address accepted the connection or failed to, even after `close`
 * @param reserve lends the descriptor
 */
export function openConnection(
  target: Target,
  onSettled: (error?: unknown) => void = () => {},
  reserve: SocketReserve = NO_RESERVE,
): Connection {
  const { promise: answered, resolve, reject } = Promise.withResolvers<number>();
  // Without a request nobody waits for the answer.
  answered.catch(() => undefined);
  const reader = createAnswerReader();
  let socket: Socket<Events> | undefined;
  let isPending = true;
  let isClosed = false;
  let mayWrite = false;
  /** What is still to be written. */
  let unwritten: Uint8Array | undefined;

  function close(): void {
    if (isClosed && socket === undefined) return;
    isClosed = true;
    const open = socket;
    socket = undefined;
    // Not `end`: with TLS it waits for the other side's goodbye, which may never come.
    open?.close();
    reserve.refill();
  }

  function fail(thrown: unknown): void {
    reject(thrown);
    close();
  }

  function write(): void {
    if (!mayWrite || unwritten === undefined || unwritten.length === 0) return;
    const written = socket?.write(unwritten) ?? 0;
    if (written > 0) unwritten = unwritten.subarray(written);
  }

  function read(bytes: Uint8Array): void {
    if (isClosed) return;
    try {
      if (!reader.read(bytes)) return;
      resolve(reader.status);
      close();
    } catch (thrown) {
      fail(thrown);
    }
  }

  function end(error?: Error): void {
    if (isClosed) return;
    try {
      if (error !== undefined && error !== null) throw error;
      if (!mayWrite) throw new AnswerError("ConnectionClosed");
      reader.end();
      resolve(reader.status);
      close();
    } catch (thrown) {
      fail(thrown);
    }
  }

  function closed(error?: Error): void {
    reserve.refill();
    end(error);
  }

  function open(accepted: Socket<Events>): void {
    socket = accepted;
    isPending = false;
    // Nobody wants it any more.
    if (isClosed) close();
    mayWrite = target.tlsHost === undefined;
    onSettled();
    write();
  }

  function handshake(isTrusted: boolean, refusal: Error | null): void {
    mayWrite = isTrusted;
    if (isTrusted) write();
    else fail(refusal ?? new AnswerError("ConnectionClosed"));
  }

  reserve
    .withSpare(() => connectSocket(target, { open, handshake, read, write, end, closed, fail }))
    .catch((refusal: unknown) => {
      const error = asOurFault(refusal, reserve);
      isPending = false;
      fail(error);
      onSettled(error);
    });

  return {
    get isPending() {
      return isPending;
    },
    exchange(request) {
      unwritten = request;
      write();
      return answered;
    },
    close,
  };
}

/** What happens to one socket. */
interface Events {
  open(socket: Socket<Events>): void;
  handshake(isTrusted: boolean, refusal: Error | null): void;
  read(bytes: Uint8Array): void;
  write(): void;
  end(): void;
  closed(error?: Error): void;
  fail(thrown: unknown): void;
}

/** The same functions for all sockets: others for each one would have to be known to the garbage collector. */
const HANDLERS: SocketHandler<Events> = {
  open: (socket) => socket.data.open(socket),
  handshake: ({ data }, isTrusted, refusal) => data.handshake(isTrusted, refusal),
  data: ({ data }, bytes) => data.read(bytes),
  drain: ({ data }) => data.write(),
  end: ({ data }) => data.end(),
  close: ({ data }, error) => data.closed(error),
  error: ({ data }, thrown) => data.fail(thrown),
  // Without it, Bun would report the rejected promise a second time.
  connectError: () => undefined,
};

async function connectSocket(target: Target, events: Events): Promise<void> {
  const { address, port, tlsHost, isAddress, authorities } = target;
  const destination = { hostname: address, port, data: events, socket: HANDLERS };
  if (tlsHost === undefined) await connect(destination);
  else {
    // `tls` is never empty: Bun takes an empty object for no TLS.
    const tls = { rejectUnauthorized: true, ...(!isAddress && { serverName: tlsHost }) };
    await connect({ ...destination, tls: authorities === undefined ? tls : { ...tls, ca: authorities } });
  }
}

/**
 * Bun says "refused" too if this process may not open any more sockets. Then no endpoint is to blame.
 * @returns the error, or an SdsError `failed` in its place
 */
export function asOurFault(thrown: unknown, reserve: SocketReserve = NO_RESERVE): unknown {
  try {
    reserve.withSpare(() => closeSync(openSync("/dev/null", "r")));
    return thrown;
  } catch (cause) {
    return new SdsError("failed", `no socket can be opened (${codeOf(cause)})`, { cause });
  }
}

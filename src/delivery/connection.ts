import { closeSync, openSync } from "node:fs";
import { connect, type Socket, type SocketHandler, type TCPSocketConnectOptions } from "bun";
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
  /** Resolves when the address accepted the connection. Rejects with the code of the failure. */
  readonly opened: Promise<void>;
  /** Whether the system still waits for the address. A connection that waits stays open after `close`. */
  readonly isPending: boolean;
  /** Settles when the system no longer waits for the address, even after `close`. Never rejects. */
  readonly settled: Promise<void>;
  /**
   * Sends the request, once TLS has checked the certificate, and reads the answer.
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
 */
export function openConnection(
  { address, port, tlsHost, isAddress, authorities }: Target,
  reserve: SocketReserve = NO_RESERVE,
): Connection {
  const opened = Promise.withResolvers<void>();
  const settled = Promise.withResolvers<void>();
  const answered = Promise.withResolvers<number>();
  for (const { promise } of [opened, answered]) promise.catch(() => undefined);
  const reader = createAnswerReader();
  let socket: Socket | undefined;
  let isPending = true;
  let isClosed = false;
  let mayWrite = false;
  /** What is still to be written. */
  let unwritten: Uint8Array | undefined;

  function settle(): void {
    isPending = false;
    settled.resolve();
  }

  function close(): void {
    isClosed = true;
    // The first says goodbye. The second makes sure that nothing waits for the other side.
    socket?.end();
    socket?.terminate();
    reserve.refill();
  }

  function fail(thrown: unknown): void {
    opened.reject(thrown);
    answered.reject(thrown);
    close();
  }

  function write(): void {
    if (isClosed || !mayWrite || unwritten === undefined || unwritten.length === 0) return;
    const written = socket?.write(unwritten) ?? 0;
    if (written > 0) unwritten = unwritten.subarray(written);
  }

  function read(bytes: Uint8Array): void {
    if (isClosed) return;
    try {
      if (!reader.read(bytes)) return;
      answered.resolve(reader.status);
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
      answered.resolve(reader.status);
      close();
    } catch (thrown) {
      fail(thrown);
    }
  }

  function open(accepted: Socket): void {
    socket = accepted;
    settle();
    // Nobody wants it any more.
    if (isClosed) close();
    mayWrite = tlsHost === undefined;
    opened.resolve();
    write();
  }

  function refuse(thrown: unknown): void {
    settle();
    fail(thrown);
  }

  function handshake(_socket: Socket, isTrusted: boolean, refusal: Error | null): void {
    mayWrite = isTrusted;
    if (isTrusted) write();
    else fail(refusal ?? new AnswerError("ConnectionClosed"));
  }

  const handlers: SocketHandler = {
    open,
    handshake,
    data: (_socket, bytes) => read(bytes),
    drain: write,
    end: () => end(),
    close(_socket, error) {
      reserve.refill();
      end(error);
    },
    error: (_socket, thrown) => fail(thrown),
    // Without it, Bun would report the rejected promise a second time.
    connectError: () => undefined,
  };
  const tls = {
    // Never empty: Bun takes an empty object for no TLS.
    rejectUnauthorized: true,
    ...(!isAddress && { serverName: tlsHost }),
    ...(authorities !== undefined && { ca: authorities }),
  };
  const options = { hostname: address, port, ...(tlsHost !== undefined && { tls }), socket: handlers };
  Promise.try(() => reserve.withSpare(() => connect(options as TCPSocketConnectOptions))).catch((thrown: unknown) =>
    refuse(asOurFault(thrown, reserve)),
  );

  return {
    opened: opened.promise,
    settled: settled.promise,
    get isPending() {
      return isPending;
    },
    exchange(request) {
      unwritten = request;
      write();
      return answered.promise;
    },
    close,
  };
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

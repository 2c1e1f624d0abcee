import { closeSync, openSync } from "node:fs";
import { connect, type Socket, type SocketHandler } from "bun";
import { codeOf, SdsError } from "../domain/error.ts";
import type { DescriptorReserve } from "../lib/descriptor-reserve.ts";
import { AnswerError, type AnswerReader, createAnswerReader } from "./answer-reader.ts";

export interface Target {
  address: string;
  port: number;
  /** The name or address in the TLS certificate; undefined for plain http. */
  tlsHost?: string;
  /** Whether the host is an IP address. TLS then sends no server name (RFC 6066, 3). */
  isAddress: boolean;
  /** Certificate authorities, as PEM, that replace the public authorities. */
  authorities?: string;
}

/** Lends file descriptors, so that a connection can be opened even if clients use all other descriptors. */
export type SocketReserve = Pick<DescriptorReserve, "withSpare" | "refill">;

const NO_RESERVE: SocketReserve = { withSpare: (open) => open(), refill: () => {} };

type HttpAnswer = Pick<AnswerReader, "status" | "body">;

/** One connection for one request. Always close it, also after an error. */
export interface HttpConnection {
  /** Whether the TCP handshake is still in progress. `close` takes effect only after the handshake. */
  readonly isPending: boolean;
  /**
   * Waits for the connection and TLS. Then sends the request and reads the answer.
   * @param isOver checked before the first byte; true cancels the request
   * @throws an error with a code that `connectReason` explains
   */
  exchange(request: Uint8Array, isOver?: () => boolean): Promise<HttpAnswer>;
  close(): void;
}

/**
 * Opens a connection. The cost of an answer is bounded: at most one read of the socket follows after the answer is
 * complete or too long. `fetch` has no such limit: it reads all interim answers, chunk extensions and trailers.
 *
 * Danger: `Bun.connect` cannot be canceled during the TCP handshake, and a silent address delays the handshake for two
 * minutes. So the caller limits how many closed connections are still in their handshake.
 * @param onSettled called once, when the address has accepted the connection or the connection has failed, even after
 *   `close`
 * @param reserve lends the file descriptor
 */
export function openConnection(
  target: Target,
  onSettled: (error?: unknown) => void = () => {},
  reserve: SocketReserve = NO_RESERVE,
): HttpConnection {
  const { promise: answered, resolve, reject } = Promise.withResolvers<HttpAnswer>();
  // Before a request is sent, nothing awaits this promise. Its error must not become an unhandled rejection.
  answered.catch(() => undefined);
  const state: ConnectionState = {
    reader: createAnswerReader(),
    isPending: true,
    isClosed: false,
    isPlain: target.tlsHost === undefined,
    mayWrite: false,
    hasWritten: false,
    isOver: () => false,
    resolve,
    reject,
    onSettled,
    reserve,
  };
  reserve
    .withSpare(() => connectSocket(target, state))
    .catch((refusal: unknown) => {
      const error = asOurFault(refusal, reserve);
      state.isPending = false;
      fail(state, error);
      onSettled(error);
    });
  return {
    get isPending() {
      return state.isPending;
    },
    exchange(request, isOver = () => false) {
      state.unwritten = request;
      state.isOver = isOver;
      write(state);
      return answered;
    },
    close: () => close(state),
  };
}

interface ConnectionState {
  reader: AnswerReader;
  socket?: Socket<ConnectionState> | undefined;
  isPending: boolean;
  isClosed: boolean;
  /** Whether the connection uses no TLS. */
  isPlain: boolean;
  mayWrite: boolean;
  hasWritten: boolean;
  isOver(): boolean;
  /** The bytes that are not written yet. */
  unwritten?: Uint8Array;
  resolve(answer: HttpAnswer): void;
  reject(thrown: unknown): void;
  onSettled(error?: unknown): void;
  reserve: SocketReserve;
}

/** All sockets share these functions, so that the garbage collector has less work. */
const HANDLERS: SocketHandler<ConnectionState> = {
  open: (socket) => open(socket.data, socket),
  handshake: ({ data }, isTrusted, refusal) => handshake(data, isTrusted, refusal),
  data: ({ data }, bytes) => read(data, bytes),
  drain: ({ data }) => write(data),
  end: ({ data }) => end(data),
  close({ data }, error) {
    data.reserve.refill();
    end(data, error);
  },
  error: ({ data }, thrown) => fail(data, thrown),
  // Without this handler, Bun would report the rejected promise a second time.
  connectError: () => undefined,
};

function open(state: ConnectionState, accepted: Socket<ConnectionState>): void {
  state.socket = accepted;
  state.isPending = false;
  // The caller closed this connection while it was pending.
  if (state.isClosed) close(state);
  state.mayWrite = state.isPlain;
  state.onSettled();
  write(state);
}

function handshake(state: ConnectionState, isTrusted: boolean, refusal: Error | null): void {
  state.mayWrite = isTrusted;
  if (isTrusted) write(state);
  else fail(state, refusal ?? new AnswerError("ConnectionClosed"));
}

function write(state: ConnectionState): void {
  const { unwritten, socket, mayWrite } = state;
  if (!mayWrite || unwritten === undefined || unwritten.length === 0) return;
  if (!state.hasWritten && state.isOver()) {
    fail(state, new Error("the time of the attempt is over"));
    return;
  }
  state.hasWritten = true;
  const written = socket?.write(unwritten) ?? 0;
  if (written > 0) state.unwritten = unwritten.subarray(written);
}

function read(state: ConnectionState, bytes: Buffer): void {
  if (state.isClosed) return;
  try {
    if (state.reader.read(bytes)) succeed(state);
  } catch (thrown) {
    fail(state, thrown);
  }
}

function end(state: ConnectionState, error?: Error): void {
  if (state.isClosed) return;
  try {
    if (error !== undefined && error !== null) throw error;
    if (!state.mayWrite) throw new AnswerError("ConnectionClosed");
    state.reader.end();
    succeed(state);
  } catch (thrown) {
    fail(state, thrown);
  }
}

function succeed(state: ConnectionState): void {
  const { status, body } = state.reader;
  state.resolve({ status, body });
  close(state);
}

function fail(state: ConnectionState, thrown: unknown): void {
  state.reject(thrown);
  close(state);
}

function close(state: ConnectionState): void {
  const { socket } = state;
  if (state.isClosed && socket === undefined) return;
  state.isClosed = true;
  state.socket = undefined;
  // Not `end`: with TLS, `end` waits for the other side's close_notify, which may never come.
  socket?.close();
  state.reserve.refill();
}

async function connectSocket(target: Target, state: ConnectionState): Promise<void> {
  const { address, port, tlsHost, isAddress, authorities } = target;
  const destination = { hostname: address, port, data: state, socket: HANDLERS };
  if (tlsHost === undefined) await connect(destination);
  else {
    // `tls` must never be empty: for an empty object, Bun connects without TLS.
    const tls = { rejectUnauthorized: true, ...(!isAddress && { serverName: tlsHost }) };
    await connect({ ...destination, tls: authorities === undefined ? tls : { ...tls, ca: authorities } });
  }
}

/**
 * Checks whether an error of a connection is our own fault. Bun also reports "refused" if this process cannot open more
 * sockets.
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

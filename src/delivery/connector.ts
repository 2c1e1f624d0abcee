import { connect as connectTcp } from "node:net";
import { SdsError } from "../domain/error.ts";
import { asOurFault, type HttpConnection, openConnection, type SocketReserve, type Target } from "./connection.ts";

/** The target of a connection. The caller has checked all its addresses. */
export interface Destination extends Omit<Target, "address" | "authorities"> {
  host: string;
  addresses: readonly string[];
}

/**
 * Connects to the first address that accepts a connection (RFC 8305). It may try several addresses, but the request is
 * sent only once. With a single address, the connection may still be pending. Rejects with the error of the address
 * that failed last, or with the reason of the signal. Rejects with an SdsError `failed` if this process cannot open
 * sockets.
 */
export type Connect = (destination: Destination, signal: AbortSignal) => Promise<HttpConnection>;

/** An attempt to connect to one address. */
interface Try {
  opened: Promise<HttpConnection>;
  cancel(): void;
}

/** Maximum number of addresses of a name to try. */
const MAX_ADDRESSES = 4;
/** After this time without a connection, the next address is tried too. RFC 8305 recommends this delay. */
const NEXT_ADDRESS_AFTER_MS = 250;
/**
 * Limit for abandoned connections. A connection is abandoned if it was closed while its TCP handshake still waited for
 * the address. At the limit, each address is checked first, with a connection that can be canceled. So each attempt
 * adds at most one abandoned connection above the limit.
 */
const MAX_ABANDONED = 64;
/** Maximum number of names whose good address is remembered. */
const MAX_REMEMBERED = 10_000;

interface ConnectorOptions {
  /** Certificate authorities, as PEM, that replace the public authorities. */
  authorities?: string;
  /** Lends file descriptors that clients cannot take. */
  reserve?: SocketReserve;
}

export function createConnector(options: ConnectorOptions = {}): Connect {
  const opener = createOpener(options);
  /** The address that accepted the last connection, by name and port. Only for names with several addresses. */
  const accepted = new Map<string, string>();

  function remember(name: string, address: string): void {
    accepted.delete(name);
    accepted.set(name, address);
    const [oldest] = accepted.keys();
    if (accepted.size > MAX_REMEMBERED && oldest !== undefined) accepted.delete(oldest);
  }

  return async ({ host, addresses, ...target }, signal) => {
    const [only = ""] = addresses;
    if (addresses.length === 1 && opener.hasRoom()) return opener.open({ ...target, address: only });
    const name = `${host} ${target.port}`;
    const known = accepted.get(name);
    accepted.delete(name);
    const ordered = inOrder(addresses, known);
    const tries = ordered.map((address) => () => {
      const isTrusted = address === known && opener.hasRoom();
      return isTrusted ? openFirst(opener, { ...target, address }) : reachAndOpen(opener, { ...target, address });
    });
    const { connection, index } = await firstOpened(tries, signal);
    if (addresses.length > 1) remember(name, ordered[index] ?? "");
    return connection;
  };
}

type Opener = ReturnType<typeof createOpener>;

/** Opens connections, and counts abandoned connections (see `openConnection`). */
function createOpener({ authorities, reserve }: ConnectorOptions) {
  let abandoned = 0;
  return {
    hasRoom: () => abandoned < MAX_ABANDONED,
    /** Opens the real connection, which cannot be canceled: see `openConnection`. */
    open(target: Target, onSettled?: (error?: unknown) => void): HttpConnection {
      let isAbandoned = false;
      const settle = (error?: unknown) => {
        if (isAbandoned) abandoned -= 1;
        onSettled?.(error);
      };
      const trusting = authorities === undefined ? target : { ...target, authorities };
      const connection = openConnection(trusting, settle, reserve);
      return {
        exchange: connection.exchange,
        get isPending() {
          return connection.isPending;
        },
        close() {
          connection.close();
          if (isAbandoned || !connection.isPending) return;
          isAbandoned = true;
          abandoned += 1;
        },
      };
    },
  };
}

function openFirst({ open }: Opener, target: Target): Try {
  const { promise, resolve, reject } = Promise.withResolvers<HttpConnection>();
  const connection = open(target, (error) => (error === undefined ? resolve(connection) : reject(error)));
  return { opened: promise, cancel: connection.close };
}

/**
 * Checks with a cancelable connection whether the address accepts connections. Then opens the real connection. If no
 * descriptor is free for the check, skips the check, because the reserve only serves the real connection.
 */
function reachAndOpen(opener: Opener, target: Target): Try {
  const reaching = reach(target);
  let opening: Try | undefined;
  const openReal = () => {
    opening = openFirst(opener, target);
    return opening.opened;
  };
  const opened = reaching.opened.then(openReal, (thrown: unknown) => {
    if (thrown instanceof SdsError) return openReal();
    throw thrown;
  });
  return {
    opened,
    cancel() {
      reaching.cancel();
      opening?.cancel();
    },
  };
}

/** Sorts addresses: the known good address first, then IPv6 and IPv4 alternately, in the order of the look-up. */
export function inOrder(addresses: readonly string[], known?: string): string[] {
  const family = (address: string) => address.includes(":");
  const [first = ""] = addresses;
  const preferred = addresses.filter((address) => family(address) === family(first));
  const others = addresses.filter((address) => family(address) !== family(first));
  const turns = preferred.length > others.length ? preferred : others;
  const ordered = turns
    .flatMap((_, index) => [preferred[index], others[index]])
    .filter((address) => address !== undefined);
  const good = ordered.filter((address) => address === known);
  return [...good, ...ordered.filter((address) => address !== known)].slice(0, MAX_ADDRESSES);
}

/** Opens a TCP connection and closes it at once. It can be canceled before the address accepts. */
function reach({ address, port }: Target): { opened: Promise<void>; cancel(): void } {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const socket = connectTcp({ host: address, port });
  socket.once("connect", () => {
    socket.destroy();
    resolve();
  });
  // The listener is never removed: an error without a listener would end the program.
  socket.on("error", (error) => reject(asOurFault(error)));
  return { opened: promise, cancel: () => socket.destroy() };
}

/**
 * Begins the next connection attempt when an attempt fails, or after NEXT_ADDRESS_AFTER_MS. Earlier attempts go on
 * meanwhile. The first connection cancels the other attempts.
 */
function firstOpened(
  tries: readonly (() => Try)[],
  signal: AbortSignal,
): Promise<{ connection: HttpConnection; index: number }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ connection: HttpConnection; index: number }>();
  const begun: Try[] = [];
  let failures = 0;
  let isOver = false;
  let timer: ReturnType<typeof setTimeout> | undefined;

  function finish(winner?: number): void {
    isOver = true;
    clearTimeout(timer);
    signal.removeEventListener("abort", abort);
    for (const [index, each] of begun.entries()) if (index !== winner) each.cancel();
  }

  function abort(): void {
    finish();
    reject(signal.reason);
  }

  function fail(thrown: unknown): void {
    failures += 1;
    if (isOver) return;
    if (failures < tries.length && !(thrown instanceof SdsError)) beginNext();
    else {
      finish();
      reject(thrown);
    }
  }

  function beginNext(): void {
    clearTimeout(timer);
    const index = begun.length;
    const each = tries[index]?.();
    if (each === undefined) return;
    begun.push(each);
    each.opened.then((connection) => {
      if (isOver) return;
      finish(index);
      resolve({ connection, index });
    }, fail);
    if (begun.length < tries.length) timer = setTimeout(beginNext, NEXT_ADDRESS_AFTER_MS);
  }

  signal.addEventListener("abort", abort);
  if (signal.aborted) abort();
  else beginNext();
  return promise;
}

import { connect, type Socket } from "node:net";

export interface Answer {
  status: number;
  /** The headers by lower-case name. The values of a repeated header are joined by commas. */
  headers: Map<string, string>;
  body: string;
}

/** Why there is no answer. */
type NoAnswer = "closed" | "late";

/** A connection that sends bytes as they are, because client libraries would change them. */
export interface Wire {
  /** @param headOnly the answer has no body, whatever its headers say. */
  exchange(bytes: Buffer, headOnly: boolean, timeoutMs: number): Promise<Answer | NoAnswer>;
  close(): void;
}

/** Makes a connection that is opened again after every close. */
export function createWire(url: string): Wire {
  const { hostname, port } = new URL(url);
  let socket: Socket | undefined;

  function close(): void {
    socket?.destroy();
    socket = undefined;
  }

  function exchange(bytes: Buffer, headOnly: boolean, timeoutMs: number): Promise<Answer | NoAnswer> {
    const { promise, resolve } = Promise.withResolvers<Answer | NoAnswer>();
    const used = socket ?? connect({ host: hostname, port: Number(port), allowHalfOpen: true });
    socket = used;
    let received = Buffer.alloc(0);

    function end(result: Answer | NoAnswer): void {
      clearTimeout(timer);
      used.removeAllListeners();
      used.on("error", () => undefined);
      if (typeof result === "string" || result.headers.get("connection") === "close") close();
      resolve(result);
    }

    const timer = setTimeout(() => end("late"), timeoutMs);
    used.on("data", (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
      const answer = answerIn(received, headOnly);
      if (answer !== undefined) end(answer);
    });
    used.on("error", () => end("closed"));
    used.on("end", () => end("closed"));
    used.write(bytes);
    return promise;
  }

  return { exchange, close };
}

/** Reads an HTTP/1.1 answer. Leaves out interim answers (1xx). @returns undefined until the answer is complete */
function answerIn(bytes: Buffer, headOnly: boolean): Answer | undefined {
  const end = bytes.indexOf("\r\n\r\n");
  if (end < 0) return undefined;
  const [first = "", ...lines] = bytes.toString("latin1", 0, end).split("\r\n");
  const status = Number(first.split(" ")[1]);
  if (status < 200) return answerIn(bytes.subarray(end + 4), headOnly);
  const headers = new Map<string, string>();
  for (const line of lines) {
    const name = line.slice(0, line.indexOf(":")).toLowerCase();
    const value = line.slice(line.indexOf(":") + 1).trim();
    headers.set(name, headers.has(name) ? `${headers.get(name)}, ${value}` : value);
  }
  const body = headOnly || status === 204 || status === 304 ? "" : bodyIn(bytes.subarray(end + 4), headers);
  return body === undefined ? undefined : { status, headers, body };
}

function bodyIn(bytes: Buffer, headers: Map<string, string>): string | undefined {
  if (headers.get("transfer-encoding") === "chunked") return chunksIn(bytes);
  const length = Number(headers.get("content-length") ?? 0);
  return bytes.length < length ? undefined : bytes.toString("utf8", 0, length);
}

function chunksIn(bytes: Buffer): string | undefined {
  const chunks: Buffer[] = [];
  for (let at = 0; ; ) {
    const lineEnd = bytes.indexOf("\r\n", at);
    if (lineEnd < 0) return undefined;
    const length = Number.parseInt(bytes.toString("latin1", at, lineEnd), 16);
    const next = lineEnd + 2 + length + 2;
    if (bytes.length < next) return undefined;
    if (length === 0) return Buffer.concat(chunks).toString();
    chunks.push(bytes.subarray(lineEnd + 2, next - 2));
    at = next;
  }
}

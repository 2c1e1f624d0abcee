import { closeSync, openSync, readSync, rmSync, writeSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventually } from "../eventually.ts";

/** How downloads go. A test can change it at any time. */
export interface DownloadBehaviour {
  /** Status to answer instead of the file, such as 403. */
  status: number | null;
  /** How many of the next downloads are cut, and after how many bytes. */
  cuts: { downloads: number; afterBytes: number };
  bytesPerSecond: number | null;
  /** The position in a file at which downloads wait until a test changes this value; null: downloads do not wait. */
  holdAt: number | null;
  /** Whether the host ignores ranges and sends the whole file. */
  ignoresRanges: boolean;
}

export interface BulkFile {
  readonly key: string;
  readonly size: number;
  readonly descriptor: number;
}

interface FileWriter {
  write: (text: string) => Promise<void>;
  /** A second call returns the same file. */
  close: () => Promise<BulkFile>;
}

const CHUNK_BYTES = 1 << 16;
const STEPS_PER_SECOND = 20;

/**
 * The host from which results are downloaded. Its URLs need no token. The results are open files, because they are
 * too large for memory. Each file is deleted at once, so it disappears with the process.
 */
export class FileHost {
  readonly behaviour: DownloadBehaviour = {
    status: null,
    cuts: { downloads: 0, afterBytes: 0 },
    bytesPerSecond: null,
    holdAt: null,
    ignoresRanges: false,
  };
  /** The requests: their range, and the number of bytes that were sent. */
  readonly downloads: { range: string | null; bytes: number }[] = [];
  private readonly files = new Map<string, BulkFile>();
  private readonly server: Server;
  private readonly unknown: (what: string) => void;

  constructor(unknown: (what: string) => void) {
    this.unknown = unknown;
    this.server = createServer((request, response) => {
      this.serve(request, response).catch(() => response.destroy());
    });
  }

  async start(): Promise<void> {
    await new Promise<void>((listening) => this.server.listen(0, "127.0.0.1", listening));
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((closed) => this.server.close(closed));
    for (const file of this.files.values()) this.remove(file);
  }

  create(): FileWriter {
    const key = crypto.randomUUID();
    const path = join(tmpdir(), `bulk-${key}`);
    const descriptor = openSync(path, "wx+", 0o600);
    rmSync(path);
    let size = 0;
    let pending: string[] = [];
    let pendingLength = 0;
    const flush = () => {
      size += writeSync(descriptor, Buffer.from(pending.join("")), 0, null, size);
      pending = [];
      pendingLength = 0;
    };
    return {
      write: async (text) => {
        pending.push(text);
        pendingLength += text.length;
        if (pendingLength > CHUNK_BYTES) flush();
      },
      close: async () => {
        if (pending.length > 0) flush();
        const file = this.files.get(key) ?? { key, size, descriptor };
        this.files.set(key, file);
        return file;
      },
    };
  }

  remove(file: BulkFile): void {
    if (this.files.delete(file.key)) closeSync(file.descriptor);
  }

  urlOf({ key }: BulkFile): string {
    const address = this.server.address();
    if (address === null || typeof address === "string") throw new Error("the file host does not listen");
    return `http://127.0.0.1:${address.port}/bulk/${key}.jsonl?signature=${key}`;
  }

  private async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { behaviour } = this;
    if (request.headers["x-shopify-access-token"] !== undefined)
      this.unknown("an access token was sent to the host of the files");
    const { pathname, searchParams } = new URL(request.url ?? "", "http://files");
    const file = this.files.get(/^\/bulk\/([\w-]+)\.jsonl$/.exec(pathname)?.[1] ?? "");
    const log = { range: request.headers.range ?? null, bytes: 0 };
    this.downloads.push(log);
    if (behaviour.status !== null) return void response.writeHead(behaviour.status).end("<Error/>");
    if (file === undefined) return void response.writeHead(404).end("<Error><Code>NoSuchKey</Code></Error>");
    if (searchParams.get("signature") !== file.key) return void response.writeHead(403).end("<Error/>");
    const range = behaviour.ignoresRanges ? undefined : readRange(request.headers.range, file.size);
    if (range === "unsatisfiable")
      return void response.writeHead(416, { "Content-Range": `bytes */${file.size}` }).end();
    const { from, to } = range ?? { from: 0, to: file.size };
    response.writeHead(range === undefined ? 200 : 206, {
      "Content-Type": "application/jsonl",
      "Content-Length": String(to - from),
      "Accept-Ranges": "bytes",
      ETag: `"${file.key}"`,
      ...(range === undefined ? {} : { "Content-Range": `bytes ${from}-${to - 1}/${file.size}` }),
    });
    const isCut = behaviour.cuts.downloads > 0;
    if (isCut) behaviour.cuts.downloads--;
    const end = isCut ? Math.min(to, from + behaviour.cuts.afterBytes) : to;
    await this.sendPart(file, from, end, response, log);
    if (isCut) request.socket.destroy();
    else response.end();
  }

  private async sendPart(
    file: BulkFile,
    from: number,
    end: number,
    response: ServerResponse,
    log: { bytes: number },
  ): Promise<void> {
    const { bytesPerSecond } = this.behaviour;
    const most = bytesPerSecond === null ? CHUNK_BYTES : Math.max(1, Math.floor(bytesPerSecond / STEPS_PER_SECOND));
    for (let position = from; position < end; ) {
      await eventually(() => position < (this.behaviour.holdAt ?? end) || response.destroyed);
      const chunk = Buffer.alloc(Math.min(most, end - position));
      readSync(file.descriptor, chunk, 0, chunk.length, position);
      await new Promise<void>((sent, failed) => response.write(chunk, (error) => (error ? failed(error) : sent())));
      position += chunk.length;
      log.bytes += chunk.length;
      if (bytesPerSecond !== null) await Bun.sleep(1000 / STEPS_PER_SECOND);
    }
  }
}

/** Reads `bytes=5-` and `bytes=5-9`. In the result, `to` is exclusive. Other forms are ignored, as HTTP allows. */
function readRange(
  header: string | undefined,
  size: number,
): { from: number; to: number } | "unsatisfiable" | undefined {
  const [, start, last] = /^bytes=(\d+)-(\d*)$/.exec(header ?? "") ?? [];
  if (start === undefined) return undefined;
  const from = Number(start);
  if (from >= size) return "unsatisfiable";
  return { from, to: last === undefined || last === "" ? size : Math.min(size, Number(last) + 1) };
}

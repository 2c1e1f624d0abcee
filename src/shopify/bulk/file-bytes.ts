import { connectReason } from "../../lib/networks.ts";
import type { Sleep } from "../../lib/waits.ts";

/** Thrown if a bulk operation gives no complete file. The load then reads the same data page by page. */
export class BulkFailure extends Error {
  override readonly name = "BulkFailure";
}

export interface FileServices {
  fetch: typeof globalThis.fetch;
  sleep: Sleep;
  /** Whether the address may begin with http://, for test platforms. */
  allowHttp: boolean;
  /** A download fails after this time without a byte. */
  idleTimeoutMs?: number;
}

/** The address of a file. The address expires, so the reader asks for a new one when the host refuses it. */
export interface FileAddress {
  url: string;
  /** undefined if the platform does not name the size. */
  byteCount: number | undefined;
}

const IDLE_TIMEOUT_MS = 60_000;
/** Maximum number of failures in a row. Each received byte resets the count. */
const MAX_FAILURES = 5;
const FIRST_WAIT_MS = 1_000;
/** Maximum size of a file, several times the size for the largest shop. A wrong file must not fill the disk. */
const MAX_FILE_BYTES = 64 * 1024 ** 3;

/** A failed download. A retry may work. */
class DownloadError extends Error {
  /** Whether the host refused the address. */
  readonly refused: boolean;

  constructor(message: string, refused = false) {
    super(message);
    this.refused = refused;
  }
}

/** Reads a file from byte `from`, and continues interrupted downloads. @throws BulkFailure; errors of `addressOf` */
export async function* readFileBytes(
  dependencies: FileServices,
  addressOf: () => Promise<FileAddress>,
  from: number,
): AsyncGenerator<Uint8Array> {
  let address = await addressOf();
  let offset = from;
  for (let failures = 0; ; ) {
    try {
      for await (const chunk of download(dependencies, address, offset)) {
        offset += chunk.length;
        failures = 0;
        yield chunk;
      }
      return;
    } catch (thrown) {
      if (!(thrown instanceof DownloadError)) throw thrown;
      failures += 1;
      if (failures > MAX_FAILURES) throw new BulkFailure(thrown.message);
      await dependencies.sleep(FIRST_WAIT_MS * 2 ** (failures - 1));
      if (thrown.refused) address = await addressOf();
    }
  }
}

/** Downloads a file from byte `offset`. @throws DownloadError; BulkFailure if a retry does not help */
async function* download(
  { fetch, allowHttp, idleTimeoutMs = IDLE_TIMEOUT_MS }: FileServices,
  { url, byteCount }: FileAddress,
  offset: number,
): AsyncGenerator<Uint8Array> {
  const idle = new AbortController();
  const timer = setTimeout(() => idle.abort(), idleTimeoutMs);
  try {
    const response = await request(fetch, checkedUrl(url, allowHttp), offset, idle.signal);
    const { body, begin, end: sentEnd } = response === undefined ? emptyPart(offset) : startOf(response, offset);
    // The platform and the host may name different sizes. A download that ends before the larger size has lost data.
    const end = Math.max(byteCount ?? 0, sentEnd ?? 0);
    if (Math.max(begin, end) > MAX_FILE_BYTES) throw new BulkFailure("the file is too large");
    let position = begin;
    for await (const chunk of body) {
      timer.refresh();
      // A host that ignores the range sends the whole file, so the bytes before `offset` are dropped.
      const unread = chunk.subarray(Math.max(0, offset - position));
      position += chunk.length;
      if (position > MAX_FILE_BYTES) throw new BulkFailure("the file is too large");
      if (unread.length > 0) yield unread;
      // Restarts the timer. Otherwise the time that the caller took for the chunk would count as idle time.
      timer.refresh();
    }
    if (position < end) throw new DownloadError("the download of the file was interrupted");
  } catch (thrown) {
    if (thrown instanceof DownloadError || thrown instanceof BulkFailure) throw thrown;
    if (idle.signal.aborted) throw new DownloadError("the host of the file sends nothing");
    throw new DownloadError(`the download of the file failed: ${connectReason(thrown)}`);
  } finally {
    clearTimeout(timer);
    idle.abort();
  }
}

function checkedUrl(text: string, allowHttp: boolean): string {
  const url = URL.parse(text);
  const isAllowed = url?.protocol === "https:" || (allowHttp && url?.protocol === "http:");
  if (url === null || !isAllowed) throw new BulkFailure("the address of the file does not begin with https://");
  return url.href;
}

/** Requests the rest of a file. The file's host must not get the shop's token. @returns undefined if no byte is left */
async function request(
  fetch: typeof globalThis.fetch,
  url: string,
  offset: number,
  signal: AbortSignal,
): Promise<Response | undefined> {
  const options: BunFetchRequestInit = {
    headers: { Range: `bytes=${offset}-`, "Accept-Encoding": "identity", "User-Agent": "sds" },
    redirect: "manual",
    proxy: false,
    decompress: false,
    signal,
  };
  const response = await fetch(url, options);
  const { status } = response;
  if (status === 200 || status === 206) return response;
  const size = /^bytes \*\/(\d+)$/.exec(response.headers.get("content-range") ?? "")?.[1];
  if (status === 416 && size === String(offset)) return undefined;
  throw new DownloadError(`the host of the file answered HTTP ${status}`, status < 500 && status !== 429);
}

/** A response's body, and where it begins and ends in the file. `end` is undefined if the host does not report it. */
interface FilePart {
  body: AsyncIterable<Uint8Array>;
  begin: number;
  end: number | undefined;
}

function emptyPart(offset: number): FilePart {
  return { body: new ReadableStream({ start: (controller) => controller.close() }), begin: offset, end: offset };
}

function startOf({ status, headers, body }: Response, offset: number): FilePart {
  if (body === null) throw new DownloadError("the host of the file sent nothing");
  if (status === 200) {
    const length = headers.get("content-length");
    return { body, begin: 0, end: length === null ? undefined : Number(length) };
  }
  const [, begin, size] = /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(headers.get("content-range") ?? "") ?? [];
  if (begin !== String(offset)) throw new BulkFailure("the host of the file sent the wrong part");
  return { body, begin: offset, end: size === "*" ? undefined : Number(size) };
}

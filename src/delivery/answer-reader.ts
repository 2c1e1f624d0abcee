/**
 * Reads the answer to one request from the bytes of its connection (RFC 9112). It keeps the status and nothing else.
 * All bytes count towards the limits, as they come from the socket: interim answers, chunk sizes with their extensions,
 * and trailers too. How the bytes are divided into chunks makes no difference.
 */
export interface AnswerReader {
  /** Takes the next bytes. @returns true once nothing more has to be read @throws AnswerError */
  read(bytes: Uint8Array): boolean;
  /** The connection ended. @throws AnswerError if the answer did not end before */
  end(): void;
  /** The status of the answer, once all is read. */
  readonly status: number;
}

/** Codes of `connectReason`. */
type AnswerErrorCode = "Malformed_HTTP_Response" | "ResponseHeadersTooLarge" | "ConnectionClosed";

export class AnswerError extends Error {
  readonly code: AnswerErrorCode;

  constructor(code: AnswerErrorCode) {
    super(code);
    this.code = code;
  }
}

/** Status line and headers, interim answers included. More is an error. */
const MAX_HEAD_BYTES = 64 * 1024;
/** The rest of a longer body is not read, and the answer counts as ended. */
const MAX_BODY_BYTES = 64 * 1024;

const LINE_FEED = 10;
const STATUS_LINE = /^HTTP\/1\.[01] ([1-9]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?$/;
const HEADER = /^([!#$%&'*+.^_`|~\w-]+):[\t ]*((?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)[\t ]*$/;
/** A value that goes on in the next line (RFC 9112, 5.2). */
const FOLDED_LINE = /^[\t ][\t\x20-\x7e\x80-\xff]*$/;
const CHUNK_SIZE = /^([\dA-Fa-f]{1,12})[\t ]*(?:;[\t\x20-\x7e\x80-\xff]*)?$/;

/** What the next bytes are. The first three are parts of the head. */
type Part =
  | "status line"
  | "interim headers"
  | "headers"
  | "fixed body"
  | "body until the end"
  | "chunk size"
  | "chunk"
  | "end of chunk"
  | "trailers"
  | "nothing";

export function createAnswerReader(): AnswerReader {
  let part: Part = "status line";
  let status = 0;
  let isHead = true;
  let headBytes = 0;
  let bodyBytes = 0;
  /** How many bytes of the fixed body or of the chunk are still to come. */
  let counted = 0;
  /** The beginning of a line whose end has not come yet. */
  let line = "";
  const lengths: string[] = [];
  const codings: string[] = [];

  function malformed(): AnswerError {
    return new AnswerError("Malformed_HTTP_Response");
  }

  function takeLine(text: string): void {
    if (part === "status line") takeStatus(text);
    else if (part === "interim headers") takeInterimHeader(text);
    else if (part === "headers") takeHeader(text);
    else if (part === "chunk size") takeChunkSize(text);
    else if (part === "end of chunk") {
      if (text !== "") throw malformed();
      part = "chunk size";
    } else if (text === "") part = "nothing";
  }

  function takeStatus(text: string): void {
    const digits = STATUS_LINE.exec(text)?.[1];
    if (digits === undefined) throw malformed();
    status = Number(digits);
    part = status < 200 && status !== 101 ? "interim headers" : "headers";
  }

  function takeInterimHeader(text: string): void {
    if (text === "") part = "status line";
    else if (!HEADER.test(text) && !FOLDED_LINE.test(text)) throw malformed();
  }

  function takeHeader(text: string): void {
    if (text === "") {
      beginBody();
      return;
    }
    const [, name = "", value = ""] = HEADER.exec(text) ?? [];
    if (name === "" && !FOLDED_LINE.test(text)) throw malformed();
    const values = () => value.split(",").map((each) => each.trim());
    if (name.toLowerCase() === "content-length") lengths.push(...values());
    if (name.toLowerCase() === "transfer-encoding") codings.push(...values());
  }

  /** How long the body is: RFC 9112, 6.3. */
  function beginBody(): void {
    isHead = false;
    if (status === 101 || status === 204 || status === 304) part = "nothing";
    else if (codings.length > 0)
      part = codings.at(-1)?.toLowerCase() === "chunked" ? "chunk size" : "body until the end";
    else if (lengths.length === 0) part = "body until the end";
    else {
      const [length = ""] = lengths;
      if (!/^\d{1,15}$/.test(length) || lengths.some((other) => other !== length)) throw malformed();
      counted = Number(length);
      part = counted === 0 ? "nothing" : "fixed body";
    }
  }

  function takeChunkSize(text: string): void {
    const digits = CHUNK_SIZE.exec(text)?.[1];
    if (digits === undefined) throw malformed();
    counted = Number.parseInt(digits, 16);
    part = counted === 0 ? "trailers" : "chunk";
  }

  /** Takes bytes of one part. @returns how many */
  function takeSome(bytes: Uint8Array): number {
    if (part === "body until the end") return bytes.length;
    if (part === "fixed body" || part === "chunk") {
      const taken = Math.min(bytes.length, counted);
      counted -= taken;
      if (counted === 0) part = part === "chunk" ? "end of chunk" : "nothing";
      return taken;
    }
    const end = bytes.indexOf(LINE_FEED);
    line += Buffer.from(bytes.buffer, bytes.byteOffset, end === -1 ? bytes.length : end).toString("latin1");
    if (end === -1) return bytes.length;
    const whole = line.endsWith("\r") ? line.slice(0, -1) : line;
    line = "";
    takeLine(whole);
    return end + 1;
  }

  function allowed(): number {
    return isHead ? MAX_HEAD_BYTES - headBytes : MAX_BODY_BYTES - bodyBytes;
  }

  return {
    read(bytes) {
      let from = 0;
      while (from < bytes.length && part !== "nothing") {
        const inHead = isHead;
        const taken = takeSome(bytes.subarray(from, from + allowed()));
        from += taken;
        if (inHead) headBytes += taken;
        else bodyBytes += taken;
        if (allowed() > 0) continue;
        if (isHead) throw new AnswerError("ResponseHeadersTooLarge");
        part = "nothing";
      }
      return part === "nothing";
    },
    end() {
      if (part === "nothing" || part === "body until the end") return;
      const isNoHttp = part === "status line" && line !== "" && !"HTTP/1.".startsWith(line.slice(0, 7));
      throw isNoHttp ? malformed() : new AnswerError("ConnectionClosed");
    },
    get status() {
      return status;
    },
  };
}

import { KEPT_ANSWER_BYTES } from "../domain/deliveries/delivery.ts";

/**
 * Reads the answer to one request (RFC 9112): the status and the beginning of the body. Joins the chunks of a chunked
 * body. All bytes count towards the limits, also interim answers, chunk extensions and trailers. The socket may split
 * the bytes anywhere.
 */
export interface AnswerReader {
  /** Takes the next bytes. @returns whether the answer is complete @throws AnswerError */
  read(bytes: Buffer): boolean;
  /** Notes that the connection ended. @throws AnswerError if the answer is not complete */
  end(): void;
  /** The status. Valid when the answer is complete. */
  readonly status: number;
  /** The first bytes of the body, at most `KEPT_ANSWER_BYTES`. Valid when the answer is complete. */
  readonly body: Uint8Array;
}

/** Codes that `connectReason` explains. */
type AnswerErrorCode = "Malformed_HTTP_Response" | "ResponseHeadersTooLarge" | "ConnectionClosed";

export class AnswerError extends Error {
  readonly code: AnswerErrorCode;

  constructor(code: AnswerErrorCode) {
    super(code);
    this.code = code;
  }
}

/** Limit for the status line and the headers, including interim answers. A longer head is an error. */
const MAX_HEAD_BYTES = 64 * 1024;
/** Limit for the body. The rest of a longer body is not read, and the answer counts as complete. */
const MAX_BODY_BYTES = 64 * 1024;

const LINE_FEED = 10;
const STATUS_LINE = /^HTTP\/1\.[01] ([1-9]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?$/;
const HEADER = /^[!#$%&'*+.^_`|~\w-]+:[\t\x20-\x7e\x80-\xff]*$/;
/** The headers that say how long the body is. */
const FRAMING = /^(content-length|transfer-encoding):(.*)$/i;
/** A line that continues the value of the line before (RFC 9112, 5.2). */
const FOLDED_LINE = /^[\t ][\t\x20-\x7e\x80-\xff]*$/;
const CHUNK_SIZE = /^([\dA-Fa-f]{1,12})[\t ]*(?:;[\t\x20-\x7e\x80-\xff]*)?$/;

/** The part of the answer that comes next. The first three parts belong to the head. */
type AnswerPart =
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

/** How far an answer was read. */
interface AnswerState {
  part: AnswerPart;
  status: number;
  isHead: boolean;
  /** How many more bytes of the head may be read. */
  headLeft: number;
  /** How many more bytes of the body may be read. */
  bodyLeft: number;
  /** How many bytes of the fixed body, or of the chunk, are still missing. */
  counted: number;
  /** The beginning of a line that is not complete yet. */
  line: string;
  lengths: string[];
  codings: string[];
  /** The first bytes of the body, one character for each byte. A copy, because Bun reuses the socket's buffer. */
  body: string;
}

/** Creates a reader. All readers share the functions below, so that the garbage collector has less work. */
export function createAnswerReader(): AnswerReader {
  const answer: AnswerState = {
    part: "status line",
    status: 0,
    isHead: true,
    headLeft: MAX_HEAD_BYTES,
    bodyLeft: MAX_BODY_BYTES,
    counted: 0,
    line: "",
    lengths: [],
    codings: [],
    body: "",
  };
  return {
    read: (bytes) => read(answer, bytes),
    end: () => end(answer),
    get status() {
      return answer.status;
    },
    get body() {
      return Buffer.from(answer.body, "latin1");
    },
  };
}

function read(answer: AnswerState, bytes: Buffer): boolean {
  let from = 0;
  while (from < bytes.length && answer.part !== "nothing") {
    if (answer.isHead) {
      const taken = takeSome(answer, bytes, from, Math.min(bytes.length, from + answer.headLeft));
      from += taken;
      answer.headLeft -= taken;
      if (answer.isHead && answer.headLeft === 0) throw new AnswerError("ResponseHeadersTooLarge");
    } else {
      const taken = takeSome(answer, bytes, from, Math.min(bytes.length, from + answer.bodyLeft));
      from += taken;
      answer.bodyLeft -= taken;
      if (answer.bodyLeft === 0) answer.part = "nothing";
    }
  }
  return answer.part === "nothing";
}

function end({ part, line }: AnswerState): void {
  if (part === "nothing" || part === "body until the end") return;
  const isNotHttp = part === "status line" && line !== "" && !"HTTP/1.".startsWith(line.slice(0, 7));
  throw isNotHttp ? malformed() : new AnswerError("ConnectionClosed");
}

/** Reads bytes of the current part, up to `to`. @returns how many bytes it read */
function takeSome(answer: AnswerState, bytes: Buffer, from: number, to: number): number {
  const { part } = answer;
  if (part === "body until the end") {
    keep(answer, bytes, from, to);
    return to - from;
  }
  if (part === "fixed body" || part === "chunk") {
    const taken = Math.min(to - from, answer.counted);
    keep(answer, bytes, from, from + taken);
    answer.counted -= taken;
    if (answer.counted === 0) answer.part = part === "chunk" ? "end of chunk" : "nothing";
    return taken;
  }
  const lineEnd = bytes.indexOf(LINE_FEED, from);
  const isWhole = lineEnd !== -1 && lineEnd < to;
  const text = answer.line + bytes.toString("latin1", from, isWhole ? lineEnd : to);
  answer.line = isWhole ? "" : text;
  if (!isWhole) return to - from;
  takeLine(answer, text.endsWith("\r") ? text.slice(0, -1) : text);
  return lineEnd + 1 - from;
}

function keep(answer: AnswerState, bytes: Buffer, from: number, to: number): void {
  const left = KEPT_ANSWER_BYTES - answer.body.length;
  if (left > 0) answer.body += bytes.toString("latin1", from, Math.min(to, from + left));
}

function takeLine(answer: AnswerState, text: string): void {
  switch (answer.part) {
    case "status line":
      takeStatus(answer, text);
      break;
    case "interim headers":
      if (text === "") answer.part = "status line";
      else checkHeader(text);
      break;
    case "headers":
      if (text === "") beginBody(answer);
      else takeHeader(answer, text);
      break;
    case "chunk size":
      takeChunkSize(answer, text);
      break;
    case "end of chunk":
      if (text !== "") throw malformed();
      answer.part = "chunk size";
      break;
    default:
      if (text === "") answer.part = "nothing";
  }
}

function takeStatus(answer: AnswerState, text: string): void {
  const digits = STATUS_LINE.exec(text)?.[1];
  if (digits === undefined) throw malformed();
  answer.status = Number(digits);
  answer.part = answer.status < 200 && answer.status !== 101 ? "interim headers" : "headers";
}

function checkHeader(text: string): void {
  if (!HEADER.test(text) && !FOLDED_LINE.test(text)) throw malformed();
}

function takeHeader({ lengths, codings }: AnswerState, text: string): void {
  checkHeader(text);
  const [, name = "", value = ""] = FRAMING.exec(text) ?? [];
  if (name === "") return;
  const values = name.toLowerCase() === "content-length" ? lengths : codings;
  values.push(...value.split(",").map((each) => each.trim()));
}

/** Decides where the body ends (RFC 9112, 6.3). */
function beginBody(answer: AnswerState): void {
  const { status, lengths, codings } = answer;
  answer.isHead = false;
  if (status === 101 || status === 204 || status === 304) answer.part = "nothing";
  else if (codings.length > 0)
    answer.part = codings.at(-1)?.toLowerCase() === "chunked" ? "chunk size" : "body until the end";
  else if (lengths.length === 0) answer.part = "body until the end";
  else {
    const [length = ""] = lengths;
    if (!/^\d{1,15}$/.test(length) || lengths.some((other) => other !== length)) throw malformed();
    answer.counted = Number(length);
    answer.part = answer.counted === 0 ? "nothing" : "fixed body";
  }
}

function takeChunkSize(answer: AnswerState, text: string): void {
  const digits = CHUNK_SIZE.exec(text)?.[1];
  if (digits === undefined) throw malformed();
  answer.counted = Number.parseInt(digits, 16);
  answer.part = answer.counted === 0 ? "trailers" : "chunk";
}

function malformed(): AnswerError {
  return new AnswerError("Malformed_HTTP_Response");
}

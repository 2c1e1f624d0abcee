import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { createAnswerReader } from "../../src/delivery/answer-reader.ts";
import { codeOf } from "../../src/domain/error.ts";

const KIB = 1024;

/**
 * Reads an answer.
 * @returns `result`: its status or an error code. `early`: whether the answer was complete before the connection closed
 */
function readAll(chunks: Iterable<Buffer>): { result: number | string; early: boolean } {
  const reader = createAnswerReader();
  try {
    for (const chunk of chunks) if (reader.read(chunk)) return { result: reader.status, early: true };
  } catch (thrown) {
    return { result: codeOf(thrown), early: true };
  }
  try {
    reader.end();
    return { result: reader.status, early: false };
  } catch (thrown) {
    return { result: codeOf(thrown), early: false };
  }
}

const read = (text: string) => readAll([Buffer.from(text, "latin1")]);
const ended = (status: number) => ({ result: status, early: true });
const endsWithConnection = (status: number) => ({ result: status, early: false });
const malformed = { result: "Malformed_HTTP_Response", early: true };
const cutOff = { result: "ConnectionClosed", early: false };
const head = "HTTP/1.1 200 OK\r\n";

test.each<[string, string, ReturnType<typeof read>]>([
  ["without a body", `${head}Content-Length: 0\r\n\r\n`, ended(200)],
  ["with a length", `${head}content-length: 3\r\n\r\nabc`, ended(200)],
  ["with a length, cut off", `${head}Content-Length: 3\r\n\r\nab`, cutOff],
  ["with the same length twice", `${head}Content-Length: 1, 1\r\nContent-Length: 1\r\n\r\na`, ended(200)],
  ["with two lengths", `${head}Content-Length: 1\r\nContent-Length: 2\r\n\r\na`, malformed],
  ["with a length that is no number", `${head}Content-Length: -1\r\n\r\na`, malformed],
  ["with an empty length", `${head}Content-Length:\r\n\r\na`, malformed],
  ["whose body ends with the connection", `${head}\r\nabc`, endsWithConnection(200)],
  ["204, which has no body", "HTTP/1.1 204 No Content\r\nContent-Length: 9\r\n\r\n", ended(204)],
  ["304, which has no body", "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", ended(304)],
  ["101, after which HTTP is over", "HTTP/1.1 101 Switching Protocols\r\n\r\n", ended(101)],
  ["in chunks", `${head}Transfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\nA \r\n0123456789\r\n0\r\n\r\n`, ended(200)],
  ["in chunks with trailers", `${head}Transfer-Encoding: Chunked\r\n\r\n0\r\nA: b\r\n\r\n`, ended(200)],
  [
    "in chunks, in spite of a length",
    `${head}Content-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    ended(200),
  ],
  ["in chunks, cut off", `${head}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n`, cutOff],
  ["in chunks without a size", `${head}Transfer-Encoding: chunked\r\n\r\n\r\nabc`, malformed],
  ["in chunks with a negative size", `${head}Transfer-Encoding: chunked\r\n\r\n-1\r\n`, malformed],
  ["in chunks whose size is too small", `${head}Transfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n`, malformed],
  ["in another coding", `${head}Transfer-Encoding: chunked, gzip\r\n\r\n3\r\nabc`, endsWithConnection(200)],
  [
    "after interim answers",
    `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n${head}\r\n`,
    endsWithConnection(200),
  ],
  ["of HTTP/1.0", "HTTP/1.0 500 No\r\n\r\n", endsWithConnection(500)],
  ["without a reason", "HTTP/1.1 200\r\n\r\n", endsWithConnection(200)],
  ["with bare line feeds", "HTTP/1.1 200 OK\nContent-Length: 1\n\na", ended(200)],
  ["with a folded header", `${head}A: b\r\n c\r\nContent-Length: 0\r\n\r\n`, ended(200)],
  ["with Latin-1 in a header", `${head}A: \xe4\r\nContent-Length: 0\r\n\r\n`, ended(200)],
  ["with a space before the colon", `${head}Content-Length : 0\r\n\r\n`, malformed],
  ["with a header without a colon", `${head}Content-Length\r\n\r\n`, malformed],
  ["with a NUL in a header", `${head}A: \0\r\n\r\n`, malformed],
  ["of HTTP/2", "HTTP/2 200 OK\r\n\r\n", malformed],
  ["with a status of two digits", "HTTP/1.1 20 OK\r\n\r\n", malformed],
  ["of another protocol", "SSH-2.0-OpenSSH_9.2\r\n", malformed],
  ["of another protocol, without a line", "\x16\x03\x01", { result: "Malformed_HTTP_Response", early: false }],
  ["cut off in the status line", "HTTP/1.1 2", cutOff],
  ["cut off after an interim answer", "HTTP/1.1 100 Continue\r\n\r\n", cutOff],
  ["of no byte", "", cutOff],
])("an answer %s", (_name, text, expected) => {
  expect(read(text)).toEqual(expected);
});

/** Reads an answer in pieces of `size` bytes. @returns the body that the reader keeps */
function bodyOf(text: string, size: number): string {
  const reader = createAnswerReader();
  const bytes = Buffer.from(text, "latin1");
  for (let from = 0; from < bytes.length; from += size) {
    const piece = Buffer.from(bytes.subarray(from, from + size));
    const isOver = reader.read(piece);
    // A socket reuses its buffer, so overwrite the bytes.
    piece.fill("?");
    if (isOver) break;
  }
  return Buffer.from(reader.body).toString("latin1");
}

const chunkedAnswer = `${head}Transfer-Encoding: chunked\r\n\r\n`;
const long = "0123456789".repeat(200);

test.each([
  ["with a length", `${head}Content-Length: 3\r\n\r\nabc`, "abc"],
  ["that ends with the connection", `${head}\r\n\r\na\x00\xff`, "\r\na\x00\xff"],
  ["in chunks", `${chunkedAnswer}3;a=b\r\nabc\r\nA\r\n0123456789\r\n0\r\nB: c\r\n\r\n`, "abc0123456789"],
  ["that is empty", `${head}Content-Length: 0\r\n\r\n`, ""],
  ["after an interim answer", `HTTP/1.1 100 Continue\r\n\r\n${head}Content-Length: 1\r\n\r\na`, "a"],
  ["of a failure", "HTTP/1.1 500 No\r\nContent-Length: 4\r\n\r\noops", "oops"],
  ["that is long", `${head}Content-Length: 2000\r\n\r\n${long}`, long.slice(0, KIB)],
  [
    "in long chunks",
    `${chunkedAnswer}3E8\r\n${long.slice(0, 1000)}\r\n3E8\r\n${long.slice(1000)}\r\n0\r\n\r\n`,
    long.slice(0, KIB),
  ],
])("the first KiB is kept of a body %s", (_name, text, expected) => {
  for (const size of [1, 7, 1000, 10_000]) expect(bodyOf(text, size)).toBe(expected);
});

/**
 * Feeds `start`, and then `again` repeatedly, until the reader stops.
 * @returns the number of bytes that the reader took, and its result
 */
function flood(start: string, again: string) {
  const reader = createAnswerReader();
  let bytes = 0;
  let text = start;
  try {
    for (; bytes < 10_000 * KIB; text = again) {
      bytes += text.length;
      if (reader.read(Buffer.from(text))) return { bytes, result: reader.status };
    }
  } catch (thrown) {
    return { bytes, result: codeOf(thrown) };
  }
  return { bytes, result: "endless" };
}

describe("an endless answer is cut off:", () => {
  const tooLarge = "ResponseHeadersTooLarge";
  const chunked = `${head}Transfer-Encoding: chunked\r\n\r\n`;
  test.each<[string, string, string, string | number]>([
    ["interim answers", "", "HTTP/1.1 100 Continue\r\n\r\n", tooLarge],
    ["headers", head, "A: b\r\n", tooLarge],
    ["one header", `${head}A: `, "bbbb", tooLarge],
    ["one status line", "HTTP/1.1 200 ", "bbbb", tooLarge],
    ["a body", `${head}\r\n`, "bbbb", 200],
    ["a body with a length", `${head}Content-Length: 99999999\r\n\r\n`, "bbbb", 200],
    ["empty lines of chunks", chunked, "1\r\na\r\n", 200],
    ["a chunk's extension", `${chunked}1;`, "bbbb", 200],
    ["chunks' extensions", chunked, `1;${"b".repeat(500)}\r\na\r\n`, 200],
    ["zeros of a chunk's size", chunked, "000", 200],
    ["trailers", `${chunked}0\r\n`, "A: b\r\n", 200],
    ["trailers after an error", `HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n`, "A: b\r\n", 500],
  ])("%s", (_name, start, again, result) => {
    const cut = flood(start, again);
    expect(cut.result).toBe(result);
    expect(cut.bytes).toBeLessThan(66 * KIB);
  });

  test("64 KiB of headers are read, and one more byte is refused", () => {
    const withHead = (bytes: number) => `${head}A: ${"b".repeat(bytes - head.length - 7)}\r\n\r\n`;
    expect(read(withHead(64 * KIB))).toEqual(endsWithConnection(200));
    expect(read(withHead(64 * KIB + 1)).result).toBe(tooLarge);
  });
});

const piece = fc.oneof(
  fc.constantFrom(
    "HTTP/1.1 ",
    "HTTP/1.1 200 OK\r\n",
    "HTTP/1.1 100 Continue\r\n\r\n",
    "500",
    "\r\n",
    "\n",
    "\r",
    "\r\n\r\n",
    "Content-Length: 3\r\n",
    "Transfer-Encoding: chunked\r\n",
    "3\r\nabc\r\n",
    "0\r\n",
    "a;b=c\r\n",
    "A: b\r\n",
    " folded\r\n",
  ),
  fc.string({ unit: "binary", maxLength: 8 }),
);
const answer = fc.array(piece, { maxLength: 30 }).map((pieces) => Buffer.from(pieces.join(""), "latin1"));

test("however the bytes are divided, the reader gives the same result once", () => {
  fc.assert(
    fc.property(answer, fc.array(fc.nat(400)), (bytes, cuts) => {
      const at = [...new Set([0, ...cuts.filter((cut) => cut < bytes.length), bytes.length])].sort((a, b) => a - b);
      const divided = at.slice(1).map((end, index) => bytes.subarray(at[index], end));
      const { result } = readAll([bytes]);
      expect(readAll(divided).result).toEqual(result);
      expect(readAll(Array.from(bytes, (byte) => Buffer.of(byte))).result).toEqual(result);
      if (typeof result === "string") expect(["Malformed_HTTP_Response", "ConnectionClosed"]).toContain(result);
      else expect(result).toBeWithin(100, 1000);
    }),
    { numRuns: 2_000 },
  );
});

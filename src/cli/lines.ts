import { SdsError } from "../domain/error.ts";
import { decodeUtf8 } from "../lib/text.ts";

/** Longer than any record can be. */
const MAX_LINE = 5 * 1024 * 1024;

export interface Line {
  /** Counted from 1, as editors do. */
  number: number;
  text: string | undefined;
}

/**
 * Splits a stream of bytes into lines, many at a time. A line that is no UTF-8 has no text: who applies lines has to refuse it in its place.
 * @param onBytes is told how many bytes were read
 * @throws SdsError `bad_record` naming the line, if one is too long
 */
export async function* readLines(stream: AsyncIterable<Uint8Array>, onBytes: (n: number) => void): AsyncGenerator<Line[]> {
  let rest: Uint8Array = new Uint8Array();
  let number = 0;
  const decode = (bytes: Uint8Array) => {
    const lines = decodeLines(bytes, number + 1);
    number += lines.length;
    return lines;
  };
  for await (const chunk of stream) {
    onBytes(chunk.length);
    const end = chunk.lastIndexOf(0x0a) + 1;
    if (end > 0) yield decode(Buffer.concat([rest, chunk.subarray(0, end)]));
    rest = end > 0 ? chunk.slice(end) : Buffer.concat([rest, chunk]);
    if (rest.length > MAX_LINE) throw new SdsError("bad_record", `line ${number + 1} is longer than ${MAX_LINE} bytes`);
  }
  if (rest.length > 0) yield decode(rest);
}

function decodeLines(bytes: Uint8Array, first: number): Line[] {
  const whole = decodeUtf8(bytes);
  const texts = whole === undefined ? splitUndecoded(bytes) : whole.split("\n");
  if (texts.at(-1) === "") texts.pop();
  return texts.map((text, index) => ({ number: first + index, text }));
}

/** Line by line, for the sake of those that can be read. */
function splitUndecoded(bytes: Uint8Array): (string | undefined)[] {
  const texts: (string | undefined)[] = [];
  for (let start = 0; start <= bytes.length; ) {
    const newline = bytes.indexOf(0x0a, start);
    const end = newline === -1 ? bytes.length : newline;
    texts.push(decodeUtf8(bytes.subarray(start, end)));
    start = end + 1;
  }
  return texts;
}

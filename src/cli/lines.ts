import { SdsError } from "../domain/error.ts";

/** Longer than any record can be. */
const MAX_LINE = 5 * 1024 * 1024;

export interface Line {
  /** Counted from 1, as editors do. */
  number: number;
  text: string;
}

/**
 * Splits a stream of bytes into lines, many at a time.
 * @param onBytes is told how many bytes were read
 * @throws SdsError `bad_record` naming the line, if one is too long or not UTF-8
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
  const decoder = new TextDecoder("utf-8", { fatal: true });
  try {
    const texts = decoder.decode(bytes).split("\n");
    if (texts.at(-1) === "") texts.pop();
    return texts.map((text, index) => ({ number: first + index, text }));
  } catch (thrown) {
    throw new SdsError("bad_record", `line ${firstUndecodable(bytes, first)} is not UTF-8`, { cause: thrown });
  }
}

function firstUndecodable(bytes: Uint8Array, first: number): number {
  let number = first;
  for (let start = 0; start < bytes.length; number += 1) {
    const newline = bytes.indexOf(0x0a, start);
    const end = newline === -1 ? bytes.length : newline;
    // Replacing what can't be decoded and encoding again gives other bytes.
    if (!Buffer.from(Buffer.from(bytes.subarray(start, end)).toString()).equals(bytes.subarray(start, end))) return number;
    start = end + 1;
  }
  return number;
}

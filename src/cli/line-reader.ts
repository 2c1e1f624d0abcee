import { SdsError } from "../domain/error.ts";
import { decodeUtf8 } from "../lib/text.ts";

/** Maximum length of a line in bytes. Every valid record is shorter. */
const MAX_LINE_BYTES = 5 * 1024 * 1024;

export interface NumberedLine {
  /** From 1, as in editors. */
  number: number;
  /** undefined for a line that is not UTF-8. */
  text: string | undefined;
}

/**
 * Yields many lines at a time. A line that is not UTF-8 causes no error here, but its `text` is undefined. So the
 * caller can use the lines before it.
 * @throws SdsError `bad_record` for a line that is too long; the message names the line
 */
export async function* readLines(
  stream: AsyncIterable<Uint8Array>,
  onBytes: (n: number) => void,
): AsyncGenerator<NumberedLine[]> {
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
    if (rest.length > MAX_LINE_BYTES)
      throw new SdsError("bad_record", `line ${number + 1} is longer than ${MAX_LINE_BYTES} bytes`);
  }
  if (rest.length > 0) yield decode(rest);
}

function decodeLines(bytes: Uint8Array, first: number): NumberedLine[] {
  const whole = decodeUtf8(bytes);
  const texts = whole === undefined ? decodeEach(bytes) : whole.split("\n");
  if (texts.at(-1) === "") texts.pop();
  return texts.map((text, index) => ({ number: first + index, text }));
}

/** Decodes each line separately, so that a line that is not UTF-8 does not spoil the other lines. */
function decodeEach(bytes: Uint8Array): (string | undefined)[] {
  const texts: (string | undefined)[] = [];
  for (let start = 0; start <= bytes.length; ) {
    const newline = bytes.indexOf(0x0a, start);
    const end = newline === -1 ? bytes.length : newline;
    texts.push(decodeUtf8(bytes.subarray(start, end)));
    start = end + 1;
  }
  return texts;
}

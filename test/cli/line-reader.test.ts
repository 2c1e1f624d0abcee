import { expect, test } from "bun:test";
import { type NumberedLine, readLines } from "../../src/cli/line-reader.ts";

async function* stream(...chunks: (string | Uint8Array)[]): AsyncGenerator<Uint8Array> {
  for (const chunk of chunks) yield Buffer.from(chunk);
}

async function read(...chunks: (string | Uint8Array)[]): Promise<{ lines: NumberedLine[]; bytes: number }> {
  const lines: NumberedLine[] = [];
  let bytes = 0;
  const reader = readLines(stream(...chunks), (n) => {
    bytes += n;
  });
  for await (const some of reader) lines.push(...some);
  return { lines, bytes };
}

test("lines are numbered from 1, wherever the chunks of the stream end", async () => {
  const lines = ["a", "", "bä", "c"].map((text, index) => ({ number: index + 1, text }));
  const text = "a\n\nbä\nc";
  for (let at = 0; at <= Buffer.byteLength(text); at += 1) {
    const bytes = Buffer.from(text);
    expect(await read(bytes.subarray(0, at), bytes.subarray(at))).toEqual({ lines, bytes: bytes.length });
  }
  expect((await read(`${text}\n`)).lines).toEqual(lines);
});

test("a line that is not UTF-8 has no text, and the lines around it have theirs", async () => {
  const bad = Buffer.concat([Buffer.from("a\n"), Uint8Array.of(0xff), Buffer.from("\nb\n")]);
  expect((await read("x\n", bad)).lines).toEqual([
    { number: 1, text: "x" },
    { number: 2, text: "a" },
    { number: 3, text: undefined },
    { number: 4, text: "b" },
  ]);
});

test("a line of more than 5 MiB is refused with its number", async () => {
  const limit = 5 * 1024 * 1024;
  expect((await read("a\n", "x".repeat(limit))).lines).toHaveLength(2);
  const refused = { code: "bad_record", message: `line 2 is longer than ${limit} bytes` };
  await expect(read("a\n", "x".repeat(limit), "x")).rejects.toMatchObject(refused);
});

import { expect, test } from "bun:test";
import { shellQuoted } from "../../src/lib/shell.ts";

const TEXTS = [
  "",
  "plain",
  "it's \"quoted\" and 'again'",
  "$HOME `id` $(id) \\ \\n * ? [a] {a,b} ~ # ; & | < >",
  "!! !id wow! it's!",
  "two\nlines\n",
  "a\ttab, a return\r, an escape \u001b[31m and a CSI \u009b31m",
  "ünïcødé 日本 🎁 \u202eright to left, zero\u200bwidth",
  "x21!21",
];

test.each(TEXTS)("bash reads %p as one word", async (text) => {
  const output = await run(["bash", "-c", `printf %s ${shellQuoted(text)}`]);
  expect(output).toBe(text);
});

test.each(TEXTS)("an interactive bash reads %p as it was pasted", async (text) => {
  const output = await run(["bash", "--norc", "-i"], `set -H; printf '<%s>' ${shellQuoted(text)}\nexit\n`);
  expect(output).toBe(`<${text}>`);
});

test("an ordinary text is quoted as people would do it", () => {
  expect(shellQuoted(`{"a":"it's"}`)).toBe(`'{"a":"it'\\''s"}'`);
  expect(shellQuoted("wow!")).toBe("'wow'$'\\x21'''");
});

async function run(command: string[], input = ""): Promise<string> {
  const process = Bun.spawn(command, { stdin: new Blob([input]), stdout: "pipe", stderr: "ignore" });
  return process.stdout.text();
}

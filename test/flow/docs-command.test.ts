import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { TOPICS } from "../../src/http/docs/site.ts";
import { PROGRAM, Program } from "../support/program.ts";

function page(name: string): Promise<string> {
  return Bun.file(join(import.meta.dir, "../../src/docs", name)).text();
}

test("docs lists the topics, and needs no data", async () => {
  const program = new Program();
  const { status, stdout, stderr } = await program.run(["docs"]);
  expect({ status, stderr }).toEqual({ status: 0, stderr: "Print one with `sds docs TOPIC`.\n" });
  expect(stdout.split("\n").map((line) => line.split(" ")[0])).toEqual([
    "TOPIC",
    ...TOPICS.map(({ topic }) => topic),
    "",
  ]);
  expect(await program.json<unknown>(["docs"])).toEqual(
    TOPICS.map(({ topic, name, summary }) => ({ topic, name, summary })),
  );
  expect(existsSync(program.data)).toBe(false);
});

test("docs TOPIC prints the page in Markdown if stdout is not a terminal", async () => {
  const program = new Program();
  expect(await program.run(["docs", "copies"])).toEqual({ status: 0, stdout: await page("copies.md"), stderr: "" });
  expect(await program.json(["docs", "copies"])).toEqual({
    topic: "copies",
    name: "Keeping a copy current",
    text: await page("copies.md"),
  });
});

test("docs prints a section that has its own topic, with its subsections", async () => {
  const { stdout } = await new Program().run(["docs", "verifying"]);
  expect(stdout).toStartWith("## Signature\n");
  expect(stdout).toContain("### Receivers\n");
  expect(stdout).toContain("package main\n");
  expect(stdout).not.toContain("\n## ");
});

test.each([
  ["quickstart", "sds: there is no topic quickstart: did you mean quick-start?\n"],
  ["webhook", "sds: there is no topic webhook: did you mean receivers or webhooks or reference-webhooks?\n"],
  ["xyzzy", "sds: there is no topic xyzzy: `sds docs` lists the topics\n"],
  ["a\u001b[31m", "sds: there is no topic a<U+001B>[31m: `sds docs` lists the topics\n"],
])("an unknown topic, %j, ends with 3 and suggests similar topics", async (topic, stderr) => {
  expect(await new Program().run(["docs", topic])).toEqual({ status: 3, stdout: "", stderr });
});

test.each([
  [{}, true],
  [{ NO_COLOR: "1" }, false],
])(
  "a page for a terminal with %j is formatted for reading, with links as commands, and shown by the pager",
  async (env, hasColours) => {
    const decoder = new TextDecoder();
    let shown = "";
    const child = Bun.spawn([...PROGRAM, "docs", "versioning"], {
      env: {
        PATH: process.env["PATH"] ?? "",
        TERM: "xterm-256color",
        PAGER: "sed s/^/|/",
        ...env,
      },
      terminal: {
        cols: 60,
        rows: 30,
        data: (_terminal, bytes) => {
          shown += decoder.decode(bytes, { stream: true });
        },
      },
    });
    expect(await child.exited).toBe(0);
    child.terminal?.close();
    expect(shown).toContain("What may be added within v1");
    expect(shown.includes("\u001b[")).toBe(hasColours);
    const lines = Bun.stripANSI(shown).split("\r\n");
    expect(lines.slice(0, -1).filter((line) => line.length > 61 || !line.startsWith("|"))).toEqual([]);
    expect(lines.join(" ")).toMatch(/\(sds docs \w+\)/);
  },
);

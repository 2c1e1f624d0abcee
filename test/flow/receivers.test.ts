import { beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { verifySignature } from "../../src/client/signature.ts";
import { temporaryFolder } from "../support/app.ts";
import { Program } from "../support/program.ts";
import { type Delivered, Receiver } from "../support/receiver.ts";
import { SAMPLES, type Sample } from "../support/samples.ts";

/** The languages in which docs/webhooks.md verifies a signature, and how to run their code. */
const LANGUAGES: {
  name: string;
  fence: string;
  file: string;
  command: [string, ...string[]];
}[] = [
  { name: "Bun", fence: "js", file: "verifySignature.mjs", command: [process.execPath] },
  { name: "Node", fence: "js", file: "verifySignature.mjs", command: ["node"] },
  { name: "Python", fence: "python", file: "verifySignature.py", command: ["python3"] },
  { name: "Ruby", fence: "ruby", file: "verifySignature.rb", command: ["ruby"] },
  { name: "PHP", fence: "php", file: "verifySignature.php", command: ["php"] },
  { name: "Go", fence: "go", file: "verifySignature.go", command: ["go", "run"] },
];

let delivered: Delivered;
let secret: string;

/** Sends one real delivery. */
beforeAll(async () => {
  const program = await Program.withShop({ SDS_EGRESS_ALLOW: "127.0.0.0/8" });
  const receiver = new Receiver();
  await program.json(["webhook", "set", "--url", receiver.url, "--all-topics"]);
  secret = (await program.json<{ secret: string }>(["webhook", "secret"])).secret;
  await program.serve();
  await program.json(["webhook", "test"]);
  const [first] = await receiver.gets(1);
  if (first === undefined) throw new Error("nothing was delivered");
  delivered = first;
});

/** Returns the page's program in a language. The program prints whether a body is genuine. */
function codeIn(fence: string): string {
  const isProgram = (each: Sample) => each.page === "webhooks.md" && each.code.includes('"genuine"');
  return SAMPLES.find((each) => each.language === fence && isProgram(each))?.code ?? "";
}

describe("the receivers in docs/webhooks.md", () => {
  test("exist in every language, and Node is installed to run one", () => {
    for (const { name, fence } of LANGUAGES)
      expect({ name, code: codeIn(fence) }).toEqual({ name, code: expect.stringContaining("verify") });
    // Node.js is always there, because scripts/test needs it.
    expect(Bun.which("node")).not.toBeNull();
  });

  for (const { name, fence, file, command } of LANGUAGES) {
    test.skipIf(Bun.which(command[0]) === null)(
      `${name} accepts the delivery, and refuses every other body and header without failing`,
      async () => {
        const folder = join(temporaryFolder(), "code");
        mkdirSync(folder);
        writeFileSync(join(folder, file), codeIn(fence));
        /** Runs the program. @returns its output; empty if it failed */
        const run = async (body: string, ...header: string[]) => {
          const child = Bun.spawn([...command, join(folder, file), secret, ...header], {
            stdin: Buffer.from(body),
            stdout: "pipe",
            stderr: "ignore",
          });
          return (await child.stdout.text()).trim();
        };
        const { body, signature } = delivered;
        const digits = signature.slice("sha256=".length);
        expect(await run(body, signature)).toBe("genuine");
        const refused = {
          "another body": await run(`${body} `, signature),
          "another signature": await run(
            body,
            signature.replace(/.$/, (digit) => (digit === "0" ? "1" : "0")),
          ),
          "no header": await run(body),
          "an empty header": await run(body, ""),
          "no algorithm": await run(body, digits),
          "capital letters": await run(body, `sha256=${digits.toUpperCase()}`),
          "as many characters, more bytes": await run(body, `sha256=${"é".repeat(64)}`),
          "as many bytes, fewer characters": await run(body, `sha256=${"é".repeat(32)}`),
        };
        expect(Object.entries(refused).filter(([, printed]) => printed !== "refused")).toEqual([]);
      },
    );
  }
});

test("sds/signature accepts the delivery, and refuses a missing header", async () => {
  expect(await verifySignature(secret, delivered.body, delivered.signature)).toBe(true);
  expect(await verifySignature(secret, delivered.body, null)).toBe(false);
  expect(await verifySignature(secret, delivered.body, "")).toBe(false);
});

test("a third-party check of a raw body accepts a delivery and refuses a tampered one", async () => {
  const octokit = await import("@octokit/webhooks-methods");
  expect(await octokit.verify(secret, delivered.body, delivered.signature)).toBe(true);
  expect(await octokit.verify(secret, delivered.body.replace("ACTIVE", "PAUSED"), delivered.signature)).toBe(false);
  expect(await octokit.verify(`${secret}x`, delivered.body, delivered.signature)).toBe(false);
});

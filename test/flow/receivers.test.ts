import { expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../support/app.ts";
import { Program } from "../support/program.ts";
import { type Delivered, Receiver } from "../support/receiver.ts";

setDefaultTimeout(60_000);

const README = await Bun.file(join(import.meta.dir, "../../README.md")).text();

/** The languages in which the README verifies a signature, with how to run its code. */
const LANGUAGES: { name: string; fence: string; file: string; command: string[] }[] = [
  { name: "Node", fence: "js", file: "verify.mjs", command: ["node"] },
  { name: "Python", fence: "python", file: "verify.py", command: ["python3"] },
  { name: "Ruby", fence: "ruby", file: "verify.rb", command: ["ruby"] },
  { name: "PHP", fence: "php", file: "verify.php", command: ["php"] },
  { name: "Go", fence: "go", file: "verify.go", command: ["go", "run"] },
];

async function deliverOne(): Promise<{ delivered: Delivered; secret: string }> {
  const program = new Program(undefined, { SDS_EGRESS_ALLOW: "127.0.0.0/8" });
  const receiver = new Receiver();
  await program.json(["shop", "add", "alpha.myshopify.com"]);
  await program.json(["webhook", "set", "--url", receiver.url, "--all-topics"]);
  const { secret } = await program.json<{ secret: string }>(["webhook", "secret"]);
  await program.serve();
  await program.json(["webhook", "test"]);
  const [delivered] = await receiver.gets(1);
  if (delivered === undefined) throw new Error("nothing was delivered");
  return { delivered, secret };
}

test("the README's receivers accept a delivery really sent, and refuse one that was changed", async () => {
  const { delivered, secret } = await deliverOne();
  const missing: string[] = [];
  for (const { name, fence, file, command } of LANGUAGES) {
    const code = new RegExp(`\`\`\`${fence}\\n([^]*?)\`\`\``).exec(README)?.[1] ?? "";
    expect(code).toContain("verify");
    const [executable = ""] = command;
    if (Bun.which(executable) === null) {
      missing.push(name);
      continue;
    }
    const folder = join(temporaryFolder(), "code");
    mkdirSync(folder);
    writeFileSync(join(folder, file), code);
    const accepts = async (body: string, header: string) => {
      const child = Bun.spawn([...command, join(folder, file), header, secret], { stdin: Buffer.from(body), stdout: "ignore", stderr: "ignore" });
      return (await child.exited) === 0;
    };
    const { body, signature } = delivered;
    const tampered = signature.replace(/.$/, (digit) => (digit === "0" ? "1" : "0"));
    expect({
      name,
      verdicts: [await accepts(body, signature), await accepts(`${body} `, signature), await accepts(body, tampered), await accepts(body, "")],
    }).toEqual({
      name,
      verdicts: [true, false, false, false],
    });
  }
  // Node is where everybody begins: scripts/test needs it.
  expect(missing).not.toContain("Node");
});

test("another maker's check of a raw body accepts a delivery and refuses a tampered one", async () => {
  const { verify } = await import("@octokit/webhooks-methods");
  const { delivered, secret } = await deliverOne();
  expect(await verify(secret, delivered.body, delivered.signature)).toBe(true);
  expect(await verify(secret, delivered.body.replace("ACTIVE", "PAUSED"), delivered.signature)).toBe(false);
  expect(await verify(`${secret}x`, delivered.body, delivered.signature)).toBe(false);
});

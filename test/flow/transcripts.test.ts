import { expect, test } from "bun:test";
import { hostname } from "node:os";
import { join } from "node:path";
import { Glob } from "bun";
import { currentUser } from "../../src/lib/users.ts";
import { receiveFailed } from "../conformance/fixtures.ts";
import { temporaryFolder } from "../support/app.ts";
import { deadDelivery } from "../support/dead-delivery.ts";
import { PROGRAM, Program } from "../support/program.ts";
import { expectStored, withPlaceholders } from "../support/stored-text.ts";

const FOLDER = join(import.meta.dir, "transcripts");
const FILES = [
  "doctor.txt",
  "files.txt",
  "keys-and-webhooks.txt",
  "manual.txt",
  "platform.txt",
  "records.txt",
  "shops.txt",
  "trouble.txt",
];
/** Placeholders for values that differ between runs. */
const PLACEHOLDERS: [RegExp, string][] = [
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, "<time>"],
  [/(?<=<delivery id> +)\d+ days/g, "<age>"],
  [/\d{5,} bytes in [\d.]+ s/g, "<size> in <time>"],
  [/(?<=database: )[\d.]+ MB|(?<="bytes":)\d{5,}/g, "<size>"],
  [/[\d.]+ [MGT]B(?= free)|(?<=may open )[\d,]+|(?<=schema )\d+/g, "<number>"],
  [/(?<=before-restore-)[\dTZ-]+/g, "<time>"],
  [/(?<=sign-in\?token=)[\w-]{43}/g, "<token>"],
  [/(?<=sds |"version":")\d+\.\d+\.\d+[^"\s]*/g, "<version>"],
  [/(?<=^\.Dd )[A-Z][a-z]+ \d+, \d{4}$/gm, "<date>"],
  [/(?<=documentation of version\n)\d+\.\d+\.\d+\S*(?=\.$)/gm, "<version>"],
  // The replaced values have different widths, so the alignment of columns is not compared.
  [/(?<=\S) {3,}/g, "  "],
];
/**
 * Defines `sds`, which runs the program, and `print_result`, which prints the output of a command, then its messages
 * after `! `, then its status unless that is 0.
 */
const SHELL_SETUP = `set -o pipefail; umask 022; export LC_ALL=C; program=("$@"); sds() { "\${program[@]}" "$@"; }
print_result() { local status=$?; cat out; sed 's/^/! /' err; [ $status = 0 ] || echo "[$status]"; echo "<end>"; }`;

/** Makes the shop, a dead delivery and an item of the inbox that could not be processed. */
async function addTrouble(program: Program): Promise<void> {
  const store = await program.openStore();
  const shop = await store.shops.add({ domain: "alpha.myshopify.com", plan: "pro", currency: "USD" }, Date.now());
  await deadDelivery(store, shop);
  await receiveFailed(store, shop);
  await store.close();
}

/** Runs the commands of a transcript one after the other in one shell. @returns the transcript with what they print */
async function play(transcript: string, program: Program): Promise<string> {
  const commands = transcript.split("\n").filter((line) => line.startsWith("$ "));
  const lines = commands.map((command) => `{ ${command.slice(2)}; } >out 2>err </dev/null; print_result`);
  const cwd = temporaryFolder();
  const child = Bun.spawn(["bash", "-c", [SHELL_SETUP, ...lines].join("\n"), "bash", ...PROGRAM], {
    ...{ env: await program.environment(), cwd },
    ...{ stdout: "pipe", stderr: "inherit" },
  });
  const output = (await child.stdout.text())
    .replaceAll(program.data, "<data>")
    .replaceAll(cwd, "<folder>")
    .replaceAll(`belongs to ${currentUser()}`, "belongs to <user>")
    .replaceAll(`${currentUser()}@${hostname()}`, "<user>");
  const outputs = withPlaceholders(output, PLACEHOLDERS).split("<end>\n");
  // The text ends with the mark of the last command.
  if (outputs.length !== commands.length + 1) throw new Error("a command ended the shell");
  return commands.map((command, n) => `${command}\n${outputs[n]}`).join("\n");
}

test("every transcript is in the list", () => {
  expect([...new Glob("*.txt").scanSync(FOLDER)].toSorted()).toEqual(FILES);
});

test.each(FILES)("each command prints what the transcript says: %s", async (file) => {
  const path = join(FOLDER, file);
  const program = new Program();
  if (file === "trouble.txt") await addTrouble(program);
  await expectStored(path, await play(await Bun.file(path).text(), program));
});

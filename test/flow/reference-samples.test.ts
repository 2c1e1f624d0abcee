import { expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PAGES } from "../../src/http/docs/site.ts";
import { openApiDocument } from "../../src/http/openapi/document.ts";
import { temporaryFolder } from "../support/app.ts";
import { Program } from "../support/program.ts";
import { samplesOf } from "../support/samples.ts";

const SHOP = "alpha.myshopify.com";
const { paths } = openApiDocument("/");
const OPERATIONS = Object.values(paths).flatMap((methods) => Object.values(methods));
const RECORDS = paths["/intake"]?.["post"]?.requestBody?.content["application/x-ndjson"]?.example;
const SAMPLES = PAGES.filter(({ topic }) => topic.startsWith("reference-")).flatMap(({ topic, text }) =>
  samplesOf(topic, text()),
);

/** Serves a shop with the records of the OpenAPI document, so that the document's ids exist. */
async function served(): Promise<Record<string, string>> {
  const program = await Program.withShop();
  await program.json(["field", "add", "gift_note", "--label", "Gift note", "--type", "text"]);
  await program.json(["import", "-"], { stdin: String(RECORDS) });
  const { key } = await program.json<{ key: string }>(["key", "create", "--label", "Samples"]);
  const { secret } = await program.json<{ secret: string }>(["intake", "secret"]);
  const { url } = await program.serve();
  return { PATH: process.env["PATH"] ?? "", API_URL: url, API_KEY: key, INTAKE_SECRET: secret, SHOP };
}

/** Runs all samples of a language. @returns the samples that failed or printed something unwanted, with their output */
async function faults(language: string, command: string, isWanted: (printed: string) => boolean): Promise<string[]> {
  const env = await served();
  const folder = join(temporaryFolder(), "samples");
  mkdirSync(folder);
  const samples = SAMPLES.filter((sample) => sample.language === language);
  expect(samples).toHaveLength(OPERATIONS.length);
  const found: string[] = [];
  for (const [index, { code }] of samples.entries()) {
    const file = join(folder, `${index}.${language === "js" ? "mjs" : language}`);
    writeFileSync(file, code);
    const child = Bun.spawn([command, file], { env, stdout: "pipe", stderr: "pipe" });
    const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()]);
    if (stderr !== "" || !isWanted(stdout)) found.push(`${code}\n${stdout}${stderr}`);
  }
  return found;
}

test("each call of the reference in curl is answered, and not with an error", async () => {
  expect(await faults("sh", "sh", (printed) => !("error" in (JSON.parse(printed) as object)))).toEqual([]);
});

test.each([
  ["JavaScript", "js", "node"],
  ["Python", "python", "python3"],
])("each call of the reference in %s is answered with 200, or 202 from the intake", async (_, language, command) => {
  expect(await faults(language, command, (printed) => /^20[02] \{/.test(printed))).toEqual([]);
});

import { Database } from "bun:sqlite";
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  addBigShop,
  fileHas,
  platformSecretEnv,
  postRemoval,
  rowsOfShop,
  shopRow,
} from "../../test/support/removed-shop.ts";
import { createDisk } from "./disk.ts";
import { compiledProgram } from "./program.ts";
import { type Operation, readRecording, recorded } from "./recording.ts";

const [ALPHA, BETA] = ["alpha.myshopify.com", "beta.myshopify.com"];
const CUTS = Number(process.argv[2] ?? 60);
const ROWS = 600;
const TIMEOUT_MS = 60_000;

const folder = mkdtempSync(join(tmpdir(), "sds-power-cut-"));
const template = join(folder, "template");
const env = { ...platformSecretEnv(folder), SDS_LOG: "error" };

async function until(isSo: () => boolean, what: string): Promise<void> {
  const deadline = performance.now() + TIMEOUT_MS;
  while (!isSo()) {
    if (performance.now() > deadline) throw new Error(`it did not happen in time: ${what}`);
    await Bun.sleep(20);
  }
}

async function makeTemplate(): Promise<{ alpha: number; beta: number }> {
  const program = compiledProgram(template, env);
  const run = (args: string[], stdin?: string) => program.run(args, stdin);
  await addBigShop(run, ALPHA, "Lovelace", ROWS);
  await addBigShop(run, BETA, "Hopper", 20);
  const [alpha, beta] = [ALPHA, BETA].map((domain) => Number(shopRow(template, domain)?.["id"]));
  if (alpha === undefined || beta === undefined) throw new Error("the shops were not added");
  return { alpha, beta };
}

/** Lets the program remove the shop, and records it. */
async function record(): Promise<Operation[]> {
  const data = join(folder, "recorded");
  cpSync(template, data, { recursive: true });
  const trace = join(folder, "trace");
  const server = await compiledProgram(data, env).serve(recorded(trace));
  const { status } = await postRemoval(server.url, ALPHA, "asked");
  if (status !== 200) throw new Error(`the request was answered with ${status}`);
  await until(() => shopRow(data, ALPHA) === undefined, "the shop is removed");
  await server.stop("SIGKILL");
  await until(() => readFileSync(trace, "latin1").includes("+++ killed by SIGKILL"), "strace writes its last line");
  const operations = readRecording(readFileSync(trace, "latin1"));
  rmSync(trace);
  return operations;
}

/** Starts the program on what a power cut left, and checks the end. */
async function check(data: string, wasAnswered: boolean, { alpha, beta }: { alpha: number; beta: number }) {
  const server = await compiledProgram(data, env).serve();
  if (!wasAnswered) await postRemoval(server.url, ALPHA, "asked");
  await until(() => shopRow(data, ALPHA) === undefined, "the shop is removed after a power cut");
  await server.stop("SIGTERM");
  if (Object.keys(rowsOfShop(data, alpha)).length > 0) throw new Error("rows were left");
  if (fileHas(data, "Lovelace")) throw new Error("a text was left in the file");
  if (JSON.stringify(rowsOfShop(data, beta)) !== JSON.stringify(rowsOfShop(template, beta)))
    throw new Error("the other shop changed");
  const db = new Database(join(data, "sds.db"), { readonly: true });
  const verdict = JSON.stringify(db.query("PRAGMA integrity_check").all());
  db.close();
  if (verdict !== '[{"integrity_check":"ok"}]') throw new Error(`the database is damaged: ${verdict}`);
}

try {
  const shops = await makeTemplate();
  const operations = await record();
  const answer = operations.findIndex((operation) => operation.do === "answer");
  const syncs = operations.filter((operation) => operation.do === "sync").length;
  if (answer === -1 || syncs < 20)
    throw new Error(`too little was recorded: ${operations.length} calls, ${syncs} syncs, answer ${answer}`);
  const cuts = Array.from({ length: CUTS }, () => Math.floor(Math.random() * operations.length)).sort((a, b) => a - b);
  const disk = createDisk(readFileSync(join(template, "sds.db")));
  let answered = 0;
  let done = 0;
  for (const [index, operation] of operations.entries()) {
    disk.apply(operation);
    for (; cuts[done] === index; done += 1) {
      const data = join(folder, `cut-${done}`);
      mkdirSync(data);
      copyFileSync(join(template, "master.key"), join(data, "master.key"));
      for (const [file, bytes] of Object.entries(disk.cut())) writeFileSync(join(data, file), bytes);
      answered += Number(index >= answer);
      await check(data, index >= answer, shops);
      rmSync(data, { recursive: true });
    }
  }
  process.stdout.write(
    `${CUTS} power cuts in ${operations.length} recorded calls with ${syncs} syncs, ` +
      `${answered} of them after the answer: each removal ended\n`,
  );
} finally {
  rmSync(folder, { recursive: true, force: true });
}

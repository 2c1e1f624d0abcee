import { Database } from "bun:sqlite";
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { postRemoval } from "../../test/support/removed-shop.ts";
import { createDisk } from "./disk.ts";
import { compiledProgram } from "./program.ts";
import { type Operation, readRecording, recorded } from "./recording.ts";
import { makeTwoShops, REMOVED, removalEnv, type TwoShops, until, untilRemoved } from "./two-shops.ts";

const CUTS = Number(process.argv[2] ?? 60);
const ROWS = 600;

const folder = mkdtempSync(join(tmpdir(), "sds-power-cut-"));
const template = join(folder, "template");
const env = removalEnv(folder);

/** Records what the program writes, syncs and answers while it removes the shop. */
async function record(): Promise<Operation[]> {
  const data = join(folder, "recorded");
  cpSync(template, data, { recursive: true });
  const trace = join(folder, "trace");
  const server = await compiledProgram(data, env).serve(recorded(trace));
  const { status } = await postRemoval(server.url, REMOVED, "asked");
  if (status !== 200) throw new Error(`the request was answered with ${status}`);
  await untilRemoved(data);
  await server.stop("SIGKILL");
  await until(() => readFileSync(trace, "latin1").includes("+++ killed by SIGKILL"), "strace writes its last line");
  const operations = readRecording(readFileSync(trace, "latin1"));
  rmSync(trace);
  return operations;
}

/** Starts the program on the files that a power cut left, and checks that it removes the shop. */
async function check(data: string, wasAnswered: boolean, { checkRemoved }: TwoShops) {
  const server = await compiledProgram(data, env).serve();
  if (!wasAnswered) await postRemoval(server.url, REMOVED, "asked");
  await untilRemoved(data);
  await server.stop("SIGTERM");
  await checkRemoved(data);
  const db = new Database(join(data, "sds.db"), { readonly: true });
  const verdict = JSON.stringify(db.query("PRAGMA integrity_check").all());
  db.close();
  if (verdict !== '[{"integrity_check":"ok"}]') throw new Error(`the database is damaged: ${verdict}`);
}

try {
  const shops = await makeTwoShops(template, env, ROWS);
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

/**
 * Compares the processor time of commands in two executables, in alternation, and prints a Markdown table.
 * `bun scripts/bench/commands.ts BEFORE AFTER`
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { median } from "./servers.ts";
import { machineLine, rounded, Table } from "./table.ts";

const ROUNDS = 5;
const RUNS = 10;
const COMMANDS = ["version", "--help", "key list", "status", "doctor"];

const [before, after] = process.argv.slice(2).map((path) => resolve(path));
if (before === undefined || after === undefined) throw new Error("name two executables");
const data = mkdtempSync(join(tmpdir(), "sds-commands-"));

/** Processor time of RUNS runs of a command, in milliseconds for each. */
function millisecondsOf(executable: string, command: string): number {
  const line = [executable, "--data", data, ...command.split(" ")];
  const spent = Array.from({ length: RUNS }, () => {
    const { resourceUsage } = Bun.spawnSync(line, { stdout: "ignore", stderr: "ignore" });
    return Number(resourceUsage.cpuTime.total) / 1_000;
  });
  return spent.reduce((sum, each) => sum + each) / RUNS;
}

try {
  Bun.spawnSync([before, "--data", data, "shop", "add", "bench.myshopify.com"]);
  const table = new Table();
  for (const command of COMMANDS) {
    const [olds, news]: [number[], number[]] = [[], []];
    for (let round = 0; round < ROUNDS; round += 1) {
      olds.push(millisecondsOf(before, command));
      news.push(millisecondsOf(after, command));
    }
    const [was, is] = [median(olds), median(news)];
    table.addRatioBelow(`\`sds ${command}\``, `${rounded(is)} ms, before ${rounded(was)} ms`, is / was, 1.05);
  }
  process.stdout.write(`${table}\n\n${machineLine()}\n`);
} finally {
  rmSync(data, { recursive: true, force: true });
}

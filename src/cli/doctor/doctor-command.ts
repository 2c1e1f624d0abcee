import { readFileSync } from "node:fs";
import { styleText } from "node:util";
import type { Command } from "commander";
import { readConfig } from "../../config.ts";
import { createConnector } from "../../delivery/connector.ts";
import { messageOf, SdsError } from "../../domain/error.ts";
import { descriptorLimit } from "../../lib/descriptor-reserve.ts";
import { becomeOwnerOf } from "../../lib/users.ts";
import { freeBytes } from "../../store/files/disk-space.ts";
import { findDamage, openCheckup } from "../../store/open-store.ts";
import type { Checkup, OpenedCheckup } from "../../store/port/checkup.ts";
import { FIND_DAMAGE, type JsonFlag, type SdsCommand } from "../command.ts";
import { configOf } from "../context.ts";
import { programCommand, resolveName, sleep } from "../dependencies.ts";
import { printJson, printLine, safeMessage } from "../print.ts";
import { addSettings } from "../settings-files.ts";
import { type Check, type Finding, failed, type Patient, passed } from "./check.ts";
import { DATA_CHECKS, DATABASE_CHECKS } from "./database.ts";
import { FILE_CHECKS } from "./files.ts";
import { NETWORK_CHECKS, REMOTE_CHECKS } from "./network.ts";
import { SHOP_CHECKS } from "./shops.ts";

/** Time limit of each check. All checks run at the same time. */
const CHECK_MS = 10_000;
/** How long the database may take to open. */
const OPEN_MS = 6_000;

interface Result {
  check: string;
  ok: boolean;
  detail: string;
  remedy: string | null;
}

export function addCommands(program: SdsCommand): void {
  program
    .command("doctor")
    .description(
      "look for what is wrong, and say what to do: settings, files, database, " +
        "platform, endpoints and backup; changes nothing; exit status 1 if it finds a fault",
    )
    .jsonOption()
    .examples("sds doctor")
    .action(doctor);

  program
    .command(FIND_DAMAGE, { hidden: true })
    .description("search the database of the data folder for damage, and print it")
    .examples(`sds --data /var/lib/sds ${FIND_DAMAGE}`)
    .action(async (_options: object, command: Command) => {
      const damage = await findDamage(configOf(command).data);
      if (damage !== undefined) printLine(damage);
    });
}

async function doctor({ json }: JsonFlag, command: Command): Promise<void> {
  const results = await examine(command);
  if (json) printJson(results);
  else for (const result of results) print(result);
  const { length } = results.filter(({ ok }) => !ok);
  if (length > 0) throw new SdsError("failed", `${length} of ${results.length} checks failed`);
}

async function examine(command: Command): Promise<Result[]> {
  const flags = command.optsWithGlobals();
  try {
    const asRoot = { ...process.env };
    addSettings(flags["data"], asRoot);
    // root may read files that the service may not read. From here on, the checks run as the owner of the data folder.
    becomeOwnerOf(readConfig(flags, asRoot).data);
    const warnings = addSettings(flags["data"], process.env);
    const config = readConfig(flags, process.env);
    const settings =
      warnings.length === 0 ? passed("all are known") : failed(warnings.join("; "), "correct or remove each of these");
    const server = config.database === null ? null : { ...config.database, sleep };
    const opened = await Promise.race([openCheckup(config.data, server), sleep(OPEN_MS).then(lateDatabase)]);
    const patient: Patient = { config, opened, ...dependenciesOf(config.data) };
    const checks = checksOf("checkup" in opened ? opened.checkup : undefined);
    const results = await Promise.all(checks.map((check) => runCheck(check, patient)));
    if ("checkup" in opened) await opened.checkup.close();
    return [resultOf("settings", settings), ...results];
  } catch (thrown) {
    if (!(thrown instanceof SdsError)) throw thrown;
    const remedy = "correct this setting, and run `sds doctor` again: the other checks need it";
    return [resultOf("settings", failed(thrown.message, remedy))];
  }
}

function lateDatabase(): OpenedCheckup {
  return { problem: "unreachable", detail: `the database did not answer within ${OPEN_MS / 1_000} seconds` };
}

/** Lists the checks that are possible with this database. */
function checksOf(checkup: Checkup | undefined): Check[] {
  const before = [...FILE_CHECKS, ...NETWORK_CHECKS, ...DATABASE_CHECKS];
  if (checkup === undefined || !checkup.schema.isCurrent) return before;
  const ofData = [...DATA_CHECKS, ...REMOTE_CHECKS, ...SHOP_CHECKS];
  return [...before, ...ofData.map(({ name, run }) => ({ name, run: (patient: Patient) => run(checkup, patient) }))];
}

async function runCheck({ name, run }: Check, patient: Patient): Promise<Result> {
  const late = sleep(CHECK_MS).then(() =>
    failed(
      `no result within ${CHECK_MS / 1_000} seconds`,
      "look whether disk, network or database hang, and try again",
    ),
  );
  const result = (async () => run(patient))().catch((thrown: unknown) =>
    failed(`the check failed: ${messageOf(thrown)}`, "correct this error, and try again"),
  );
  return resultOf(name, await Promise.race([result, late]));
}

/** Details come from files, servers and settings, so secrets are masked in them. */
function resultOf(check: string, finding: Finding): Result {
  const lineOf = (text: string) => safeMessage(text.replaceAll(/\s+/g, " "));
  return { check, ok: finding.ok, detail: lineOf(finding.detail), remedy: finding.ok ? null : lineOf(finding.remedy) };
}

function dependenciesOf(data: string): Omit<Patient, "config" | "opened"> {
  return {
    now: Date.now,
    fetch,
    resolve: resolveName,
    connect: createConnector(),
    freeBytes,
    descriptorLimit: (processId) => (processId === null ? descriptorLimit() : limitOf(processId)),
    findDamage: (signal) => findDamageApart(data, signal),
  };
}

/** Reads the limit of a running `serve`. Returns null if the limit is unreadable, or the process is not `serve`. */
function limitOf(processId: number): number | null {
  try {
    if (!readFileSync(`/proc/${processId}/cmdline`, "utf8").split("\0").includes("serve")) return null;
    const [, soft] = /^Max open files +(\d+)/m.exec(readFileSync(`/proc/${processId}/limits`, "utf8")) ?? [];
    return soft === undefined ? null : Number(soft);
  } catch {
    return null;
  }
}

/** Searches for damage in a separate process. An abort of the signal kills that process. */
async function findDamageApart(data: string, signal: AbortSignal): Promise<string | undefined> {
  const child = Bun.spawn([...programCommand(), "--data", data, FIND_DAMAGE], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "ignore",
    signal,
    killSignal: "SIGKILL",
  });
  const [output, status] = await Promise.all([child.stdout.text(), child.exited]);
  signal.throwIfAborted();
  if (status !== 0) return `the search ended with status ${status}`;
  const damage = output.trim();
  return damage === "" ? undefined : damage;
}

function print({ check, ok, detail, remedy }: Result): void {
  const mark = ok
    ? styleText("green", "ok  ", { stream: process.stdout })
    : styleText("red", "FAIL", { stream: process.stdout });
  printLine(`${mark}  ${check.padEnd(17)}  ${detail}`);
  if (remedy !== null) printLine(`${" ".repeat(25)}To do: ${remedy}.`);
}

import { existsSync } from "node:fs";
import type { Command } from "commander";
import { SdsError } from "../domain/error.ts";
import { printable } from "../lib/log.ts";
import { backupStore } from "../store/open-store.ts";
import { configOfFolder } from "./context.ts";
import { randomBytes } from "./dependencies.ts";
import { example, JSON_OPTION } from "./options.ts";
import { printJson, printLine, tell } from "./print.ts";

export function addBackupCommand(program: Command): void {
  program
    .command("backup <file>")
    .description("write a checked copy of the database into a new file, also while `sds serve` runs")
    .option(...JSON_OPTION)
    .addHelpText("after", example('sds backup "backups/sds-$(date -u +%Y-%m-%dT%H%M%SZ).db"'))
    .action(backup);
}

async function backup(file: string, { json }: { json?: boolean }, command: Command): Promise<void> {
  if (file.trim() === "" || file === "-")
    throw new SdsError("invalid", "name the file to write, for instance sds.backup");
  const { data: folder, masterKeyFile } = configOfFolder(command);
  const startedAt = performance.now();
  const { bytes } = await backupStore({ folder, file, masterKeyFile, random: randomBytes, now: Date.now() });
  const seconds = Math.round(performance.now() - startedAt) / 1000;
  if (json) printJson({ file, bytes, seconds });
  else printLine(printable(`${file}: ${bytes} bytes in ${seconds} s`));
  if (existsSync(masterKeyFile)) tell(`The master key is not in it. Keep a copy of ${masterKeyFile} in another place.`);
  else tell(`sds: warning: the master key is not in it, and ${masterKeyFile} is missing`);
}

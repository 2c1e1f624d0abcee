import type { Command } from "commander";
import { checkBackup, restoreStore } from "../store/open-store.ts";
import { confirm } from "./confirm.ts";
import { configOfFolder } from "./context.ts";
import { randomBytes } from "./dependencies.ts";
import { example, JSON_OPTION } from "./options.ts";
import { printJson, tell } from "./print.ts";

interface Options {
  yes?: boolean;
  json?: boolean;
}

export function addRestoreCommand(program: Command): void {
  program
    .command("restore <file>")
    .description("replace the database by a copy that `sds backup` made; `sds serve` must not run")
    .option("--yes", "really replace it")
    .option(...JSON_OPTION)
    .addHelpText("after", example("sds restore backups/sds-2026-01-31T013000Z.db --yes"))
    .action(restore);
}

async function restore(file: string, { yes = false, json }: Options, command: Command): Promise<void> {
  const { data: folder, masterKeyFile } = configOfFolder(command);
  checkBackup({ folder, file });
  await confirm(`this replaces the database in ${folder} by ${file}`, yes);
  const request = { folder, file, masterKeyFile, random: randomBytes, now: Date.now() };
  const { bytes, kept, hasMasterKey } = await restoreStore(request);
  if (json) printJson({ file, bytes });
  else tell(`Restored ${file} into ${folder}.`);
  if (kept !== null) tell(`The old database is kept as ${kept}. Delete it when you do not need it any more.`);
  if (!hasMasterKey)
    tell(`sds: warning: the master key ${masterKeyFile} is missing: put it back before you start \`sds serve\``);
}

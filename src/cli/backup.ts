import { existsSync } from "node:fs";
import type { Command } from "commander";
import { invalid } from "../domain/error.ts";
import { printable } from "../lib/log.ts";
import { bytesText, counted } from "../lib/text.ts";
import { backupStore, checkBackup, checkedBackup, restoreStore } from "../store/open-store.ts";
import type { JsonFlag, SdsCommand } from "./command.ts";
import { configOf, configOfFolder } from "./context.ts";
import { randomBytes } from "./dependencies.ts";
import { printJson, printLine, tell, warn } from "./print.ts";
import { confirm } from "./stdin.ts";

/** Adds `backup` and `restore`. */
export function addCommands(program: SdsCommand): void {
  program
    .command("backup <file>")
    .description("write a checked copy of the database into a new file, also while `sds serve` runs")
    .option("--verify", "only check a backup that exists: it needs neither the data folder nor the master key")
    .jsonOption()
    .examples('sds backup "backups/sds-$(date -u +%Y-%m-%dT%H%M%SZ).db"')
    .action((file: string, { verify = false, ...flags }: JsonFlag & { verify?: boolean }, command: Command) =>
      verify ? verifyFile(file, flags, command) : backup(file, flags, command),
    );

  program
    .command("restore <file>")
    .description("replace the database by a copy that `sds backup` made; `sds serve` must not run")
    .option("--yes", "really replace the database")
    .jsonOption()
    .examples("sds restore backups/sds-2026-01-31T013000Z.db --yes")
    .action(restore);
}

async function backup(file: string, { json }: JsonFlag, command: Command): Promise<void> {
  if (file.trim() === "" || file === "-") throw invalid("name the file to write, for instance sds.backup");
  const { data: folder, masterKeyFile } = configOfFolder(command);
  const startedAt = performance.now();
  const { bytes } = await backupStore({ folder, file, masterKeyFile, random: randomBytes, now: Date.now() });
  const seconds = Math.round(performance.now() - startedAt) / 1000;
  if (json) printJson({ file, bytes, seconds });
  else printLine(printable(`${file}: ${bytes} bytes in ${seconds} s`));
  if (existsSync(masterKeyFile)) tell(`The master key is not in it. Keep a copy of ${masterKeyFile} in another place.`);
  else warn([`the master key is not in it, and ${masterKeyFile} is missing`]);
}

async function verifyFile(file: string, { json }: JsonFlag, command: Command): Promise<void> {
  const { schema, shops, subscriptions, bytes } = await checkedBackup({ folder: configOf(command).data, file });
  const content = `${counted(shops, "shop", "shops")}, ${counted(subscriptions, "subscription", "subscriptions")}`;
  if (json) printJson({ file, bytes, schema, shops, subscriptions });
  else printLine(printable(`${file}: whole, ${bytesText(bytes)} of schema ${schema} with ${content}`));
}

async function restore(
  file: string,
  { yes = false, json }: JsonFlag & { yes?: boolean },
  command: Command,
): Promise<void> {
  const { data: folder, masterKeyFile } = configOfFolder(command);
  await checkBackup({ folder, file });
  await confirm(`this replaces the database in ${folder} by ${file}`, yes);
  const request = { folder, file, masterKeyFile, random: randomBytes, now: Date.now() };
  const { bytes, kept, hasMasterKey } = await restoreStore(request);
  if (json) printJson({ file, bytes });
  else tell(`Restored ${file} into ${folder}.`);
  for (const old of kept) tell(`The old database is kept as ${old}. Delete it when you do not need it any more.`);
  if (!hasMasterKey) warn([`the master key ${masterKeyFile} is missing: put it back before you start \`sds serve\``]);
}

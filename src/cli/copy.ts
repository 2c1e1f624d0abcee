import { join } from "node:path";
import type { Command } from "commander";
import { readAddressFile, readCopyTarget } from "../config.ts";
import { invalid } from "../domain/error.ts";
import { printable } from "../lib/log.ts";
import { counted } from "../lib/text.ts";
import { copyStore } from "../store/copy-store.ts";
import type { JsonFlag, SdsCommand } from "./command.ts";
import { configOf } from "./context.ts";
import { randomBytes, sleep } from "./dependencies.ts";
import { printJson, printLine, tell, warn } from "./print.ts";
import { createProgressBar, rateText } from "./progress-bar.ts";
import { secretFileWarnings } from "./secret-files.ts";

type CopyFlags = JsonFlag & { to?: string; toFile?: string };

export function addCommands(program: SdsCommand): void {
  program
    .command("copy")
    .description("copy the whole database into an empty one of the other engine; no `sds serve` may run")
    .option("--to <url>", "postgres://USER@HOST/DATABASE, or sqlite:FOLDER")
    .option("--to-file <file>", "the same, read from a file: for an address with a password")
    .jsonOption()
    .examples(
      "sds copy --to-file /etc/sds/database-url",
      "SDS_DATABASE_URL_FILE=/etc/sds/database-url sds copy --to sqlite:./data-new",
    )
    .action(copy);
}

async function copy({ to, toFile, json }: CopyFlags, command: Command): Promise<void> {
  const target = readCopyTarget(targetText(to, toFile), process.env);
  const { data, database, masterKeyFile } = configOf(command);
  warn(secretFileWarnings(toFile));
  const progress = createProgressBar(process.stderr);
  const startedAt = performance.now();
  const seconds = () => (performance.now() - startedAt) / 1000;
  const copied = await copyStore({
    from: database ?? { folder: data },
    to: target,
    now: Date.now,
    random: randomBytes,
    sleep,
    onProgress: ({ done, rows }) => progress.update(done, rateText(rows, seconds())),
  }).finally(() => progress.end());
  const rounded = Math.round(seconds() * 1000) / 1000;
  if (json) printJson({ rows: copied.rows, seconds: rounded });
  else
    printLine(printable(`copied and compared ${counted(copied.rows, "row", "rows")} to ${copied.to} in ${rounded} s`));
  tell("The source is unchanged. Serve only the source or only the copy, and run commands on that one only.");
  const keyOfCopy = "folder" in target ? join(target.folder, "master.key") : undefined;
  if (keyOfCopy === undefined)
    tell(`The copy does not contain the master key. Keep ${masterKeyFile}: the same key belongs to the copy.`);
  else if (keyOfCopy !== masterKeyFile)
    tell(
      `The copy does not contain the master key. Copy ${masterKeyFile} to ${keyOfCopy}, or set SDS_MASTER_KEY_FILE.`,
    );
}

/** Returns the target's address from `--to` or from the file. @throws SdsError `invalid` */
function targetText(to: string | undefined, file: string | undefined): string {
  if ((to === undefined) === (file === undefined)) throw invalid("say where to copy: --to URL or --to-file FILE");
  return file === undefined ? (to ?? "").trim() : readAddressFile("--to-file", file);
}

import { Database } from "bun:sqlite";
import type { Command } from "commander";
import { version } from "../../package.json";
import { example, JSON_OPTION } from "./options.ts";
import { printJson, printLine } from "./print.ts";

export function addVersionCommand(program: Command): void {
  program
    .command("version")
    .description("print the version, and the versions of Bun and SQLite that are built in")
    .option(...JSON_OPTION)
    .addHelpText("after", example("sds version --json"))
    .action((options: { json?: boolean }) => {
      const sqlite = new Database(":memory:")
        .query<{ version: string }, []>("SELECT sqlite_version() AS version")
        .get()?.version;
      if (options.json) printJson({ version, bun: Bun.version, sqlite });
      else printLine(`sds ${version} (Bun ${Bun.version}, SQLite ${sqlite})`);
    });
}

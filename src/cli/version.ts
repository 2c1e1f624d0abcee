import { Database } from "bun:sqlite";
import type { Command } from "commander";
import { version } from "../../package.json";
import { example, JSON_OPTION } from "./context.ts";
import { printJson, printLine } from "./print.ts";

export function addVersionCommand(program: Command): void {
  program
    .command("version")
    .description("print the version, and those of Bun and SQLite inside")
    .option(...JSON_OPTION)
    .addHelpText("after", example("sds version --json"))
    .action((options: { json?: boolean }) => {
      const sqlite = new Database(":memory:").query<{ version: string }, []>("SELECT sqlite_version() AS version").get()?.version;
      if (options.json) printJson({ version, bun: Bun.version, sqlite });
      else printLine(`sds ${version} (Bun ${Bun.version}, SQLite ${sqlite})`);
    });
}

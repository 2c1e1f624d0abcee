import { Database } from "bun:sqlite";
import { version } from "../../package.json";
import type { JsonFlag, SdsCommand } from "./command.ts";
import { printJson, printLine } from "./print.ts";

export function addCommands(program: SdsCommand): void {
  program
    .command("version")
    .description("print the version, and the versions of Bun and SQLite that are built in")
    .jsonOption()
    .examples("sds version --json")
    .action(({ json }: JsonFlag) => {
      const query = new Database(":memory:").query<{ sqlite: string }, []>("SELECT sqlite_version() AS sqlite");
      const sqlite = query.get()?.sqlite;
      if (json) printJson({ version, bun: Bun.version, sqlite });
      else printLine(`sds ${version} (Bun ${Bun.version}, SQLite ${sqlite})`);
    });
}

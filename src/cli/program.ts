import { Database } from "bun:sqlite";
import { CommanderError } from "commander";
import { version } from "../../package.json";
import { type ErrorCode, messageOf, SdsError } from "../domain/error.ts";
import { addAdminCommands } from "./admin.ts";
import { addBackupCommands } from "./backup.ts";
import { type JsonFlag, SdsCommand } from "./command.ts";
import { addCopyCommand } from "./copy.ts";
import { addCustomerCommands } from "./customer.ts";
import { addDeliveryCommands } from "./delivery.ts";
import { addDemoCommand } from "./demo/demo-command.ts";
import { addDocsCommand } from "./docs.ts";
import { addFieldCommands } from "./field.ts";
import { addImportCommands } from "./import.ts";
import { addInboxCommands } from "./inbox.ts";
import { addKeyCommands } from "./key.ts";
import { addListenCommand } from "./listen.ts";
import { addPlatformCommands } from "./platform.ts";
import { printJson, printLine, tell, warn } from "./print.ts";
import { addPullCommand } from "./pull/pull-command.ts";
import { addServeCommand } from "./serve.ts";
import { addSettings } from "./settings-files.ts";
import { addShopCommands } from "./shop.ts";
import { addStatusCommand } from "./status.ts";
import { addStyleCommands } from "./style.ts";
import { addSyncCommand } from "./sync.ts";
import { addWebhookCommands } from "./webhook.ts";

/** Exit status by error code: 2 for wrong usage or input, 3 for an object that does not exist, 1 for all others. */
const EXIT: Partial<Record<ErrorCode, number>> = { invalid: 2, bad_record: 2, not_found: 3 };

/** Commands that work whatever the files of settings contain. */
const WITHOUT_SETTINGS = ["demo", "docs", "version"];

/** Runs a command line, and prints an error as one line on stderr. @returns the exit status */
export async function run(argv: readonly string[]): Promise<number> {
  try {
    await buildProgram().parseAsync(argv, { from: "user" });
    return 0;
  } catch (thrown) {
    // commander has printed its own error or the help.
    if (thrown instanceof CommanderError) return thrown.exitCode === 0 ? 0 : 2;
    tellError(messageOf(thrown));
    return thrown instanceof SdsError ? (EXIT[thrown.code] ?? 1) : 1;
  }
}

function tellError(message: string): void {
  tell(`sds: ${message.trim().replaceAll(/\s*\n\s*/g, " ")}`);
}

/** Builds the program with all its commands. */
export function buildProgram(): SdsCommand {
  const program = new SdsCommand("sds")
    .description(
      "Subscription Data Service: a read-only API, signed webhooks and workflow triggers " +
        "over a local mirror of a shop's customers, subscriptions and orders.",
    )
    .version(version, "--version", "print the version")
    .option("--data <dir>", "folder of the database and the master key (env SDS_DATA, default ./data)")
    .option("--no-copy", "do not keep a copy of the database of an older sds before it is upgraded")
    .examples("sds demo", "sds shop add alpha.myshopify.com", "sds key create --label Warehouse", "sds serve")
    .hook("preAction", (_, command) => {
      if (!WITHOUT_SETTINGS.includes(command.name())) warn(addSettings(command.optsWithGlobals()["data"], process.env));
    })
    .exitOverride()
    // commander writes `error:` before a message, and its suggestion on a second line.
    .configureOutput({ outputError: (text) => tellError(text.replace(/^error: /, "")) });
  addServeCommand(program);
  addDemoCommand(program);
  addShopCommands(program);
  addSyncCommand(program);
  addKeyCommands(program);
  addAdminCommands(program);
  addImportCommands(program);
  addWebhookCommands(program);
  addDeliveryCommands(program);
  addListenCommand(program);
  addInboxCommands(program);
  addCustomerCommands(program);
  addFieldCommands(program);
  addStyleCommands(program);
  addPlatformCommands(program);
  addBackupCommands(program);
  addCopyCommand(program);
  addPullCommand(program);
  addStatusCommand(program);
  addDocsCommand(program);
  addVersionCommand(program);
  return program;
}

function addVersionCommand(program: SdsCommand): void {
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

import { Database } from "bun:sqlite";
import { CommanderError } from "commander";
import { version } from "../../package.json";
import { type ErrorCode, messageOf, SdsError } from "../domain/error.ts";
import { addAdminCommands } from "./admin.ts";
import { addBackupCommands } from "./backup.ts";
import { type JsonFlag, SdsCommand } from "./command.ts";
import { addCompletionCommands, COMPLETE } from "./completions.ts";
import { addCopyCommand } from "./copy.ts";
import { addCustomerCommands } from "./customer.ts";
import { addDeliveryCommands } from "./delivery.ts";
import { addDemoCommand } from "./demo/demo-command.ts";
import { addDocsCommand } from "./docs.ts";
import { addDoctorCommand } from "./doctor/doctor-command.ts";
import { addFieldCommands } from "./field.ts";
import { addImportCommands } from "./import.ts";
import { addInboxCommands } from "./inbox.ts";
import { addKeyCommands } from "./key.ts";
import { addListenCommand } from "./listen.ts";
import { addManualCommand } from "./manual.ts";
import { addMasterKeyCommands } from "./master-key.ts";
import { addPlatformCommands } from "./platform.ts";
import { CANNOT_WRITE, hasPrintedJson, printJson, printLine, safeMessage, tell, warn } from "./print.ts";
import { addPullCommand } from "./pull/pull-command.ts";
import { addServeCommand } from "./serve.ts";
import { addSettings } from "./settings-files.ts";
import { addSettingsHelp } from "./settings-help.ts";
import { addShopCommands } from "./shop.ts";
import { addStatusCommand } from "./status.ts";
import { addStyleCommands } from "./style.ts";
import { addSyncCommand } from "./sync.ts";
import { addServiceCommands } from "./systemd.ts";
import { addWebhookCommands } from "./webhook.ts";

/** Exit status by error code: 2 for wrong usage or input, 3 for an object that does not exist, 1 for all others. */
const EXIT: Partial<Record<ErrorCode, number>> = { invalid: 2, bad_record: 2, not_found: 3 };

/** Commands that do not need the settings files. `doctor` reads these files itself. */
const WITHOUT_SETTINGS = ["completions", "demo", "docs", "doctor", "man", "version"];

/** Runs a command line, and prints an error as one line on stderr. @returns the exit status */
export async function run(argv: readonly string[]): Promise<number> {
  try {
    // commander's own `help` accepts only one word, and some commands have two.
    const [first, ...rest] = argv;
    const line = first === "help" && rest.length > 0 ? [...rest, "--help"] : argv;
    await buildProgram().parseAsync(line, { from: "user" });
    return 0;
  } catch (thrown) {
    if (thrown instanceof CommanderError && thrown.exitCode === 0) return 0;
    const code = codeOfFailure(thrown);
    const message = safeMessage(inOneLine(messageOf(thrown).replace(/^error: /, "")));
    // commander has already printed its own error.
    if (!(thrown instanceof CommanderError)) tellError(message);
    const isUnprinted = !hasPrintedJson() && !message.startsWith(CANNOT_WRITE);
    if (argv.includes("--json") && isUnprinted) printError({ code, message });
    return EXIT[code] ?? 1;
  }
}

function codeOfFailure(thrown: unknown): ErrorCode {
  if (thrown instanceof CommanderError) return "invalid";
  return thrown instanceof SdsError ? thrown.code : "internal";
}

/** Prints an error as JSON. If stdout is closed, only stderr has the error. */
function printError(error: { code: ErrorCode; message: string }): void {
  try {
    printJson({ error });
  } catch {
    // `tellError` has printed the error to stderr.
  }
}

function inOneLine(text: string): string {
  return text.trim().replaceAll(/\s*\n\s*/g, " ");
}

function tellError(message: string): void {
  tell(`sds: ${inOneLine(message)}`);
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
    .addHelpText(
      "after",
      "\nExit status: 0 done, 1 failed, 2 wrong usage or bad input, 3 no such thing.\n" +
        "Documentation: `sds docs`, or /docs of a running service.",
    )
    .examples("sds demo", "sds shop add alpha.myshopify.com", "sds key create --label Warehouse", "sds serve")
    .hook("preAction", (_, command) => {
      if (WITHOUT_SETTINGS.includes(command.name())) return;
      const warnings = addSettings(command.optsWithGlobals()["data"], process.env);
      if (command.name() !== COMPLETE) warn(warnings);
    })
    .exitOverride()
    // commander writes `error:` before a message, and its suggestion on a second line.
    .configureOutput({ outputError: (text) => tellError(text.replace(/^error: /, "")) });
  program.commandsGroup("Run:");
  addServeCommand(program);
  addDemoCommand(program);
  addServiceCommands(program);
  addStatusCommand(program);
  addDoctorCommand(program);
  program.commandsGroup("Shops and their data:");
  addShopCommands(program);
  addSyncCommand(program);
  addImportCommands(program);
  addInboxCommands(program);
  addCustomerCommands(program);
  addFieldCommands(program);
  addStyleCommands(program);
  addPlatformCommands(program);
  program.commandsGroup("Access and webhooks:");
  addKeyCommands(program);
  addAdminCommands(program);
  addWebhookCommands(program);
  addDeliveryCommands(program);
  addListenCommand(program);
  addPullCommand(program);
  program.commandsGroup("Backup:");
  addBackupCommands(program);
  addCopyCommand(program);
  addMasterKeyCommands(program);
  program.commandsGroup("Help:");
  addDocsCommand(program);
  addCompletionCommands(program);
  addManualCommand(program);
  addVersionCommand(program);
  program.helpCommand("help [command]", "print the help of a command");
  addSettingsHelp(program);
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

import { CommanderError } from "commander";
import { version } from "../../package.json";
import { type ErrorCode, messageOf, SdsError } from "../domain/error.ts";
import { COMPLETE, FIND_DAMAGE, SdsCommand } from "./command.ts";
import { CANNOT_WRITE, hasPrintedJson, printJson, safeMessage, tell, warn } from "./print.ts";
import { addSettings } from "./settings-files.ts";
import { addSettingsHelp } from "./settings-help.ts";

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
    const program = await buildProgram(commandIn(argv));
    await program.parseAsync(line, { from: "user" });
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

/** A file of commands. */
interface CommandFile {
  addCommands(program: SdsCommand): void;
}
type FileLoader = () => Promise<CommandFile>;

const backupFile: FileLoader = () => import("./backup.ts");
const completionFile: FileLoader = () => import("./completions.ts");
const doctorFile: FileLoader = () => import("./doctor/doctor-command.ts");
const importFile: FileLoader = () => import("./import.ts");

/**
 * The commands under each heading of the help, with their files. `run` loads only the file of the command that it runs,
 * because loading all files takes longer than most commands run.
 */
const COMMANDS: Record<string, Record<string, FileLoader>> = {
  "Run:": {
    serve: () => import("./serve.ts"),
    demo: () => import("./demo/demo-command.ts"),
    service: () => import("./systemd.ts"),
    status: () => import("./status.ts"),
    doctor: doctorFile,
    [FIND_DAMAGE]: doctorFile,
  },
  "Shops and their data:": {
    shop: () => import("./shop.ts"),
    sync: () => import("./sync.ts"),
    import: importFile,
    intake: importFile,
    inbox: () => import("./inbox.ts"),
    customer: () => import("./customer.ts"),
    field: () => import("./field.ts"),
    style: () => import("./style.ts"),
    platform: () => import("./platform.ts"),
  },
  "Access and webhooks:": {
    key: () => import("./key.ts"),
    admin: () => import("./admin.ts"),
    webhook: () => import("./webhook.ts"),
    delivery: () => import("./delivery.ts"),
    listen: () => import("./listen.ts"),
    pull: () => import("./pull/pull-command.ts"),
  },
  "Backup:": {
    backup: backupFile,
    restore: backupFile,
    copy: () => import("./copy.ts"),
    "master-key": () => import("./master-key.ts"),
  },
  "Help:": {
    docs: () => import("./docs.ts"),
    completions: completionFile,
    [COMPLETE]: completionFile,
    man: () => import("./manual.ts"),
    version: () => import("./version.ts"),
  },
};

/** Commands that read all commands of the program. */
const ABOUT_ALL = [COMPLETE, "man"];

/** @returns the command that a command line names; undefined for an unknown command, or one that needs all commands */
export function commandIn([word, ...rest]: readonly string[]): string | undefined {
  if (word === "--data") return commandIn(rest.slice(1));
  if (word === "--no-copy" || word?.startsWith("--data=")) return commandIn(rest);
  const name = word === "help" ? rest[0] : word;
  if (name === undefined || ABOUT_ALL.includes(name)) return undefined;
  return Object.values(COMMANDS).some((commands) => Object.hasOwn(commands, name)) ? name : undefined;
}

/**
 * Builds the program.
 * @param only the only command that the program has; undefined means all
 */
export async function buildProgram(only?: string): Promise<SdsCommand> {
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
  for (const [heading, commands] of Object.entries(COMMANDS)) {
    program.commandsGroup(heading);
    const wanted = Object.entries(commands).filter(([name]) => only === undefined || name === only);
    for (const load of new Set(wanted.map(([, load]) => load))) (await load()).addCommands(program);
  }
  program.helpCommand("help [command]", "print the help of a command");
  addSettingsHelp(program);
  return program;
}

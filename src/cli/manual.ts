import type { Command, Option } from "commander";
import { version } from "../../package.json";
import { SETTING_NAMES } from "../setting-names.ts";
import type { SdsCommand } from "./command.ts";
import { printLine } from "./print.ts";

export function addCommands(program: SdsCommand): void {
  program
    .command("man")
    .description("print the manual page, for `man -l`")
    .examples("sds man > /usr/local/share/man/man1/sds.1", "sds man | man -l -")
    .action(() => printLine(manualPage(program, new Date())));
}

const FILES = [
  ["/etc/sds/sds.env", "Settings of the service and of every command on this machine."],
  ["DATA/sds.env", "Settings of one data folder; they win over those of the machine."],
  ["DATA/sds.db", "The database. Copy it with `sds backup` only."],
  ["DATA/master.key", "The key that stored secrets are encrypted with. No backup has it: keep a copy elsewhere."],
] as const;

/** Writes the manual page from the tree of commands, in mdoc(7). `mandoc` warns if a page has no date. */
export function manualPage(program: Command, now: Date): string {
  const commands = leavesOf(program);
  return [
    `.Dd ${now.toLocaleDateString("en-US", { dateStyle: "long", timeZone: "UTC" })}`,
    ".Dt SDS 1",
    ".Os",
    ".Sh NAME",
    ".Nm sds",
    ".Nd Subscription Data Service",
    ".Sh SYNOPSIS",
    ".Nm",
    ".Op Fl -data Ar dir",
    ".Ar command",
    ".Op Ar argument ...",
    ".Sh DESCRIPTION",
    text(program.description()),
    ".Pp",
    "The options of the program itself:",
    ...optionList(program.options),
    ".Sh COMMANDS",
    ".Bl -tag -width Ds",
    ...commands.flatMap(describe),
    ".El",
    ".Sh ENVIRONMENT",
    "Settings come from flags, then from the environment, then from",
    ".Pa sds.env",
    "in the data folder, then from",
    ".Pa /etc/sds/sds.env .",
    "The page",
    ".Dq operating",
    "of",
    ".Nm",
    ".Cm docs",
    "explains them:",
    ...SETTING_NAMES.map((name, index) => `.Ev ${name}${index === SETTING_NAMES.length - 1 ? " ." : " ,"}`),
    ".Sh FILES",
    ".Bl -tag -width Ds",
    ...FILES.flatMap(([path, meaning]) => [`.It Pa ${path}`, text(meaning)]),
    ".El",
    ".Sh EXIT STATUS",
    ".Bl -tag -width Ds",
    ".It 0",
    "The command is done.",
    ".It 1",
    "The command failed.",
    ".It 2",
    "The command line or its input is wrong.",
    ".It 3",
    "There is no such thing.",
    ".El",
    ".Sh SEE ALSO",
    ".Nm",
    ".Cm docs",
    "prints the documentation of version",
    `${text(version)}.`,
  ].join("\n");
}

/** Returns the commands without subcommands, in the order of the help. Leaves out hidden commands. */
function leavesOf(command: Command): Command[] {
  const shown = command
    .createHelp()
    .visibleCommands(command)
    .filter((each) => each.name() !== "help");
  return shown.flatMap((each) => (each.commands.length === 0 ? [each] : leavesOf(each)));
}

function describe(command: Command): string[] {
  const { parent } = command;
  const names = parent === null || parent.parent === null ? [command.name()] : [parent.name(), command.name()];
  const args = command.registeredArguments.map((each) =>
    each.required ? `Ar ${each.name()}` : `Op Ar ${each.name()}`,
  );
  return [
    `.It ${[...names.map((name) => `Cm ${name}`), ...args].join(" ")}`,
    text(command.description()),
    ...(command.options.length === 0 ? [] : optionList(command.options)),
  ];
}

function optionList(options: readonly Option[]): string[] {
  const items = options.flatMap(({ flags, description, mandatory }) => {
    const [long = "", value] = flags.split(" ");
    const argument = value === undefined ? "" : ` Ar ${value.replaceAll(/[<>]/g, "")}`;
    return [`.It Fl ${long.slice(1)}${argument}`, text(`${description}${mandatory ? " (required)" : ""}`)];
  });
  return [".Bl -tag -width Ds", ...items, ".El"];
}

/**
 * Escapes a text for roff: each backslash, and a point or apostrophe at the start of a line. Puts each sentence on its
 * own line, as mdoc requires.
 */
function text(plain: string): string {
  return plain
    .replaceAll(/([.!?]) (?=[A-Z`])/g, "$1\n")
    .replaceAll("\\", "\\e")
    .replaceAll(/^(?=[.'])/gm, "\\&")
    .replaceAll(/`([^`]*)`/g, "\\(oq$1\\(cq");
}

import type { Command, Option } from "commander";
import { TOPIC_NAMES } from "../domain/events/event.ts";
import { TRIGGER_HANDLES } from "../domain/events/trigger.ts";
import { TOPICS as DOCS_TOPICS } from "../http/docs/site.ts";
import { readShopDomains } from "../store/open-store.ts";
import { COMPLETE, type SdsCommand } from "./command.ts";
import { configOf } from "./context.ts";
import { choicesOf, parseChoice } from "./options.ts";
import { printLine } from "./print.ts";

/**
 * The completion function for each shell. It calls `COMPLETE` with the words up to the cursor, and gets one candidate
 * per line. If there is no candidate, the shell completes file names.
 */
const SCRIPTS = {
  bash: `_sds() {
  local IFS=$'\\n' words=("\${COMP_WORDS[@]:1:COMP_CWORD}")
  COMPREPLY=($("\${COMP_WORDS[0]}" ${COMPLETE} -- "\${words[@]}" 2>/dev/null))
}
complete -o default -F _sds sds
`,
  zsh: `#compdef sds
_sds() {
  local -a found
  found=("\${(@f)$("\${words[1]}" ${COMPLETE} -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -n "\${found[*]}" ]]; then compadd -a found; else _files; fi
}
if [[ "\${funcstack[1]}" = _sds ]]; then _sds; else compdef _sds sds; fi
`,
  fish: `function __sds_complete
  set -l words (commandline -opc) (commandline -ct)
  $words[1] ${COMPLETE} -- $words[2..] 2>/dev/null
end
complete -c sds -f -n '__sds_complete | string length -q' -a '(__sds_complete)'
`,
};
const SHELLS = Object.keys(SCRIPTS) as (keyof typeof SCRIPTS)[];

export function addCommands(program: SdsCommand): void {
  program
    .command("completions <shell>")
    .description("print the completions of commands, options and shops for bash, zsh or fish")
    .examples(
      "sds completions bash > /etc/bash_completion.d/sds",
      "sds completions zsh > /usr/local/share/zsh/site-functions/_sds",
      "sds completions fish > ~/.config/fish/completions/sds.fish",
    )
    .action((shell: string) => printLine(SCRIPTS[parseChoice("the shell", shell, SHELLS)].trimEnd()));

  program
    .command(`${COMPLETE} [words...]`, { hidden: true })
    .description("print the candidates for the last word of a command line, one a line")
    .examples(`sds ${COMPLETE} -- shop show alp`)
    .action(async (words: string[], _: object, command: Command) => {
      const candidates = await candidatesFor(program, words, command);
      if (candidates.length > 0) printLine(candidates.join("\n"));
    });
}

/** Returns the candidates for the last word, which may be empty. @param words without the program's name */
async function candidatesFor(program: Command, words: readonly string[], own: Command): Promise<string[]> {
  const { command, option, place, data } = walk(program, words.slice(0, -1));
  const word = words.at(-1) ?? "";
  // Domains of shops on PostgreSQL are not completed, because a Tab must not wait for a server.
  const shops = () => readShopDomains(data ?? configOf(own).data);
  const all =
    option !== undefined
      ? await valuesOf(option, word, shops)
      : word.startsWith("-")
        ? optionsOf(command).flatMap(({ long }) => long ?? [])
        : [...(place === 0 ? subcommandsOf(command) : []), ...(await argumentsOf(command, place, shops))];
  return all.filter((candidate) => candidate.startsWith(word));
}

interface Walk {
  command: Command;
  /** The option whose value comes next. */
  option: Option | undefined;
  /** How many arguments of the command come before the cursor. */
  place: number;
  /** The value of --data. */
  data: string | undefined;
}

/** Returns the command that is named before the cursor, and which argument or option value comes next. */
function walk(program: Command, words: readonly string[]): Walk {
  const state: Walk = { command: program, option: undefined, place: 0, data: undefined };
  for (const word of words) {
    const subcommand = state.command.commands.find((each) => each.name() === word);
    if (state.option !== undefined) {
      if (state.option.long === "--data") state.data = word;
      state.option = undefined;
    } else if (word.startsWith("-")) {
      state.option = optionsOf(state.command).find((each) => each.long === word && each.required);
    } else if (subcommand === undefined) {
      state.place += 1;
    } else {
      state.command = subcommand;
    }
  }
  return state;
}

function subcommandsOf(command: Command): string[] {
  const names = command
    .createHelp()
    .visibleCommands(command)
    .map((each) => each.name());
  return names.length > 1 ? names : [];
}

/** The options of a command and of the whole program. */
function optionsOf(command: Command): Option[] {
  const help = command.createHelp();
  return [...help.visibleOptions(command), ...help.visibleGlobalOptions(command), ...rootOptions(command)];
}

function rootOptions({ parent }: Command): readonly Option[] {
  if (parent === null) return [];
  return parent.parent === null ? parent.options.filter(({ long }) => long !== "--version") : rootOptions(parent);
}

async function valuesOf(option: Option, word: string, shops: () => Promise<string[]>): Promise<readonly string[]> {
  const placeholder = /<(.*)>/.exec(option.flags)?.[1];
  if (placeholder === "domain") return shops();
  if (placeholder === "topic") return TOPIC_NAMES;
  if (placeholder === "topics") return asList(word, TOPIC_NAMES);
  if (option.long === "--triggers") return ["all", "none", ...asList(word, TRIGGER_HANDLES)];
  return choicesOf(option);
}

/** Completes a comma-separated list. For each value that the list lacks, returns the list with this value added. */
function asList(word: string, values: readonly string[]): string[] {
  const before = word.slice(0, word.lastIndexOf(",") + 1);
  const given = before.split(",");
  return values.filter((value) => !given.includes(value)).map((value) => `${before}${value}`);
}

/** Names of arguments that are a shop's domain. */
const DOMAINS = ["domain", "old"];

async function argumentsOf(
  command: Command,
  place: number,
  shops: () => Promise<string[]>,
): Promise<readonly string[]> {
  const name = command.registeredArguments[place]?.name() ?? "";
  if (DOMAINS.includes(name)) return command.name() === "add" ? [] : shops();
  if (command.name() === "docs") return name === "topic" ? DOCS_TOPICS.map(({ topic }) => topic) : [];
  return name === "shell" ? SHELLS : [];
}

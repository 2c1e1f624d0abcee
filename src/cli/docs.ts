import type { Command } from "commander";
import { SdsError } from "../domain/error.ts";
import { isLike } from "../domain/records/refusal.ts";
import { type Entry, TOPICS } from "../http/docs/site.ts";
import { example, JSON_OPTION } from "./options.ts";
import { printJson, printLine, printTable, tell } from "./print.ts";

/** The width of lines where the terminal does not say its own, and the greatest that is easy to read. */
const DEFAULT_COLUMNS = 80;
const MAX_COLUMNS = 100;

export function addDocsCommand(program: Command): void {
  program
    .command("docs")
    .description("print a page of the documentation; without a topic, list the pages. `serve` has the same at /docs")
    .argument("[topic]", "a page or a section, such as quick-start or errors")
    .option(...JSON_OPTION)
    .addHelpText("after", example("sds docs", "sds docs quick-start", "sds docs errors | less"))
    .action((topic: string | undefined, { json = false }: { json?: boolean }) => {
      if (topic === undefined) list(json);
      else print(findTopic(topic), json);
    });
}

function list(json: boolean): void {
  if (json) {
    printJson(TOPICS.map(({ topic, name, summary }) => ({ topic, name, summary })));
    return;
  }
  printTable(
    ["TOPIC", "WHAT"],
    TOPICS.map(({ topic, name, summary }) => [topic, `${name}: ${summary}`]),
  );
  tell("Print one with `sds docs TOPIC`.");
}

function print({ topic, name, text: textOf }: Entry, json: boolean): void {
  const text = textOf();
  if (json) printJson({ topic, name, text });
  else printLine((process.stdout.isTTY ? forTerminal(text) : text).trimEnd());
}

/** @throws SdsError `not_found`, with the topics that are alike */
function findTopic(given: string): Entry {
  const found = TOPICS.find(({ topic }) => topic === given);
  if (found === undefined) {
    const near = TOPICS.filter(({ topic, name }) => isNear(given, topic) || isNear(given, name)).map(
      ({ topic }) => topic,
    );
    const hint = near.length === 0 ? "`sds docs` lists the topics" : `did you mean ${near.join(" or ")}?`;
    throw new SdsError("not_found", `there is no topic ${given}: ${hint}`);
  }
  return found;
}

/** Whether a topic is misspelt, or a part of its name was given. */
function isNear(given: string, name: string): boolean {
  return isLike(given, name) || (given.length > 2 && name.toLowerCase().includes(given.toLowerCase()));
}

/** With colours, or with none if NO_COLOR is set. */
function forTerminal(text: string): string {
  const columns = Math.min(process.stdout.columns || DEFAULT_COLUMNS, MAX_COLUMNS);
  return Bun.markdown.ansi(text, { colors: !process.env["NO_COLOR"], columns });
}

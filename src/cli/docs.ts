import { SdsError } from "../domain/error.ts";
import { isLike } from "../domain/records/refusal.ts";
import { type Entry, TOPICS } from "../http/docs/site.ts";
import type { JsonFlag, SdsCommand } from "./command.ts";
import { printJson, printLine, printList, tell } from "./print.ts";

/** The width if the terminal does not tell its own. */
const DEFAULT_COLUMNS = 80;
/** Wider text is hard to read. */
const MAX_COLUMNS = 100;

export function addDocsCommand(program: SdsCommand): void {
  program
    .command("docs")
    .description("print a page of the documentation; without a topic, list the pages. `serve` has the same at /docs")
    .argument("[topic]", "a page or a section, such as quick-start or errors")
    .jsonOption()
    .examples("sds docs", "sds docs quick-start", "sds docs errors | less")
    .action((topic: string | undefined, options: JsonFlag) => {
      if (topic === undefined) list(options);
      else print(findTopic(topic), options);
    });
}

function list({ json }: JsonFlag): void {
  const topics = TOPICS.map(({ topic, name, summary }) => ({ topic, name, summary }));
  printList(json, topics, "There is no documentation.", {
    TOPIC: ({ topic }) => topic,
    WHAT: ({ name, summary }) => `${name}: ${summary}`,
  });
  if (!json) tell("Print one with `sds docs TOPIC`.");
}

function print({ topic, name, text: textOf }: Entry, { json }: JsonFlag): void {
  const text = textOf();
  if (json) printJson({ topic, name, text });
  else printLine((process.stdout.isTTY ? forTerminal(text) : text).trimEnd());
}

/** Finds a topic by its name. @throws SdsError `not_found`, with the similar topics */
function findTopic(given: string): Entry {
  const found = TOPICS.find(({ topic }) => topic === given);
  if (found !== undefined) return found;
  const near = TOPICS.filter(({ topic, name }) => isNear(given, topic) || isNear(given, name));
  const suggestion = `did you mean ${near.map(({ topic }) => topic).join(" or ")}?`;
  const hint = near.length === 0 ? "`sds docs` lists the topics" : suggestion;
  throw new SdsError("not_found", `there is no topic ${given}: ${hint}`);
}

/** Whether a topic's name is similar to the given text, or contains it. */
function isNear(given: string, name: string): boolean {
  return isLike(given, name) || (given.length > 2 && name.toLowerCase().includes(given.toLowerCase()));
}

/** Renders text for the terminal: in colours, unless NO_COLOR is set. */
function forTerminal(text: string): string {
  const columns = Math.min(process.stdout.columns || DEFAULT_COLUMNS, MAX_COLUMNS);
  return Bun.markdown.ansi(text, { colors: !process.env["NO_COLOR"], columns });
}

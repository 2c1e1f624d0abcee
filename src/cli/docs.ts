import { SdsError } from "../domain/error.ts";
import { type Entry, TOPICS } from "../http/docs/site.ts";
import { isLike } from "../lib/similar.ts";
import type { JsonFlag, SdsCommand } from "./command.ts";
import { DEFAULT_COLUMNS, printJson, printLine, printList, tell } from "./print.ts";

/** Maximum width of a page, because wider text is hard to read. */
const MAX_COLUMNS = 100;

export function addCommands(program: SdsCommand): void {
  program
    .command("docs")
    .description("print a page of the documentation; without a topic, list the pages. `serve` has these pages at /docs")
    .argument("[topic]", "a page or a section, such as quick-start or errors")
    .jsonOption()
    .examples("sds docs", "sds docs quick-start", "sds docs errors")
    .action((topic: string | undefined, options: JsonFlag) => {
      if (topic === undefined) return list(options);
      return print(findTopic(topic), options);
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

async function print({ topic, name, text: textOf }: Entry, { json }: JsonFlag): Promise<void> {
  const text = textOf();
  if (json) printJson({ topic, name, text });
  else if (process.stdout.isTTY) await page(forTerminal(withCommands(text)).trimEnd());
  else printLine(text.trimEnd());
}

/** Shows a text in the user's pager, or else in `less`. If there is no pager, prints the text. */
async function page(text: string): Promise<void> {
  const pager = process.env["PAGER"] ?? "less";
  // For less: leave at once if the text fits the screen, keep colours, and keep the text on the screen at the end.
  const env = { LESS: "FRX", ...process.env };
  const [program = "", ...args] = pager.split(" ").filter((word) => word !== "");
  if (program === "" || Bun.which(program) === null) return printLine(text);
  const child = Bun.spawn([program, ...args], {
    stdin: Buffer.from(`${text}\n`),
    stdout: "inherit",
    stderr: "inherit",
    env,
  });
  await child.exited;
}

/** Replaces each link to another page with the command that prints that page. */
function withCommands(markdown: string): string {
  return markdown.replaceAll(
    /\[([^\]]+)\]\(([a-z-]+)\.md(?:#([\w-]+))?\)/g,
    (link, label: string, guide: string, anchor?: string) => {
      const topic = [anchor, guide].find((each) => TOPICS.some((entry) => entry.topic === each));
      return topic === undefined ? link : `${label} (\`sds docs ${topic}\`)`;
    },
  );
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

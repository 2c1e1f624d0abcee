import { sectionText } from "./outline.ts";
import webhooks from "./webhooks.md" with { type: "text" };

/** The function that verifies X-Service-Signature in a language, from the section "Receivers" of webhooks.md. */
interface VerifyFunction {
  /** Such as "Node". */
  language: string;
  /** Such as "Express"; undefined for none. */
  framework: string | undefined;
  /** Markdown: code that gives the raw body, and code that gives the header. */
  rawBody: string;
  header: string;
  /** The language of the code, for colours. */
  highlighting: string;
  code: string;
}

const CODE_BLOCK = /^```(\w+)\n([\s\S]*?)\n```$/gm;
/** A row of the table: language and framework, raw body, header. */
const ROW = /^\| (\w+)(?: \((\w+)\))? \| (`.+) \| (`.+`) \|$/gm;

/** Returns the functions in the order of webhooks.md. Each is part of a program that tests run with signed bodies. */
export function verifyFunctions(): VerifyFunction[] {
  const text = sectionText(webhooks, "receivers") ?? "";
  const rows = [...text.matchAll(ROW)];
  return [...text.matchAll(CODE_BLOCK)].map(([, highlighting = "", program = ""], index) => {
    const [, language = "", framework, rawBody = "", header = ""] = rows[index] ?? [];
    return { language, framework, rawBody, header, highlighting, code: functionOf(program) };
  });
}

/** Leaves out the last paragraph of a program, which only reads its input and prints the result. */
function functionOf(program: string): string {
  return program.slice(0, program.lastIndexOf("\n\n"));
}

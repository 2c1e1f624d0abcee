import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "./app.ts";

const FOLDER = join(import.meta.dir, "../../src/docs");

/** A block of code in a page of documentation. */
export interface Sample {
  page: string;
  language: string;
  code: string;
  /** The file name of the program, if the code begins with a comment that has only this name. */
  file: string | undefined;
}

/** All blocks of code that name their language. */
export const SAMPLES: readonly Sample[] = await Promise.all(
  readdirSync(FOLDER)
    .filter((name) => name.endsWith(".md"))
    .toSorted()
    .map(async (page) => ({ page, text: await Bun.file(join(FOLDER, page)).text() })),
).then((pages) => pages.flatMap(({ page, text }) => samplesOf(page, text)));

/** Finds a page's blocks of code that name their language. */
export function samplesOf(page: string, text: string): Sample[] {
  return [...text.matchAll(/^```(\w+)\n([\s\S]*?)^```/gm)].map(([, language = "", code = ""]) => ({
    page,
    language,
    code,
    file: /^(?:\/\/|#) (\w[\w-]*\.\w+)\n/.exec(code)?.[1],
  }));
}

/** Returns the code of the documentation's program with this file name. */
export function programNamed(file: string): string {
  const found = SAMPLES.find((sample) => sample.file === file);
  if (found === undefined) throw new Error(`no page has ${file}`);
  return found.code;
}

/** Saves the documentation's program with this file name in a temporary folder. @returns its path */
export function savedProgram(file: string): string {
  const path = join(temporaryFolder(), file);
  writeFileSync(path, programNamed(file));
  return path;
}

/** Returns the page's block of shell code that contains the text. */
export function shellWith(page: string, text: string): string {
  const found = SAMPLES.find((each) => each.page === page && each.language === "sh" && each.code.includes(text));
  if (found === undefined) throw new Error(`${page} has no shell code with ${text}`);
  return found.code;
}

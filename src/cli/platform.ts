import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Command } from "commander";
import { invalid, messageOf, SdsError } from "../domain/error.ts";
import { ASKED_SCOPES, NEEDED_SCOPES, OPTIONAL_SCOPES } from "../domain/platform/connection.ts";
import { appFiles, appScopes } from "../shopify/install/app-files.ts";
import type { JsonFlag, SdsCommand } from "./command.ts";
import { configOf } from "./context.ts";
import { parseChoice } from "./options.ts";
import { printJson, printLine, tell } from "./print.ts";

type AppFilesFlags = JsonFlag & { url: string; without?: string[]; with?: string[]; force?: boolean };

export function addPlatformCommands(program: SdsCommand): void {
  const platform = program
    .command("platform")
    .description("write the files that describe the app to the platform")
    .examples("sds platform files my-app --url https://sds.example.com");

  platform
    .command("files <dir>")
    .description(
      "write the app's platform webhooks and workflow triggers into a folder, " +
        "as files for the platform's own command-line tool",
    )
    .option(
      "--url <url>",
      "the address at which the platform reaches this service",
      parseUrl,
      "https://sds.example.com",
    )
    .option(
      "--without <scope>",
      "leave out a scope that the platform has not approved, and its webhooks; again for each: " +
        ASKED_SCOPES.join(", "),
      (scope, before: string[] = []) => [...before, parseChoice("--without", scope, ASKED_SCOPES)],
    )
    .option(
      "--with <scope>",
      `also ask for a scope that few need, and its webhooks; again for each: ${OPTIONAL_SCOPES.join(", ")}`,
      (scope, before: string[] = []) => [...before, parseChoice("--with", scope, OPTIONAL_SCOPES)],
    )
    .option("--force", "overwrite files that exist")
    .jsonOption()
    .examples("sds platform files my-app --url https://sds.example.com")
    .action(writeAppFiles);
}

function writeAppFiles(dir: string, flags: AppFilesFlags, command: Command): void {
  const { url, without = [], force = false, json } = flags;
  if (dir.trim() === "") throw invalid("say which folder to write into");
  const files = appFiles(url, configOf(command).platformClientId, appScopes(without, flags.with));
  const paths = Object.keys(files).map((path) => join(dir, path));
  const existing = force ? undefined : paths.find((path) => existsSync(path));
  if (existing !== undefined)
    throw new SdsError("conflict", `${existing} exists already: add --force to overwrite it; nothing was written`);
  try {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(dir, path)), { recursive: true });
      writeFileSync(join(dir, path), text);
    }
  } catch (thrown) {
    throw new SdsError("failed", `cannot write into ${dir}: ${messageOf(thrown)}`, { cause: thrown });
  }
  if (json) {
    printJson({ files: paths });
    return;
  }
  for (const path of paths) printLine(path);
  const needed = without.filter((scope) => NEEDED_SCOPES.includes(scope));
  if (needed.length > 0) tell(`Until the platform grants ${needed.join(" and ")}, no shop can be connected.`);
  if (command.getOptionValueSource("url") === "default")
    tell(`The address in these files is only an example, ${url}. Set yours with --url.`);
  else tell("Now run `shopify app deploy` in that folder.");
}

/** The platform posts only to https. @throws SdsError `invalid` */
function parseUrl(text: string): string {
  const url = URL.parse(text);
  const isPlain = url?.protocol === "https:" && url.username === "" && url.search === "" && url.hash === "";
  if (isPlain) return url.href.replace(/\/$/, "");
  throw invalid(`--url is "${text}": it must be an https address, like https://sds.example.com`);
}

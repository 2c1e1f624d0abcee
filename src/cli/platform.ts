import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Command } from "commander";
import { messageOf, SdsError } from "../domain/error.ts";
import { appFiles } from "../shopify/install/app-files.ts";
import { configOf, example, JSON_OPTION } from "./context.ts";
import { printJson, printLine, tell } from "./print.ts";

interface Options {
  url?: string;
  force?: boolean;
  json?: boolean;
}

export function addPlatformCommands(program: Command): void {
  const platform = program
    .command("platform")
    .description("what the platform must be told of the app")
    .addHelpText("after", example("sds platform files my-app --url https://sds.example.com"));

  platform
    .command("files <dir>")
    .description("write the app's webhooks and workflow triggers for the platform's own command-line tool")
    .option("--url <url>", "where this service can be reached from the internet", "https://sds.example.com")
    .option("--force", "write over files that are there")
    .option(...JSON_OPTION)
    .addHelpText("after", example("sds platform files my-app --url https://sds.example.com"))
    .action((dir: string, options: Options, command: Command) => {
      if (dir.trim() === "") throw new SdsError("invalid", "say which folder to write into");
      const files = appFiles(parseAddress(options.url ?? ""), configOf(command).platformClientId);
      const paths = Object.keys(files);
      const inTheWay = options.force === true ? undefined : paths.find((path) => existsSync(join(dir, path)));
      if (inTheWay !== undefined) throw new SdsError("conflict", `${join(dir, inTheWay)} is there already: say --force to write over it; nothing was written`);
      try {
        for (const [path, text] of Object.entries(files)) {
          mkdirSync(dirname(join(dir, path)), { recursive: true });
          writeFileSync(join(dir, path), text);
        }
      } catch (thrown) {
        throw new SdsError("failed", `cannot write into ${dir}: ${messageOf(thrown)}`, { cause: thrown });
      }
      if (options.json) return printJson({ files: paths.map((path) => join(dir, path)) });
      for (const path of paths) printLine(join(dir, path));
      if (command.getOptionValueSource("url") === "default") tell(`The address in them is an example, ${options.url}: say yours with --url.`);
      else tell("Now run `shopify app deploy` in that folder.");
    });
}

/** The platform posts to https alone. */
function parseAddress(text: string): string {
  const url = URL.parse(text);
  const plain = url?.protocol === "https:" && url.username === "" && url.search === "" && url.hash === "";
  if (plain) return url.href.replace(/\/$/, "");
  throw new SdsError("invalid", `--url is "${text}": it must be an https address, like https://sds.example.com`);
}

import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import type { Command } from "commander";
import { invalid, messageOf, SdsError } from "../domain/error.ts";
import { ASKED_SCOPES, NEEDED_SCOPES, OPTIONAL_SCOPES } from "../domain/platform/connection.ts";
import { publicAppKey } from "../shopify/api/app-key.ts";
import { mergeAppFile } from "../shopify/install/app-file-merge.ts";
import { APP_FILE, appFiles, appScopes, OWN_FILE, triggerFiles } from "../shopify/install/app-files.ts";
import type { JsonFlag, SdsCommand } from "./command.ts";
import { readAppKeyFile } from "./connection.ts";
import { configOf } from "./context.ts";
import { parseChoice } from "./options.ts";
import { printJson, printLine, tell, warn } from "./print.ts";

type AppFilesFlags = JsonFlag & {
  url: string;
  config?: string;
  without?: string[];
  with?: string[];
  force?: boolean;
};

export function addCommands(program: SdsCommand): void {
  const platform = program
    .command("platform")
    .description("prepare an app at the platform: its files, and the public half of its key")
    .examples("sds platform files my-app --url https://sds.example.com");

  platform
    .command("jwk <file>")
    .description("print the public half of the app's own private key, for the platform's developer dashboard")
    .examples("sds platform jwk app-key.pem")
    .action((file: string) => printJson(publicAppKey(readAppKeyFile(file)), 2));

  platform
    .command("files <dir>")
    .description(
      "write the files from which the platform's own command-line tool deploys an app: scopes, webhooks and workflow " +
        `triggers. If the folder has an app already, add only what is missing in its ${APP_FILE}`,
    )
    .option(
      "--url <url>",
      "the address at which the platform reaches this service",
      parseUrl,
      "https://sds.example.com",
    )
    .option("--config <name>", "add to shopify.app.NAME.toml, as the platform's tool names its files", parseName)
    .option(
      "--without <scope>",
      "leave out a scope that the platform has not approved, and its webhooks; repeat the flag for each: " +
        ASKED_SCOPES.join(", "),
      (scope, before: string[] = []) => [...before, parseChoice("--without", scope, ASKED_SCOPES)],
    )
    .option(
      "--with <scope>",
      "ask also for a scope that few shops need, and its webhooks; repeat the flag for each: " +
        OPTIONAL_SCOPES.join(", "),
      (scope, before: string[] = []) => [...before, parseChoice("--with", scope, OPTIONAL_SCOPES)],
    )
    .option("--force", "write all files again, if this command wrote the whole app before")
    .jsonOption()
    .examples("sds platform files my-app --url https://sds.example.com")
    .action(writeAppFiles);
}

/** The texts of the files by path, and what the operator should know about them. */
interface FilePlan {
  files: Record<string, string>;
  added: string[];
  notes: string[];
}

function writeAppFiles(dir: string, flags: AppFilesFlags, command: Command): void {
  if (dir.trim() === "") throw invalid("say which folder to write into");
  const isExample = command.getOptionValueSource("url") === "default";
  const appFile = findAppFile(dir, flags.config);
  if (appFile !== undefined && !flags.force && isExample)
    throw invalid("say with --url at which address the platform reaches this service");
  const { files, added, notes } = planFiles(dir, appFile, flags, configOf(command).platformClientId);
  const changed = Object.entries(files).filter(([path, text]) => textOf(path) !== text);
  try {
    for (const [path, text] of changed) replaceFile(path, text);
  } catch (thrown) {
    throw new SdsError("failed", `cannot write into ${dir}: ${messageOf(thrown)}`, { cause: thrown });
  }
  const paths = changed.map(([path]) => path);
  if (flags.json) printJson({ files: paths, added, notes });
  else {
    for (const path of paths) printLine(path);
    for (const line of added) printLine(`  + ${line}`);
  }
  const { without = [] } = flags;
  const needed = without.filter((scope) => NEEDED_SCOPES.includes(scope));
  if (needed.length > 0) tell(`Until the platform grants ${needed.join(" and ")}, no shop can be connected.`);
  warn(notes);
  tell(nextStep(paths, appFile, isExample ? flags.url : undefined));
}

function nextStep(paths: readonly string[], appFile: string | undefined, exampleUrl: string | undefined): string {
  if (exampleUrl !== undefined)
    return `${exampleUrl} in these files is only an example. Write them again with your address: --url URL --force.`;
  if (paths.length === 0) return "That folder has all parts already. Nothing was changed.";
  if (appFile !== undefined) return "Now look at the changes, and run `shopify app deploy` in that folder.";
  return (
    "Now run `shopify app deploy` in that folder. It replaces the app's whole configuration: if the app has files " +
    "elsewhere, write into their folder instead."
  );
}

/** @returns the app's file in a folder; undefined for a folder without an app */
function findAppFile(dir: string, config: string | undefined): string | undefined {
  const path = join(dir, config === undefined ? APP_FILE : `shopify.app.${config}.toml`);
  if (existsSync(path)) return path;
  if (config !== undefined) throw new SdsError("not_found", `there is no ${path}`);
  const others = existsSync(dir) ? readdirSync(dir).filter((name) => /^shopify\.app\..+\.toml$/.test(name)) : [];
  if (others.length === 0) return undefined;
  throw new SdsError("conflict", `${dir} has ${others.join(", ")}: choose one with --config NAME; nothing was written`);
}

function planFiles(dir: string, appFile: string | undefined, flags: AppFilesFlags, clientId: string | null): FilePlan {
  const scopes = appScopes(flags.without ?? [], flags.with);
  const inDir = (files: Record<string, string>) =>
    Object.fromEntries(Object.entries(files).map(([path, text]) => [join(dir, path), text]));
  const stored = appFile === undefined ? undefined : readText(appFile);
  if (appFile !== undefined && flags.force && !stored?.startsWith(OWN_FILE))
    throw new SdsError(
      "conflict",
      `--force replaces only files that sds wrote, and ${appFile} is not one: without --force, sds adds to it`,
    );
  if (appFile === undefined || stored === undefined || flags.force) {
    return { files: inDir(appFiles(flags.url, clientId, scopes)), added: [], notes: [] };
  }
  const { text, added, notes, extensions } = merged(appFile, stored, { address: flags.url, clientId, scopes });
  const triggers = Object.entries(inDir(triggerFiles(extensions)));
  const kept = triggers.filter(([path, wanted]) => ![undefined, wanted].includes(textOf(path)));
  return {
    files: { [appFile]: text, ...Object.fromEntries(triggers.filter((file) => !kept.includes(file))) },
    added,
    notes: [
      ...notes,
      ...kept.map(
        ([path]) => `${path} was changed by somebody, and is kept: delete it and run this again to get the file of sds`,
      ),
    ],
  };
}

function merged(path: string, text: string, needs: Parameters<typeof mergeAppFile>[1]) {
  try {
    return mergeAppFile(text, needs);
  } catch (thrown) {
    throw new SdsError("conflict", `${path}: ${messageOf(thrown)}; nothing was written`, { cause: thrown });
  }
}

function textOf(path: string): string | undefined {
  return existsSync(path) ? readText(path) : undefined;
}

/** Reads a UTF-8 text, and keeps its byte order mark. @throws SdsError `conflict` if the file cannot be read */
function readText(path: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(readFileSync(path));
  } catch (thrown) {
    throw new SdsError("conflict", `${path} cannot be read: ${messageOf(thrown)}; nothing was written`, {
      cause: thrown,
    });
  }
}

/** Replaces a file as a whole. If the disk is full, the old file stays. */
function replaceFile(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  const target = existsSync(path) ? realpathSync(path) : path;
  writeFileSync(`${target}.draft`, text, { mode: statSync(target, { throwIfNoEntry: false })?.mode ?? 0o666 });
  renameSync(`${target}.draft`, target);
}

/** Checks a value of `--config`. @throws SdsError `invalid` */
function parseName(text: string): string {
  if (/^[\w-]+$/.test(text)) return text;
  throw invalid(`--config is "${text}": it must be the NAME in shopify.app.NAME.toml, such as staging`);
}

/** Checks a value of `--url`: the platform posts only to https. @throws SdsError `invalid` */
function parseUrl(text: string): string {
  const url = URL.parse(text);
  const isPlain = url?.protocol === "https:" && url.username === "" && url.search === "" && url.hash === "";
  if (isPlain) return url.href.replace(/\/$/, "");
  throw invalid(`--url is "${text}": it must be an https address, like https://sds.example.com`);
}

import { readFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Environment } from "../config.ts";
import { codeOf, invalid, isForbidden, messageOf } from "../domain/error.ts";
import { nearest } from "../lib/similar.ts";
import { rightsProblem } from "../lib/users.ts";
import { SETTING_NAMES } from "../setting-names.ts";

/**
 * Settings of all commands on this machine. Settings of a data folder override them. The Debian package makes this
 * file.
 */
const SYSTEM_FILE = "/etc/sds/sds.env";
const MAX_BYTES = 64 * 1024;
/** The only setting without the prefix `SDS_`: PostgreSQL's programs read it too. */
const FOREIGN_NAME = "PGPASSFILE";

/**
 * Adds the settings of `DATA/sds.env` and of the system's file to the environment. The environment has priority, then
 * the data folder's file.
 * @param data the flag `--data`
 * @returns warnings of unknown settings
 * @throws SdsError `invalid` for a line that is no setting; the message has the file and the line's number
 */
export function addSettings(data: string | undefined, env: Environment, systemFile = SYSTEM_FILE): string[] {
  const system = readSettings(systemFile);
  const folder = resolve(data ?? env["SDS_DATA"] ?? system.get("SDS_DATA") ?? "./data");
  const file = join(folder, "sds.env");
  const own = readSettings(file);
  if (own.has("SDS_DATA")) throw invalid(`${file} sets SDS_DATA, but this file is read only when the folder is known`);
  const warnings = [
    ...unknownNames("the environment", Object.keys(env)),
    ...unknownNames(systemFile, [...system.keys()]),
    ...unknownNames(file, [...own.keys()]),
  ];
  for (const [name, value] of [...own, ...system]) env[name] ??= value;
  return warnings;
}

/** Reads a file of settings. @returns an empty map if there is no file */
function readSettings(path: string): Map<string, string> {
  const settings = new Map<string, string>();
  for (const [index, line] of readLines(path).entries()) {
    const setting = parseLine(line);
    if (setting === undefined)
      throw invalid(`${path} line ${index + 1} is no setting: write NAME=value, or # before a comment`);
    if (setting !== null) settings.set(...setting);
  }
  return settings;
}

function readLines(path: string): string[] {
  try {
    const file = statSync(path);
    if (file.size > MAX_BYTES) throw invalid(`the file is larger than ${MAX_BYTES / 1024} KiB`);
    // Reading a pipe or a device might never end.
    if (!file.isFile() && !file.isDirectory()) throw invalid("this is a pipe or a device: write a file in its place");
    const text = new TextDecoder("utf-8", { fatal: true }).decode(readFileSync(path));
    return text.split(/\r?\n/);
  } catch (thrown) {
    if (["ENOENT", "ENOTDIR"].includes(codeOf(thrown))) return [];
    const reason = isForbidden(thrown) ? rightsProblem(path) : messageOf(thrown);
    throw invalid(`the settings in ${path} cannot be read: ${reason}`, thrown);
  }
}

/**
 * Parses a line of a settings file. A value may be in single or double quotes, without escapes. After a value, ` #`
 * begins a comment.
 * @returns null for an empty line or a comment; undefined for a line that is no setting
 */
export function parseLine(line: string): [name: string, value: string] | null | undefined {
  if (/^\s*(?:#.*)?$/.test(line)) return null;
  // Control characters could end up in messages and headers.
  if (/\p{Cc}/u.test(line.replaceAll("\t", " "))) return undefined;
  const [, name = "", quoted, plain] =
    /^\s*([A-Za-z_][A-Za-z0-9_]*)=(?:("[^"]*"|'[^']*')|([^\s"'#](?:.*?\S)?)?)\s*(?:(?<=\s)#.*)?$/.exec(line) ?? [];
  return name === "" ? undefined : [name, quoted?.slice(1, -1) ?? plain ?? ""];
}

/** Returns a warning for each name that is no setting. Skips environment variables that do not begin with SDS_. */
function unknownNames(place: string, names: readonly string[]): string[] {
  const ours = place === "the environment" ? names.filter((name) => name.startsWith("SDS_")) : names;
  return ours
    .filter((name) => name !== FOREIGN_NAME && !SETTING_NAMES.includes(name))
    .map((name) => {
      const meant = nearest(name, SETTING_NAMES);
      return `${name} in ${place} is no setting of sds${meant === undefined ? "" : `: did you mean ${meant}?`}`;
    });
}

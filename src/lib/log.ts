export const LOG_LEVELS = ["debug", "info", "warn", "error"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

type Fields = Record<string, string | number | boolean | null | undefined>;

export type Log = Record<LogLevel, (message: string, fields?: Fields) => void>;

/** Matches API keys (group 1: the fingerprint), signing secrets, intake secrets and the platform's access tokens. */
const SECRETS = /(cad(?:_|%5f)pk(?:_|%5f)[0-9a-f]{8})\w+|(?:whsec|intake)(?:_|%5f)[\w+/=%]+|shp[a-z]{2}(?:_|%5f)\w+/gi;
/**
 * Matches at least half of an API key's digits, because a person may have typed a space into the key. Does not match
 * names in a path, such as the id of a container's volume.
 */
const KEY_DIGITS = /(?<![0-9a-z/.])[0-9a-f]{24,48}(?![0-9a-z])/gi;
const FINGERPRINTS_AND_ADDRESSES = /cad_pk_\w+|[^\s"<>@]+@[^\s"<>@]+/g;

/** Hides secrets in a message. A person may have typed a key in the wrong place, or a server may repeat a key. */
export function masked(text: string): string {
  const hidden = text.replaceAll(SECRETS, (_secret, fingerprint = "") => `${fingerprint}[hidden]`);
  return hidden.replaceAll(KEY_DIGITS, "[hidden]");
}

/** Hides what callers must not log: secrets, fingerprints of keys, and e-mail addresses. */
function redact(text: string): string {
  return text.replaceAll(FINGERPRINTS_AND_ADDRESSES, "[redacted]").replaceAll(SECRETS, "[redacted]");
}

export interface LogTarget {
  isTTY?: boolean;
  write(text: string): unknown;
}

/** Invisible characters, and characters that control a terminal or text direction, except newlines and tabs. */
export const CONTROLS = /[^\P{Cc}\n\t]|[\p{Cf}\p{Zl}\p{Zp}\u115F\u1160\u3164\uFFA0]|\u034F|\u17B4|\u17B5/gu;

/** Replaces each control or invisible character with its code. Otherwise text from outside could control a terminal. */
export function printable(text: string): string {
  return text.replaceAll(CONTROLS, (character) => `<U+${codeOf(character)}>`);
}

/** Replaces control and invisible characters in JSON with JSON escapes. The value stays the same. */
export function escapeControls(json: string): string {
  const escaped = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return json.replaceAll(CONTROLS, (character) => character.split("").map(escaped).join(""));
}

function codeOf(character: string): string {
  return (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0");
}

/**
 * Creates a log that writes one JSON object on each line, or readable text on a terminal.
 * @param level the lowest level that is written; a function, if it can change
 */
export function createLog(level: LogLevel | (() => LogLevel), target: LogTarget, now: () => number): Log {
  const lowest = () => LOG_LEVELS.indexOf(typeof level === "string" ? level : level());
  const writer =
    (at: LogLevel) =>
    (message: string, fields: Fields = {}) => {
      if (LOG_LEVELS.indexOf(at) < lowest()) return;
      const time = new Date(now()).toISOString();
      const redacted = Object.entries(fields).map(
        ([name, value]) => [name, typeof value === "string" ? redact(value) : value] as const,
      );
      const words = () => redacted.map(([name, value]) => ` ${name}=${value}`).join("");
      const line = target.isTTY
        ? printable(`${time.slice(11, 23)} ${at.padEnd(5)} ${redact(message)}${words()}`)
        : JSON.stringify({ time, level: at, message: redact(message), ...Object.fromEntries(redacted) });
      target.write(`${line}\n`);
    };
  return { debug: writer("debug"), info: writer("info"), warn: writer("warn"), error: writer("error") };
}

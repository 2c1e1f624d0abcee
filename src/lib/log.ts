export const LOG_LEVELS = ["debug", "info", "warn", "error"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

type Fields = Record<string, string | number | boolean | null | undefined>;

export type Log = Record<LogLevel, (message: string, fields?: Fields) => void>;

/** API keys, secrets, access tokens and e-mail addresses. Callers must not log them; this pattern catches mistakes. */
const PRIVATE = /cad_pk_\w+|(?:whsec_|intake_)[\w+/=]+|shp[a-z]{2}_\w+|[^\s"<>@]+@[^\s"<>@]+/g;

function redact(text: string): string {
  return text.replaceAll(PRIVATE, "[redacted]");
}

export interface LogTarget {
  isTTY?: boolean;
  write(text: string): unknown;
}

/** Characters that control a terminal, or the direction of its text. Line ends and tabs are allowed. */
export const CONTROLS = /[^\P{Cc}\n\t]|[\p{Bidi_Control}\u2028\u2029]/gu;

/** Replaces control characters, because text from outside must not control the terminal. */
export function printable(text: string): string {
  return text.replaceAll(CONTROLS, "?");
}

/** Creates a log that writes one JSON object on each line, or readable text on a terminal. */
export function createLog(level: LogLevel, target: LogTarget, now: () => number): Log {
  const lowest = LOG_LEVELS.indexOf(level);
  const writer =
    (at: LogLevel) =>
    (message: string, fields: Fields = {}) => {
      if (LOG_LEVELS.indexOf(at) < lowest) return;
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

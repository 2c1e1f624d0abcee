import { readdirSync, readFileSync } from "node:fs";

/**
 * Reads the fields of /proc/PID/stat from the third on, so index 0 is field 3 of proc_pid_stat(5). Returns undefined if
 * the process has ended.
 */
function fieldsOf(pid: number): string[] | undefined {
  try {
    return readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)?.split(" ");
  } catch {
    return undefined;
  }
}

/** Adds up some fields, which are in hundredths of a second. @returns seconds */
function seconds(fields: readonly string[], from: number, to: number): number {
  return fields.slice(from, to).reduce((sum, field) => sum + Number(field), 0) / 100;
}

/** The processor time of a process so far, in seconds. */
export function processorSeconds(pid: number): number {
  // Fields 14 and 15 of /proc/PID/stat: user time and system time.
  return seconds(fieldsOf(pid) ?? [], 11, 13);
}

/** Processor time of a process and all its children, also ended ones, in seconds. */
export function familySeconds(pid: number): number {
  // Fields 14 to 17: user and system time of the process, and of its ended children. Field 4 is the parent's id.
  const own = seconds(fieldsOf(pid) ?? [], 11, 15);
  const children = readdirSync("/proc")
    .filter((name) => /^[0-9]+$/.test(name))
    .flatMap((name) => [fieldsOf(Number(name)) ?? []])
    .filter((fields) => fields[1] === String(pid));
  return children.reduce((sum, fields) => sum + seconds(fields, 11, 13), own);
}

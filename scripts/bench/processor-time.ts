import { readdirSync, readFileSync } from "node:fs";

/**
 * Reads the fields after the process name in /proc/PID/stat (see proc_pid_stat(5)); undefined if the process has ended.
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
  // User and system time: the 14th and 15th field of the line.
  return seconds(fieldsOf(pid) ?? [], 11, 13);
}

/** Processor time of a process and all its children, also ended ones, in seconds. */
export function familySeconds(pid: number): number {
  // The 16th and 17th field of the line are the times of ended children. The 4th field is the parent.
  const own = seconds(fieldsOf(pid) ?? [], 11, 15);
  const children = readdirSync("/proc")
    .filter((name) => /^[0-9]+$/.test(name))
    .flatMap((name) => [fieldsOf(Number(name)) ?? []])
    .filter((fields) => fields[1] === String(pid));
  return children.reduce((sum, fields) => sum + seconds(fields, 11, 13), own);
}

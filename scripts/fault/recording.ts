/** The files that a power cut can damage. */
export type DiskFile = "sds.db" | "sds.db-wal";

export type Operation =
  | { do: "write"; file: DiskFile; at: number; bytes: Buffer }
  | { do: "truncate"; file: DiskFile; length: number }
  | { do: "sync"; file: DiskFile }
  /** An HTTP answer with status 200 left the program. */
  | { do: "answer" };

/**
 * Returns the strace command that records a program. Put it before the program's own command. `-D` makes strace a
 * descendant of the program, so the process id is the program's.
 */
export function recorded(file: string): string[] {
  const calls = "pwrite64,write,writev,sendto,sendmsg,fsync,fdatasync,ftruncate";
  return [
    "strace",
    "-D",
    "-f",
    "-q",
    "-y",
    "-xx",
    "-s",
    "1000000",
    "--seccomp-bpf",
    "-e",
    `trace=${calls}`,
    "-o",
    file,
  ];
}

const CALL = /^\d+\s+(\w+)\(\d+<([^>]*)>(?:, )?(.*)$/;
const ANSWER = hex("HTTP/1.1 200");

/**
 * Reads what strace recorded. Operations are in the order in which their calls began. That is also the order on the
 * disk, because one thread writes the database.
 */
export function readRecording(text: string): Operation[] {
  return text.split("\n").flatMap((line): Operation[] => {
    const [, call = "", path = "", rest = ""] = CALL.exec(line) ?? [];
    const file = fileOf(path);
    if (file === undefined) return /^(write|send)/.test(call) && rest.includes(ANSWER) ? [{ do: "answer" }] : [];
    if (call === "pwrite64") {
      const [, data = "", at] = /^"((?:\\x[0-9a-f]{2})*)", \d+, (\d+)/.exec(rest) ?? [];
      if (at === undefined) throw new Error(`cannot read the recorded call ${line.slice(0, 200)}`);
      return [{ do: "write", file, at: Number(at), bytes: unhex(data) }];
    }
    if (call === "ftruncate") return [{ do: "truncate", file, length: Number.parseInt(rest, 10) }];
    return /^f(data)?sync$/.test(call) ? [{ do: "sync", file }] : [];
  });
}

function fileOf(path: string): DiskFile | undefined {
  const name = unhex(path).toString();
  if (name.endsWith("/sds.db")) return "sds.db";
  return name.endsWith("/sds.db-wal") ? "sds.db-wal" : undefined;
}

function hex(text: string): string {
  return [...Buffer.from(text)].map((byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("");
}

function unhex(text: string): Buffer {
  return Buffer.from(text.replaceAll("\\x", ""), "hex");
}

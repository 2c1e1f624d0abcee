/**
 * Records a first start, a backup and a restore with strace, and checks that a power cut cannot remove a name of a file
 * or folder. A name that was made, linked or renamed is safe only after a sync of the folder that contains it. The
 * folder must be synced before the next rename and before the end of the command. It must also be synced before a
 * database or master key is synced, because a commit is acknowledged then.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";

const PROGRAM = join(import.meta.dir, "../../dist/sds");
const CALL = /^\d+\s+(mkdir|link|rename|fsync|fdatasync)\((.*)\)\s+= 0$/;

/** @returns how many names were made, and how many syncs there were */
function checkNames(trace: string): { names: number; syncs: number } {
  const unsynced = new Set<string>();
  let names = 0;
  let syncs = 0;
  for (const line of trace.split("\n")) {
    const [, call = "", args = ""] = CALL.exec(line) ?? [];
    const paths = [...args.matchAll(/"([^"]*)"|<([^>]*)>/g)].map(([, text, open]) => text ?? open ?? "");
    const path = paths.at(-1) ?? "";
    if (call === "rename" && unsynced.size > 0)
      throw new Error(`${path} got its name before the name ${[...unsynced].join(", ")} was synced`);
    if (/^(mkdir|link|rename)$/.test(call)) {
      unsynced.add(path);
      names += 1;
    }
    if (!call.endsWith("sync")) continue;
    syncs += 1;
    for (const name of unsynced) if (dirname(name) === path) unsynced.delete(name);
    const isContent = /^(sds\.db|master\.key)/.test(basename(path));
    if (isContent && unsynced.size > 0)
      throw new Error(`${path} was synced before the name ${[...unsynced].join(", ")}`);
  }
  if (unsynced.size > 0)
    throw new Error(`the command ended, and the folder of ${[...unsynced].join(", ")} is not synced`);
  return { names, syncs };
}

const top = mkdtempSync(join(tmpdir(), "sds-fault-"));

/**
 * Runs a command under strace, and checks the names of files and folders that it makes. Prints how many it made.
 * @param least the command must make at least this many names
 */
async function check(what: string, data: string, args: string[], least: number): Promise<void> {
  const file = join(top, "trace");
  const strace = ["strace", "-f", "-q", "-y", "-o", file, "-e", "trace=mkdir,link,rename,fsync,fdatasync"];
  const child = Bun.spawn([...strace, PROGRAM, "--data", data, ...args], { stdout: "ignore", stderr: "pipe" });
  if ((await child.exited) !== 0) throw new Error(`${what}: ${await child.stderr.text()}`);
  const { names, syncs } = checkNames(readFileSync(file, "utf8"));
  if (names < least) throw new Error(`${what}: only ${names} names were recorded`);
  process.stdout.write(`${what}: ${names} names, ${syncs} syncs, each name synced in time\n`);
}

try {
  const data = join(top, "above", "data");
  const copy = join(top, "copy.db");
  await check("first start", data, ["shop", "add", "alpha.myshopify.com"], 3);
  await check("backup", data, ["backup", copy], 1);
  await check("restore", data, ["restore", copy, "--yes"], 3);
  await check("restore into a new folder", join(top, "new", "data"), ["restore", copy, "--yes"], 4);
} finally {
  rmSync(top, { recursive: true });
}

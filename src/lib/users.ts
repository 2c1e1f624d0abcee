import { readFileSync, statSync } from "node:fs";
import { dirname } from "node:path";

/** Returns the name of this process's user. */
export function currentUser(): string {
  return userName(process.geteuid?.() ?? 0);
}

/** Returns the name of a file's owner. If the file is not visible, uses the nearest visible parent folder. */
export function ownerName(path: string): string {
  try {
    return userName(statSync(path).uid);
  } catch (thrown) {
    if (dirname(path) === path) throw thrown;
    return ownerName(dirname(path));
  }
}

/** Returns a user's name, or the number if there is no name. Bun's `os.userInfo()` reads only the environment. */
export function userName(uid: number): string {
  try {
    const line = new RegExp(`^([^:]+):[^:]*:${uid}:`, "m").exec(readFileSync("/etc/passwd", "utf8"));
    return line?.[1] ?? String(uid);
  } catch {
    return String(uid);
  }
}

/** Returns a text that says why this process may not read or write a file, and what to do. */
export function rightsProblem(path: string): string {
  const owner = ownerName(path);
  const problem = `${currentUser()} may not use ${path}, which ${owner} owns`;
  return `${problem}: run this as ${owner}, or change the owner or mode`;
}

/**
 * Switches this process from root to the owner of a folder, permanently. Does nothing if the process is not root, or
 * if the folder is missing.
 */
export function becomeOwnerOf(folder: string): void {
  const owner = statSync(folder, { throwIfNoEntry: false });
  if (process.geteuid?.() !== 0 || owner === undefined || owner.uid === 0) return;
  process.setgroups?.([owner.gid, ...groupsOf(userName(owner.uid))]);
  process.setgid?.(owner.gid);
  process.setuid?.(owner.uid);
}

/** The groups that list a user as a member (group(5)). */
function groupsOf(user: string): number[] {
  try {
    const lines = readFileSync("/etc/group", "utf8").split("\n");
    const fields = lines.map((line) => line.split(":"));
    return fields.filter(([, , , members = ""]) => members.split(",").includes(user)).map(([, , gid]) => Number(gid));
  } catch {
    return [];
  }
}

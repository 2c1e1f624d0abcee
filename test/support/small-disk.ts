import { existsSync } from "node:fs";
import { temporaryFolder } from "./app.ts";
import { afterTest } from "./cleanup.ts";

/** Mounts a disk of some megabytes. @returns undefined without the right to mount */
export function mountDisk(megabytes: number): string | undefined {
  const folder = temporaryFolder();
  const mount = ["mount", "-t", "tmpfs", "-o", `size=${megabytes}m`, "tmpfs", folder];
  if (Bun.which("mount") === null || Bun.spawnSync(mount).exitCode !== 0) return undefined;
  afterTest(() => Bun.spawnSync(["umount", "-l", folder]));
  return folder;
}

/** Whether this process may mount a disk. */
export const canMount = process.platform === "linux" && process.geteuid?.() === 0 && existsSync("/bin/mount");

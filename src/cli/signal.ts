import { readFileSync } from "node:fs";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/**
 * Resolves to the first signal to stop: SIGINT, SIGTERM, or SIGHUP of a closed terminal. A process under `nohup`
 * ignores SIGHUP. A second signal ends the program at once.
 * @param reload called at SIGHUP in place of a stop, if the process has no terminal
 */
export function untilSignal(reload?: () => void): Promise<NodeJS.Signals> {
  const { promise, resolve } = Promise.withResolvers<NodeJS.Signals>();
  let stopping = false;
  for (const signal of SIGNALS) {
    if (signal === "SIGHUP" && ignoresHangUp()) continue;
    if (signal === "SIGHUP" && reload !== undefined && !hasTerminal()) {
      process.on(signal, reload);
      continue;
    }
    process.on(signal, () => {
      if (stopping) process.exit(1);
      stopping = true;
      resolve(signal);
    });
  }
  return promise;
}

/** Whether this process ignores SIGHUP: the lowest bit of Linux's hexadecimal mask of ignored signals. */
function ignoresHangUp(): boolean {
  try {
    const [, mask = "0"] = /^SigIgn:\s*([0-9a-f]+)$/m.exec(readFileSync("/proc/self/status", "utf8")) ?? [];
    return (BigInt(`0x${mask}`) & 1n) === 1n;
  } catch {
    return false;
  }
}

/** Whether this process has a controlling terminal: the fifth field after the name in Linux's `stat` (proc(5)). */
function hasTerminal(): boolean {
  try {
    const stat = readFileSync("/proc/self/stat", "utf8");
    const [, , , , terminal = "0"] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return terminal !== "0";
  } catch {
    return true;
  }
}

import { readFileSync } from "node:fs";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/**
 * Resolves to the first signal to stop. A second one ends the program at once. SIGHUP, which a closed terminal sends,
 * stops too, unless the program was started to ignore it, as by `nohup`.
 */
export function untilSignal(): Promise<NodeJS.Signals> {
  const { promise, resolve } = Promise.withResolvers<NodeJS.Signals>();
  let stopping = false;
  for (const signal of SIGNALS) {
    if (signal === "SIGHUP" && ignoresHangUp()) continue;
    process.on(signal, () => {
      if (stopping) process.exit(1);
      stopping = true;
      resolve(signal);
    });
  }
  return promise;
}

/** Linux shows which signals a process ignores, as hexadecimal bits: SIGHUP is the lowest. */
function ignoresHangUp(): boolean {
  try {
    const [, mask = "0"] = /^SigIgn:\s*([0-9a-f]+)$/m.exec(readFileSync("/proc/self/status", "utf8")) ?? [];
    return (BigInt(`0x${mask}`) & 1n) === 1n;
  } catch {
    return false;
  }
}

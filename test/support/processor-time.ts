import { readFileSync } from "node:fs";

/** How many milliseconds of processor time this process spends on the work, whatever other programs do. */
export async function processorMs(work: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

/** How many milliseconds of processor time a program's main thread has had, in steps of 10. */
function mainThreadMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/task/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

/**
 * Sends requests to a program, one after another.
 * @returns a function that stops the requests, and returns the maximum processor time of the program's main thread
 *   during one request
 */
export function watchMainThread(
  pid: number,
  ask: () => Promise<unknown>,
): () => Promise<{ longestMs: number; asked: number }> {
  const seen = { longestMs: 0, asked: 0 };
  let isOver = false;
  const asking = (async () => {
    while (!isOver) {
      const before = mainThreadMs(pid);
      await ask();
      seen.longestMs = Math.max(seen.longestMs, mainThreadMs(pid) - before);
      seen.asked += 1;
    }
  })();
  return async () => {
    isOver = true;
    await asking;
    return seen;
  };
}

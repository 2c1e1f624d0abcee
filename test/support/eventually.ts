/** Even on a busy machine, only a hanging condition takes this long. Must be below the test timeout in package.json. */
export const LIMIT_MS = 300_000;

/** Waits for a condition instead of for time. */
export async function eventually<T>(look: () => T | undefined | false | Promise<T | undefined | false>): Promise<T> {
  const deadline = performance.now() + LIMIT_MS;
  for (;;) {
    const seen = await look();
    if (seen !== undefined && seen !== false) return seen;
    if (performance.now() > deadline) throw new Error("it did not happen in time");
    await new Promise((next) => setTimeout(next, 1));
  }
}

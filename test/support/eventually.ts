/** Waits for a condition instead of for time. */
export async function eventually<T>(
  look: () => T | undefined | false | Promise<T | undefined | false>,
  within = 10_000,
): Promise<T> {
  const deadline = performance.now() + within;
  for (;;) {
    const seen = await look();
    if (seen !== undefined && seen !== false) return seen;
    if (performance.now() > deadline) throw new Error("it did not happen in time");
    await new Promise((next) => setTimeout(next, 5));
  }
}

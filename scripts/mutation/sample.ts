import { randomFractions } from "../random.ts";
import type { Mutant } from "./candidates.ts";

/**
 * Picks random items, at most one for each position. The same seed gives the same items in the same order.
 * @returns up to `count` items
 */
export function sample<T>(items: readonly T[], count: number, seed: number, positionOf: (item: T) => string): T[] {
  const random = randomFractions(seed);
  const shuffled = items.map((item) => ({ item, at: random() })).toSorted((a, b) => a.at - b.at);
  const chosen = new Map<string, T>();
  for (const { item } of shuffled) {
    if (chosen.size === count) break;
    if (!chosen.has(positionOf(item))) chosen.set(positionOf(item), item);
  }
  return [...chosen.values()];
}

export function apply(text: string, { start, end, after }: Mutant): string {
  return text.slice(0, start) + after + text.slice(end);
}

/** Whether the changed file is still a valid program, and differs from the original program. */
export function isDifferentProgram(before: string, after: string, path: string): boolean {
  const transpiler = new Bun.Transpiler({ loader: path.endsWith("x") ? "tsx" : "ts" });
  try {
    return transpiler.transformSync(after) !== transpiler.transformSync(before);
  } catch {
    return false;
  }
}

import { distance } from "fastest-levenshtein";

/** Whether a text looks like a misspelt name. It may differ in case, in `_` and `-`, and in one or two letters. */
export function isLike(given: string, name: string): boolean {
  return given.length <= 2 * name.length && mistakesIn(given, name) <= Math.min(2, Math.ceil(name.length / 3));
}

/** Returns the name that is most similar to a misspelt text; undefined if no name is similar. */
export function nearest<T extends string>(given: string, names: readonly T[]): T | undefined {
  const like = names.filter((name) => isLike(given, name));
  return like.toSorted((one, other) => mistakesIn(given, one) - mistakesIn(given, other))[0];
}

/** Returns the end of an error message: " (did you mean order.charged?)". Returns "" if no name is similar. */
export function didYouMean(given: string, names: readonly string[]): string {
  const meant = nearest(given, names);
  return meant === undefined ? "" : ` (did you mean ${meant}?)`;
}

function mistakesIn(given: string, name: string): number {
  const plain = (text: string) => text.toLowerCase().replaceAll(/[_-]/g, "");
  return distance(plain(given), plain(name));
}

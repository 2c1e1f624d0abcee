import { randomFractions } from "../../random.ts";

/** A source of random choices. The same seed gives the same choices. */
export interface Random {
  /** A whole number from 0, below `limit`. */
  below(limit: number): number;
  chance(probability: number): boolean;
  pick<T>(choices: readonly T[]): T;
  /** Lower-case hex digits. */
  hex(length: number): string;
}

export function createRandom(seed: number): Random {
  const fraction = randomFractions(seed);
  const below = (limit: number) => Math.floor(fraction() * limit);
  return {
    below,
    chance: (probability) => fraction() < probability,
    pick<T>(choices: readonly T[]): T {
      const choice = choices[below(choices.length)];
      if (choice === undefined) throw new Error("there is nothing to choose from");
      return choice;
    },
    hex: (length) => Array.from({ length }, () => below(16).toString(16)).join(""),
  };
}

/** Texts that programs often handle wrongly: encodings, other languages' syntax, control characters, sizes. */
export const ODD_TEXTS: readonly string[] = [
  "",
  " ",
  "0",
  "-1",
  "1e3",
  "1.5",
  "NaN",
  "9007199254740993",
  "99999999999999999999999999",
  "null",
  "true",
  "[]",
  "{}",
  "__proto__",
  "constructor",
  "toString",
  "'",
  '"',
  "' OR 1=1 --",
  "%",
  "_",
  "\\",
  "../../etc/passwd",
  "<script>alert(1)</script>",
  "{{7*7}}",
  "\u0000",
  "\u001b[31mred",
  "\r\nX-Injected: yes",
  "\n",
  "\t",
  "\u202e",
  "\ufeff",
  "\ud800",
  "é",
  "👩‍👩‍👧",
  "~",
  "2026-02-30T00:00:00.000Z",
  "0000-01-01T00:00:00.000Z",
  "+275760-09-13T00:00:00.000Z",
  "a".repeat(1_025),
  "\u0130".repeat(300),
];

/** The text with one character removed, added or changed. */
export function mutatedText(random: Random, text: string): string {
  const at = random.below(text.length + 1);
  const odd = random.pick(["", "\u0000", "~", "%", "é", "A", "0", " ", "\n", "/"]);
  if (random.chance(0.2)) return random.pick(ODD_TEXTS);
  return text.slice(0, at) + odd + text.slice(at + random.below(3));
}

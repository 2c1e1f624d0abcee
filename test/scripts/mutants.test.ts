import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Mutant } from "../../scripts/mutation/candidates.ts";
import { orderTests, readLcov } from "../../scripts/mutation/coverage.ts";
import { apply, isDifferentProgram, sample } from "../../scripts/mutation/sample.ts";
import { candidatesOf } from "../../scripts/mutation/sources.ts";
import { temporaryFolder } from "../support/app.ts";

/** @returns the changes of a source file with these lines, as `line: before -> after` */
async function changes(...lines: string[]): Promise<string[]> {
  const folder = temporaryFolder();
  writeFileSync(
    join(folder, "tsconfig.json"),
    '{ "compilerOptions": { "jsx": "preserve", "types": [], "noEmit": true }, "files": ["a.tsx"] }',
  );
  writeFileSync(join(folder, "a.tsx"), lines.join("\n"));
  return (await candidatesOf(folder, ["a.tsx"])).map(({ line, before, after }) => `${line}: ${before} -> ${after}`);
}

test("operators, numbers, strings and calls are changed", async () => {
  const found = await changes(
    "const a = b === 1;",
    "const a = b < c && !d;",
    "const a = b ?? c;",
    "const a = b ? 5_000 : true;",
    'const a = { b: "paid" };',
    "const a = Math.min(b, c);",
    "const a = b.filter(c).length;",
    "function a() {",
    "  if (b) return;",
    "  await a.insert().run();",
    "}",
  );
  expect(found).toEqual([
    ...["1: === -> !==", "1: 1 -> 2", "1: 1 -> (0)"],
    ...["2: && -> ||", "2: < -> <=", "2: < -> >=", "2: !d -> (d)"],
    ...["3: b ?? c -> (b)", "3: b ?? c -> (c)"],
    ...["4: b -> !(b)", "4: 5_000 -> 50000", "4: true -> false"],
    '5: "paid" -> ""',
    "6: min -> max",
    "7: b.filter(c) -> b",
    ...["9: b -> !(b)", "9: if (b) return; -> ;"],
    ...["10: await a.insert().run(); -> ;", "10: a.insert().run() -> a.insert()"],
  ]);
});

test("comments, types, imports, messages, the log and attributes stay as they are", async () => {
  const found = await changes(
    "// a === b",
    "/** 1 + 1 */",
    'type A = "x" | 1; interface B { c: true }',
    'import { a } from "b"; export { c } from "d";',
    'const a: "x" | 1 = b as "x";',
    'const a = "a message with spaces" + b;',
    'this.log.warn("x", { a: 1 }); log.info(b === c);',
    'const a = <p class="x">text</p>;',
    "const a = `x === y`;",
  );
  expect(found).toEqual([]);
});

test("a change is applied at its position, and must change the compiled program", () => {
  const text = "const a = 1 < 2; // 1 < 2";
  const mutant: Mutant = { path: "src/a.ts", line: 1, start: 12, end: 13, before: "<", after: "<=" };
  expect(apply(text, mutant)).toBe("const a = 1 <= 2; // 1 < 2");
  expect(isDifferentProgram("let a = b;", "let a = c;", "a.ts")).toBeTrue();
  expect(isDifferentProgram("let a = b;", "let a = (b);", "a.ts")).toBeFalse();
  expect(isDifferentProgram("let a = b;", "let a = ;", "a.ts")).toBeFalse();
});

test("a seed chooses the same changes each time, and each place at most once", () => {
  const items = Array.from({ length: 100 }, (_, index) => index);
  const choose = (seed: number) => sample(items, 20, seed, (item) => String(item >> 1));
  expect(choose(1)).toEqual(choose(1));
  expect(choose(1)).not.toEqual(choose(2));
  expect(new Set(choose(1).map((item) => item >> 1)).size).toBe(20);
  expect(sample(items, 200, 1, (item) => String(item >> 1))).toHaveLength(50);
});

test("a change is tried on the file's own tests first, then on those that run its line, the quickest first", () => {
  const lcov = "TN:\nSF:src/lib/a.ts\nDA:1,7\nDA:2,0\nDA:3,12\nend_of_record\nSF:test/x.ts\nDA:1,1\nend_of_record\n";
  expect(readLcov(lcov)).toEqual({ "src/lib/a.ts": [1, 3] });
  const file = (path: string, durationMs: number, lines: number[]) => ({
    path,
    durationMs,
    passed: true,
    lines: { "src/lib/a.ts": lines },
  });
  const slow = file("test/slow.test.ts", 900, [3]);
  const quick = file("test/quick.test.ts", 10, [3]);
  const own = file("test/lib/a.test.ts", 5_000, []);
  const ownLong = file("test/lib/a.long.test.ts", 9_000, []);
  const other = file("test/other.test.ts", 1, [1]);
  expect(orderTests([slow, quick, ownLong, own, other], "src/lib/a.ts", 3)).toEqual({
    likely: [own, ownLong, quick, slow],
    others: [other],
  });
});

import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { $, Glob } from "bun";
import type { Mutant } from "./mutation/candidates.ts";
import { measureTests, orderTests, type TestFile } from "./mutation/coverage.ts";
import { apply, isDifferentProgram, sample } from "./mutation/sample.ts";
import { candidatesOf } from "./mutation/sources.ts";
import { build, hasRightTypes, runTests } from "./mutation/suite.ts";

/** The tests must find this percentage of the changes. Otherwise the exit status is 1. */
const WANTED_PERCENT = 90;
/** For each change, this many test files run one by one before the other files run together. */
const TRIED_ALONE = 4;
/** The timeout of a run with a change: this many times its duration without a change, plus GRACE_MS. */
const PATIENCE = 4;
const GRACE_MS = 15_000;

const { values } = parseArgs({
  options: {
    count: { type: "string", default: "120" },
    seed: { type: "string", default: "1" },
    minutes: { type: "string", default: "Infinity" },
    only: { type: "string", multiple: true, default: ["src"] },
    list: { type: "boolean", default: false },
  },
});

const root = process.cwd();
const paths = [...new Glob("src/**/*.{ts,tsx}").scanSync(root)].filter(
  (path) => !path.endsWith(".d.ts") && values.only.some((only) => isIn(path, only)),
);
if (paths.length === 0) throw new Error(`there is no source file in ${values.only.join(", ")}`);
const texts = new Map(
  await Promise.all(paths.map(async (path) => [path, await Bun.file(join(root, path)).text()] as const)),
);
const candidates = (await candidatesOf(root, paths.toSorted())).filter((mutant) => {
  const text = texts.get(mutant.path) ?? "";
  return isDifferentProgram(text, apply(text, mutant), mutant.path);
});
const chosen = sample(
  candidates,
  Number(values.count),
  Number(values.seed),
  ({ path, start, end }) => `${path} ${start} ${end}`,
);
say(`${chosen.length} of ${candidates.length} changes in ${paths.length} files, seed ${values.seed}`);
if (values.list) for (const mutant of chosen) say(describe(mutant));
else process.exitCode = await judge();

/** Runs the tests without a change, then tries the changes. @returns the exit status */
async function judge(): Promise<number> {
  const folder = await copyTree();
  try {
    const tests = await measureTests(folder, join(root, "node_modules/.cache/mutants"), (done, count) => {
      if (done % 10 === 0) say(`running the tests without a change: ${done} of ${count} files`);
    });
    const failed = tests.filter(({ passed }) => !passed).map(({ path }) => path);
    if (failed.length === 0) return await tryAll(folder, tests);
    say(`No change was tried, because these files fail without a change: ${failed.join(", ")}`);
    return 2;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function tryAll(folder: string, tests: readonly TestFile[]): Promise<number> {
  const survivors: Mutant[] = [];
  let tried = 0;
  for (const mutant of chosen) {
    if (performance.now() > Number(values.minutes) * 60_000) break;
    tried += 1;
    const killer = await killerOf(folder, mutant, tests);
    const number = String(tried).padStart(3);
    if (killer !== undefined) say(`${number}  killed    ${describe(mutant)}  (${killer})`);
    else {
      say(`${number}  SURVIVED  ${describe(mutant)}`);
      survivors.push(mutant);
    }
  }
  if (tried < chosen.length) say(`The time is over: ${chosen.length - tried} changes were not tried.`);
  const percent = ((tried - survivors.length) / tried) * 100;
  say(`\n${tried - survivors.length} of ${tried} changes were found, ${percent.toFixed(1)} %.`);
  if (survivors.length > 0) say(`No test found these changes:\n${survivors.map(describe).join("\n")}`);
  return percent >= WANTED_PERCENT ? 0 : 1;
}

/** Copies the working tree without the files that git ignores. The tests run in this copy. */
async function copyTree(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "sds-mutants-"));
  // If root runs this, PostgreSQL runs as another user. That user reaches PostgreSQL's programs through this folder.
  chmodSync(folder, 0o755);
  const listed = (await $`git ls-files -z --cached --others --exclude-standard`.quiet().text()).split("\0");
  for (const path of listed.filter((path) => path !== "")) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    if (await Bun.file(join(root, path)).exists()) cpSync(join(root, path), join(folder, path));
  }
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  return folder;
}

/** Tries a change. @returns the test file or check that found the change; undefined if it survived */
async function killerOf(folder: string, mutant: Mutant, tests: readonly TestFile[]): Promise<string | undefined> {
  const text = texts.get(mutant.path) ?? "";
  writeFileSync(join(folder, mutant.path), apply(text, mutant));
  try {
    const { likely, others } = orderTests(tests, mutant.path, mutant.line);
    for (const file of likely.slice(0, TRIED_ALONE)) {
      const by = await failureOf(folder, [file]);
      if (by !== undefined) return by;
    }
    // The type check runs before the other tests, because it is quicker.
    if (!(await hasRightTypes(folder))) return "types";
    const rest = Map.groupBy([...likely.slice(TRIED_ALONE), ...others], ({ path }) => path.startsWith("test/flow/"));
    const by = await failureOf(folder, rest.get(false) ?? []);
    if (by !== undefined) return by;
    const binary = await build(folder);
    return binary === undefined ? "build" : await failureOf(folder, rest.get(true) ?? [], binary);
  } finally {
    writeFileSync(join(folder, mutant.path), text);
  }
}

/**
 * Runs the test files. A failure counts only if the failed file fails again when it runs alone: some tests fail by
 * chance on a busy machine.
 * @param binary the flow tests run this executable; without it, the source
 */
async function failureOf(folder: string, files: readonly TestFile[], binary?: string): Promise<string | undefined> {
  if (files.length === 0) return undefined;
  const run = (some: readonly TestFile[]) => {
    const limitMs = some.reduce((sum, { durationMs }) => sum + durationMs, 0) * PATIENCE + GRACE_MS;
    return runTests(
      folder,
      some.map(({ path }) => path),
      limitMs,
      { binary },
    );
  };
  const first = await run(files);
  if (first.passed) return undefined;
  if (first.why === "time limit") return "time limit";
  const failed = files.filter(({ path }) => path === first.file);
  const second = await run(failed.length === 0 ? files : failed);
  if (!second.passed) return first.file ?? "the suite";
  // The first failure was probably chance, and it ended the run. Run the other files too, because some have not run
  // yet.
  return failureOf(
    folder,
    files.filter(({ path }) => path !== first.file),
    binary,
  );
}

function describe({ path, line, before, after }: Mutant): string {
  return `${path}:${line}  ${short(before)}  ->  ${short(after)}`;
}

function short(text: string): string {
  const flat = text.replaceAll(/\s+/g, " ");
  return flat.length > 70 ? `${flat.slice(0, 67)}...` : flat;
}

function isIn(path: string, only: string): boolean {
  return path === only || path.startsWith(`${only.replace(/\/$/, "")}/`);
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Glob } from "bun";
import { runTests, testFilesIn } from "./suite.ts";

/** Coverage and duration of one test file, measured without a change. */
export interface TestFile {
  path: string;
  durationMs: number;
  passed: boolean;
  /** Lines of src that the file runs in its own process, by path. Lines that run in other processes are missing. */
  lines: Record<string, number[]>;
}

/** The timeout of one test file. */
const LIMIT_MS = 300_000;
/** How many files run at the same time. */
const PROCESSES = 2;

/** Runs every test file of the folder. If a file passes, its result stays in `cache` until a source file changes. */
export async function measureTests(
  folder: string,
  cache: string,
  onFile: (done: number, all: number) => void,
): Promise<TestFile[]> {
  const keptFile = join(cache, `${digestOf(folder)}.json`);
  const kept = existsSync(keptFile) ? (JSON.parse(readFileSync(keptFile, "utf8")) as TestFile[]) : [];
  const paths = testFilesIn(folder).filter((path) => !kept.some((file) => file.path === path));
  const left = paths.values();
  const measured: TestFile[] = [];
  const keep = () => writeFileSync(keptFile, JSON.stringify([...kept, ...measured].filter(({ passed }) => passed)));
  const measureNext = async () => {
    for (const path of left) {
      onFile(measured.length, paths.length);
      measured.push(await measure(folder, path));
      keep();
    }
  };
  mkdirSync(cache, { recursive: true });
  await Promise.all(Array.from({ length: PROCESSES }, measureNext));
  // Runs failed files a second time, alone: they may have failed because the machine was busy.
  for (const [index, { path, passed }] of measured.entries())
    if (!passed) measured[index] = await measure(folder, path);
  keep();
  return [...kept, ...measured];
}

async function measure(folder: string, path: string): Promise<TestFile> {
  const coverage = join(folder, "coverage", path);
  const start = performance.now();
  const options = ["--coverage", "--coverage-reporter=lcov", `--coverage-dir=${coverage}`];
  const { passed } = await runTests(folder, [path], LIMIT_MS, { options });
  const durationMs = Math.round(performance.now() - start);
  const report = join(coverage, "lcov.info");
  const lines = existsSync(report) ? readLcov(readFileSync(report, "utf8")) : {};
  rmSync(coverage, { recursive: true, force: true });
  return { path, durationMs, passed, lines };
}

/** Reads which lines of src were run, by path. */
export function readLcov(text: string): Record<string, number[]> {
  const lines: Record<string, number[]> = {};
  for (const record of text.split("end_of_record")) {
    const path = /^SF:(.*)$/m.exec(record)?.[1] ?? "";
    if (!path.startsWith("src/")) continue;
    lines[path] = [...record.matchAll(/^DA:(\d+),([1-9]\d*)$/gm)].map(([, line]) => Number(line));
  }
  return lines;
}

/**
 * Sorts test files by how likely they find a change of a source line: first the tests of the source file, then tests
 * that run the line (the quickest first), then all others.
 */
export function orderTests(
  files: readonly TestFile[],
  path: string,
  line: number,
): { likely: TestFile[]; others: TestFile[] } {
  const own = path.replace(/^src\//, "test/").replace(/\.tsx?$/, ".test.ts");
  const isOwn = (file: TestFile) => file.path.replace(".long.test.ts", ".test.ts") === own;
  const rank = (file: TestFile) => (isOwn(file) ? 0 : 1);
  const likely = files
    .filter((file) => isOwn(file) || file.lines[path]?.includes(line))
    .toSorted((a, b) => rank(a) - rank(b) || a.durationMs - b.durationMs);
  return { likely, others: files.filter((file) => !likely.includes(file)) };
}

function digestOf(folder: string): string {
  const hasher = new Bun.CryptoHasher("sha256").update(Bun.version);
  for (const path of [...new Glob("{src,test,scripts}/**/*").scanSync({ cwd: folder })].toSorted()) {
    hasher.update(`${path}\n`).update(readFileSync(join(folder, path)));
  }
  return hasher.digest("hex").slice(0, 16);
}

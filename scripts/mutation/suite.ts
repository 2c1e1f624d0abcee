import { join } from "node:path";
import { Glob } from "bun";

/** The timeout of one test. The slowest, which runs the demo on the source, takes 40 seconds. */
const TEST_LIMIT_MS = 180_000;

export type Verdict = { passed: true } | { passed: false; file: string | undefined; why: "failed" | "time limit" };

/**
 * Runs test files of a folder until the first failure.
 * @param limitMs a run that takes longer counts as hanging
 * @param binary the flow tests run this executable; without it, the source
 */
export async function runTests(
  folder: string,
  files: readonly string[],
  limitMs: number,
  { options = [], binary }: { options?: readonly string[]; binary?: string | undefined } = {},
): Promise<Verdict> {
  const env = { ...process.env, SDS_BINARY: binary, NO_COLOR: "1" };
  const paths = files.map((file) => `./${file}`);
  const shared = files.length > 1 ? ["--parallel=2", "--no-isolate"] : [];
  // The tests get a process group of their own. Killing the group also ends programs that a hanging test has started.
  const limits = ["--bail", `--timeout=${TEST_LIMIT_MS}`];
  const child = Bun.spawn([process.execPath, "test", ...limits, ...shared, ...options, ...paths], {
    cwd: folder,
    env,
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
    detached: true,
  });
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    killGroup(child.pid);
  }, limitMs);
  const output = await child.stderr.text();
  const status = await child.exited;
  clearTimeout(timer);
  killGroup(child.pid);
  if (status === 0) return { passed: true };
  return { passed: false, file: isLate ? undefined : fileIn(output), why: isLate ? "time limit" : "failed" };
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // All processes of the group have ended already.
  }
}

/** Finds the test file that failed: the last file that the output names before the first failure. */
function fileIn(output: string): string | undefined {
  const before = output.split(/^\(fail\)|^error:/m)[0] ?? "";
  return [...before.matchAll(/^(?:\.\/)?(\S+\.test\.tsx?):$/gm)].at(-1)?.[1];
}

export function testFilesIn(folder: string): string[] {
  return [...new Glob("test/**/*.test.ts").scanSync(folder)].toSorted();
}

/** Whether the folder passes the type check. */
export async function hasRightTypes(folder: string): Promise<boolean> {
  return succeeds(folder, [join(folder, "node_modules/.bin/tsc"), "--project", "."]);
}

/** Builds the executable of the folder. @returns its path; undefined if the build failed */
export async function build(folder: string): Promise<string | undefined> {
  return (await succeeds(folder, ["scripts/build.ts"])) ? join(folder, "dist/sds") : undefined;
}

async function succeeds(folder: string, script: readonly string[]): Promise<boolean> {
  const program = [process.execPath, ...script];
  return (await Bun.spawn(program, { cwd: folder, stdout: "ignore", stderr: "ignore" }).exited) === 0;
}

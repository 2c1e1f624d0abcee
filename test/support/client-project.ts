import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { $ } from "bun";
import { buildClient } from "../../scripts/client/package.ts";
import { temporaryFolder } from "./app.ts";
import { afterTest } from "./cleanup.ts";
import type { Result } from "./program.ts";
import { samplesOf } from "./samples.ts";

const README = await Bun.file(join(import.meta.dir, "../../src/docs/client.md")).text();

/** The programs in the README of the client's package, by the names in their first lines. */
export const EXAMPLES: ReadonlyMap<string, string> = new Map(
  samplesOf("README.md", README).flatMap(({ file, code }) => (file === undefined ? [] : [[file, code] as const])),
);

/** Makes a folder with the installed package and its examples. */
export async function clientProject(): Promise<string> {
  const folder = join(temporaryFolder(), "project");
  const installed = join(folder, "node_modules/sds-client");
  mkdirSync(installed, { recursive: true });
  const tarball = await buildClient(join(folder, "built"));
  await $`tar -xzf ${tarball} --strip-components=1 -C ${installed}`.quiet();
  for (const [name, code] of EXAMPLES) writeFileSync(join(folder, name), code);
  return folder;
}

/** Runs a program to its end. */
export async function runIn(folder: string, command: string[], env: Record<string, string>): Promise<Result> {
  const child = Bun.spawn(command, { cwd: folder, env: withPath(env), stdout: "pipe", stderr: "pipe" });
  const [stdout, stderr, status] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { status, stdout, stderr };
}

function withPath(env: Record<string, string>): Record<string, string> {
  return { PATH: process.env["PATH"] ?? "", HOME: process.env["HOME"] ?? "", ...env };
}

/** A running program. It is killed when the test ends. */
export interface RunningProgram {
  /** Waits until the program's output matches, on stdout or stderr. */
  prints(pattern: RegExp): Promise<RegExpExecArray>;
  /** The program's exit status, once it has ended. */
  exited: Promise<number>;
  /** Ends the program with SIGTERM. @returns its exit status */
  stop(): Promise<number>;
}

export function startIn(folder: string, command: string[], env: Record<string, string>): RunningProgram {
  const child = Bun.spawn(command, { cwd: folder, env: withPath(env), stdout: "pipe", stderr: "pipe" });
  afterTest(async () => {
    child.kill("SIGKILL");
    await child.exited;
  });
  let output = "";
  const waiting: (() => void)[] = [];
  const wake = () => {
    for (const one of waiting.splice(0)) one();
  };
  let ended = false;
  child.exited.then(() => {
    ended = true;
    wake();
  });
  async function follow(stream: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    for await (const chunk of stream) {
      output += decoder.decode(chunk, { stream: true });
      wake();
    }
  }
  follow(child.stdout);
  follow(child.stderr);
  return {
    exited: child.exited,
    async prints(pattern) {
      for (;;) {
        const found = pattern.exec(output);
        if (found !== null) return found;
        if (ended) throw new Error(`${command.join(" ")} ended, and printed only: ${output}`);
        await new Promise<void>((resolve) => waiting.push(resolve));
      }
    },
    async stop() {
      child.kill("SIGTERM");
      return child.exited;
    },
  };
}

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../support/app.ts";
import { PROGRAM, type Result } from "../support/program.ts";

export const KEY = `cad_pk_${"0123456789ab".repeat(4)}`;
export const OTHER_KEY = `cad_pk_${"ba9876543210".repeat(4)}`;

export interface Place {
  folder: string;
  state: string;
  args: (url: string, ...more: string[]) => string[];
  /** Runs `sds pull` in the folder. */
  pull: (url: string, ...more: string[]) => Promise<Result>;
  /** Runs a line in a shell, where `$PULL` is `sds pull` with its arguments. */
  shell: (url: string, line: string) => Promise<Result>;
  useKey: (text: string) => void;
}

/** Makes a folder in which `sds pull` runs, with a key file and a state for orders. */
export function place(): Place {
  const folder = join(temporaryFolder(), "work");
  mkdirSync(folder);
  const keyFile = join(folder, "key.txt");
  const useKey = (text: string) => writeFileSync(keyFile, text, { mode: 0o600 });
  useKey(`${KEY}\n`);
  const state = join(folder, "orders.state");
  const args = (url: string, ...more: string[]) => [
    ...[...PROGRAM, "pull", "--url", url, "--resource", "orders", "--state", state],
    ...more,
  ];
  const env = { PATH: process.env["PATH"] ?? "", SDS_KEY_FILE: keyFile, HTTP_PROXY: "http://127.0.0.1:9" };
  async function spawn(command: string[], extra: Record<string, string> = {}): Promise<Result> {
    const child = Bun.spawn(command, { cwd: folder, env: { ...env, ...extra }, stdout: "pipe", stderr: "pipe" });
    const [stdout, stderr, status] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    return { status, stdout, stderr };
  }
  return {
    folder,
    state,
    args,
    pull: (url, ...more) => spawn(args(url, ...more)),
    shell: (url, line) => spawn(["bash", "-c", line], { PULL: args(url).join(" ") }),
    useKey,
  };
}

/** Reads NDJSON. */
export function rowsIn(text: string): unknown[] {
  return text
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line));
}

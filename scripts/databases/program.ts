import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { listeningUrl } from "../listening-url.ts";

/** The real time, shifted by a changeable amount. The program and the stand-in of the platform share this clock. */
export interface ShiftedClock {
  shiftMs: number;
  now(): number;
}

export function clockAt(date: string): ShiftedClock {
  return {
    shiftMs: Date.parse(date) - Date.now(),
    now() {
      return Date.now() + this.shiftMs;
    },
  };
}

export interface Server {
  url: string;
  stop(signal?: NodeJS.Signals): Promise<void>;
}

/** Runs the program of a source folder on one data folder, as a user does. */
export interface OldProgram {
  data: string;
  /** @returns what it printed on stdout. @throws Error for an exit status other than 0 */
  run(args: string[], stdin?: string): Promise<string>;
  /** Runs a command that must fail. */
  fail(args: string[]): Promise<void>;
  json<T>(args: string[], stdin?: string): Promise<T>;
  serve(env?: Record<string, string>): Promise<Server>;
  /** The same program on another data folder. */
  on(data: string): OldProgram;
}

export function oldProgram(source: string, data: string, env: Record<string, string>, clock: ShiftedClock): OldProgram {
  mkdirSync(data, { recursive: true });
  const command = [
    process.execPath,
    "--preload",
    join(import.meta.dir, "../shifted-clock.ts"),
    join(source, "src/main.ts"),
  ];
  // Without BUN_CONFIG_MAX_HTTP_REQUESTS, the program would restart itself to set it, and lose the shifted clock.
  const fixed = { PATH: process.env["PATH"] ?? "", SDS_DATA: data, BUN_CONFIG_MAX_HTTP_REQUESTS: "1000", ...env };
  const environment = (more: Record<string, string> = {}) => ({
    ...fixed,
    CLOCK_SHIFT_MS: String(clock.shiftMs),
    ...more,
  });

  async function start(args: string[], stdin: string) {
    const child = Bun.spawn([...command, ...args], {
      env: environment(),
      cwd: data,
      stdin: Buffer.from(stdin),
      stdout: "pipe",
      stderr: "pipe",
    });
    const [stdout, stderr, status] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    return { stdout, stderr, status };
  }

  async function run(args: string[], stdin = ""): Promise<string> {
    const { stdout, stderr, status } = await start(args, stdin);
    if (status !== 0) throw new Error(`sds ${args.join(" ")} ended with ${status}: ${stderr}`);
    return stdout;
  }

  return {
    data,
    run,
    async fail(args) {
      if ((await start(args, "")).status === 0) throw new Error(`sds ${args.join(" ")} did not fail`);
    },
    async json<T>(args: string[], stdin?: string) {
      return JSON.parse(await run([...args, "--json"], stdin)) as T;
    },
    async serve(more) {
      const child = Bun.spawn([...command, "serve", "--port", "0"], {
        env: environment(more),
        cwd: data,
        stdin: "ignore",
        stdout: "ignore",
        stderr: "pipe",
      });
      return {
        url: await listeningUrl(child.stderr),
        async stop(signal = "SIGTERM") {
          child.kill(signal);
          await child.exited;
        },
      };
    },
    on: (other) => oldProgram(source, other, env, clock),
  };
}

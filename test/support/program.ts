import { join } from "node:path";
import { temporaryFolder } from "./app.ts";
import { afterTest } from "./cleanup.ts";

/** The compiled binary where SDS_BINARY names it, else the source: flow tests run on both. */
export const PROGRAM =
  process.env["SDS_BINARY"] === undefined
    ? [process.execPath, join(import.meta.dir, "../../src/main.ts")]
    : [process.env["SDS_BINARY"]];

export interface Result {
  status: number;
  stdout: string;
  stderr: string;
}

export interface Options {
  stdin?: string | Uint8Array<ArrayBuffer>;
  env?: Record<string, string>;
}

/** The program on one data folder, run as a user runs it. */
export class Program {
  readonly data: string;

  private readonly env: Record<string, string>;

  /** @param env for every command of this program */
  constructor(data = join(temporaryFolder(), "data"), env: Record<string, string> = {}) {
    this.data = data;
    this.env = env;
  }

  private spawnOptions(env: Record<string, string> = {}) {
    return {
      env: { PATH: process.env["PATH"] ?? "", SDS_DATA: this.data, ...this.env, ...env },
      cwd: temporaryFolder(),
    };
  }

  async run(args: string[], { stdin = "", env }: Options = {}): Promise<Result> {
    const child = Bun.spawn([...PROGRAM, ...args], {
      ...this.spawnOptions(env),
      stdin: Buffer.from(stdin),
      stdout: "pipe",
      stderr: "pipe",
    });
    const [stdout, stderr, status] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    return { status, stdout, stderr };
  }

  /** Starts a command without waiting for its end. */
  start(args: string[]): { pid: number; exited: Promise<number>; stderr: ReadableStream<Uint8Array> } {
    const child = Bun.spawn([...PROGRAM, ...args], {
      ...this.spawnOptions(),
      stdin: "ignore",
      stdout: "ignore",
      stderr: "pipe",
    });
    afterTest(async () => {
      child.kill("SIGKILL");
      await child.exited;
    });
    const { pid, exited, stderr } = child;
    return { pid, exited, stderr };
  }

  /** Runs a command that has to succeed. @returns what `--json` printed */
  async json<T = Record<string, unknown>>(args: string[], options?: Options): Promise<T> {
    const { status, stdout, stderr } = await this.run([...args, "--json"], options);
    if (status !== 0) throw new Error(`sds ${args.join(" ")} ended with ${status}: ${stderr}`);
    return JSON.parse(stdout) as T;
  }

  /** Starts `serve`, or another command that prints an address, and waits until it listens. */
  async serve(
    args: string[] = ["serve", "--port", "0"],
    env?: Record<string, string>,
    { descriptors }: { descriptors?: number } = {},
  ): Promise<Server> {
    const limited = descriptors === undefined ? [] : ["sh", "-c", `ulimit -n ${descriptors} && exec "$@"`, "sh"];
    const child = Bun.spawn([...limited, ...PROGRAM, ...args], {
      ...this.spawnOptions(env),
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    afterTest(async () => {
      child.kill("SIGKILL");
      await child.exited;
    });
    const server: Server = {
      url: "",
      output: "",
      pid: child.pid,
      exited: child.exited,
      async stop(signal: NodeJS.Signals = "SIGTERM") {
        child.kill(signal);
        return child.exited;
      },
    };
    const { promise, resolve } = Promise.withResolvers<string>();
    async function follow(stream: ReadableStream<Uint8Array>): Promise<void> {
      const decoder = new TextDecoder();
      for await (const chunk of stream) {
        server.output += decoder.decode(chunk, { stream: true });
        const url = /(?:listening on|is at) (http:\/\/[^\s]+)/.exec(server.output)?.[1];
        if (url !== undefined) resolve(url);
      }
    }
    follow(child.stdout);
    follow(child.stderr);
    const ended = child.exited.then((status) => {
      throw new Error(`sds ${args.join(" ")} ended with ${status}: ${server.output}`);
    });
    server.url = await Promise.race([promise, ended]);
    ended.catch(() => undefined);
    return server;
  }
}

export interface Server {
  url: string;
  /** What it printed so far. */
  output: string;
  pid: number;
  exited: Promise<number>;
  stop(signal?: NodeJS.Signals): Promise<number>;
}

import { resolve } from "node:path";

const BINARY = resolve("dist/sds");

export interface Server {
  url: string;
  pid: number;
  /** What it wrote to stderr so far. */
  log(): string;
  /** Sends a signal and waits for the end. */
  stop(signal: NodeJS.Signals): Promise<void>;
}

/** The compiled program on one data folder. */
export interface CompiledProgram {
  /** Runs a command. @throws Error for an exit status other than 0 */
  run(args: string[], stdin?: string): Promise<string>;
  /** Starts `serve`. @param before a command that starts it, such as a tracer. @param port 0 for any */
  serve(before?: string[], port?: number): Promise<Server>;
}

export function compiledProgram(data: string, env: Record<string, string>): CompiledProgram {
  const fixed = { PATH: process.env["PATH"] ?? "", SDS_DATA: data, ...env };
  return {
    async run(args, stdin = "") {
      const child = Bun.spawn([BINARY, ...args], {
        env: fixed,
        stdin: Buffer.from(stdin),
        stdout: "pipe",
        stderr: "pipe",
      });
      const [stdout, stderr, status] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
      if (status !== 0) throw new Error(`sds ${args.join(" ")} ended with ${status}: ${stderr}`);
      return stdout;
    },

    async serve(before = [], port = 0) {
      const child = Bun.spawn([...before, BINARY, "serve", "--port", String(port)], {
        env: fixed,
        stdin: "ignore",
        stdout: "ignore",
        stderr: "pipe",
      });
      const { url, log } = await follow(child.stderr);
      return {
        url,
        pid: child.pid,
        log,
        async stop(signal) {
          child.kill(signal);
          await child.exited;
        },
      };
    },
  };
}

/** Waits until the program prints its address, and goes on reading, so that the pipe never fills. */
async function follow(stderr: ReadableStream<Uint8Array>): Promise<{ url: string; log(): string }> {
  const { promise, resolve: found, reject } = Promise.withResolvers<string>();
  let output = "";
  async function read(): Promise<void> {
    for await (const chunk of stderr) {
      output += new TextDecoder().decode(chunk);
      const url = /listening on (http:\/\/\S+)/.exec(output)?.[1];
      if (url !== undefined) found(url);
    }
    reject(new Error(`sds serve ended: ${output}`));
  }
  read().catch(reject);
  return { url: await promise, log: () => output };
}

import { join, resolve } from "node:path";
import { listeningUrl } from "../listening-url.ts";

const BINARY = resolve("dist/sds");

/** Environment of nodes that share a database. Their webhooks go to this machine, and failed ones are retried soon. */
export function nodeEnv(folder: string): Record<string, string> {
  return {
    SDS_MASTER_KEY_FILE: join(folder, "master.key"),
    SDS_PUBLIC_URL: "http://sds.test",
    SDS_EGRESS_ALLOW: "127.0.0.0/8",
    SDS_RETRY_WAITS: "200ms,400ms,1s,2s",
    SDS_DELIVERY_TIMEOUT: "2s",
  };
}

export interface Server {
  url: string;
  pid: number;
  /** What the program has printed on stderr so far. */
  log(): string;
  /** Sends a signal and waits for the end. */
  stop(signal: NodeJS.Signals): Promise<void>;
}

/** The compiled program on one data folder. */
export interface CompiledProgram {
  /** Runs a command. @throws Error for an exit status other than 0 */
  run(args: string[], stdin?: string): Promise<string>;
  /** Starts `serve`. @param before a command that runs the program, such as a tracer. @param port 0 for any */
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
      let log = "";
      return {
        url: await listeningUrl(child.stderr, (text) => {
          log += text;
        }),
        pid: child.pid,
        log: () => log,
        async stop(signal) {
          child.kill(signal);
          await child.exited;
        },
      };
    },
  };
}

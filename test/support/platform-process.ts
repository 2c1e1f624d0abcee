import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { appFiles } from "../../src/shopify/install/app-files.ts";
import { temporaryFolder } from "./app.ts";
import { afterTest } from "./cleanup.ts";
import type { Spent } from "./platform/control.ts";

const SECRET = "the-app-client-secret";
const DOMAIN = "alpha.myshopify.com";

interface State {
  invalid: string[];
  requests: number;
  undelivered: number;
}

/** The stand-in of the platform as a process of its own, controlled over HTTP. */
export class PlatformProcess {
  readonly secretFile = join(temporaryFolder(), "secret");
  address = "";

  /** @param options of the process, such as `--restore-rate` */
  async start(...options: string[]): Promise<this> {
    writeFileSync(this.secretFile, SECRET, { mode: 0o600 });
    const main = join(import.meta.dir, "platform/main.ts");
    const points = ["--restore-rate", "10000", "--maximum-available", "10000"];
    const command = [process.execPath, main, "--client-secret-file", this.secretFile, ...points, ...options];
    const child = Bun.spawn(command, { stdout: "pipe" });
    afterTest(async () => {
      child.kill("SIGKILL");
      await child.exited;
    });
    for await (const chunk of child.stdout) {
      const found = /listening on (\S+)/.exec(new TextDecoder().decode(chunk))?.[1];
      if (found === undefined) continue;
      this.address = found;
      break;
    }
    await this.tell("deploy", { appFile: appFiles(this.address, "client")["shopify.app.toml"] });
    return this;
  }

  get env(): Record<string, string> {
    return {
      SDS_PLATFORM_URL: `${this.address}/{shop}`,
      SDS_PLATFORM_CLIENT_ID: "client",
      SDS_PLATFORM_SECRET_FILE: this.secretFile,
    };
  }

  async tell<T = string>(what: string, fields: object = {}): Promise<T> {
    const response = await fetch(`${this.address}/control`, {
      method: "POST",
      // The stand-in closes idle connections. A request on a kept connection could come at that moment, and fail.
      keepalive: false,
      body: JSON.stringify({ shop: DOMAIN, do: what, with: fields }),
    });
    const body = (await response.json()) as { result: T; error?: string };
    if (!response.ok) throw new Error(body.error);
    return body.result;
  }

  /** The shop's points and requests so far. */
  spent(): Promise<Spent> {
    return this.read(`spent?shop=${DOMAIN}`);
  }

  ids(kind: "contract" | "customer"): Promise<string[]> {
    return this.read(`ids?shop=${DOMAIN}&kind=${kind}`);
  }

  workflows(): Promise<{ handle: string; raw: string }[]> {
    return this.read(`workflows?shop=${DOMAIN}`);
  }

  /** How many webhooks could not be delivered. */
  async undelivered(): Promise<number> {
    return (await this.state()).undelivered;
  }

  /** How many requests of the program the platform has received. */
  async requests(): Promise<number> {
    return (await this.state()).requests;
  }

  async invalid(): Promise<string[]> {
    return (await this.state()).invalid;
  }

  private state(): Promise<State> {
    return this.read("state");
  }

  private async read<T>(what: string): Promise<T> {
    return (await (await fetch(`${this.address}/control/${what}`)).json()) as T;
  }
}

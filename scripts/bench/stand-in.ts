import type { Spent } from "../../test/support/platform/control.ts";
import { type Server, startServer } from "./servers.ts";

export const DOMAIN = "alpha.myshopify.com";

export interface Seeding {
  contracts: number;
  renewals: number;
  linesEach?: number;
}

/** The size of the platform's bucket of points, and the points that it regains each second. */
export interface Points {
  maximumAvailable: number;
  restoreRate: number;
}

/** The stand-in of the platform as a separate process, with one shop from a fixed seed. */
export class StandIn implements AsyncDisposable {
  readonly pid: number;
  private readonly server: Server;

  private constructor(server: Server) {
    this.server = server;
    this.pid = server.pid;
  }

  static async start(
    secretFile: string,
    { maximumAvailable, restoreRate }: Points,
    seeding: Seeding,
  ): Promise<StandIn> {
    const program = ["bun", "test/support/platform/main.ts", "--client-secret-file", secretFile];
    const points = ["--maximum-available", String(maximumAvailable), "--restore-rate", String(restoreRate)];
    // The stand-in prints its address on stdout, but `startServer` reads stderr.
    const standIn = new StandIn(await startServer(["bash", "-c", 'exec "$0" "$@" >&2', ...program, ...points]));
    await standIn.tell("addShop", {});
    await standIn.tell("seed", seeding);
    return standIn;
  }

  /** The value for SDS_PLATFORM_URL. */
  get url(): string {
    return `${this.server.url}/{shop}`;
  }

  /** Changes something at the platform, or a setting of the stand-in. @returns the stand-in's answer, mostly a gid */
  async tell(what: string, given: object): Promise<string> {
    const answer = await fetch(`${this.server.url}/control`, {
      method: "POST",
      body: JSON.stringify({ do: what, shop: DOMAIN, with: given }),
    });
    if (!answer.ok) throw new Error(`the stand-in says: ${await answer.text()}`);
    return ((await answer.json()) as { result: string }).result;
  }

  private async look<T>(path: string, query: string): Promise<T> {
    const answer = await fetch(`${this.server.url}/control/${path}?${query}`);
    if (!answer.ok) throw new Error(`the stand-in says: ${await answer.text()}`);
    return (await answer.json()) as T;
  }

  /** Global ids of all rows of a kind. */
  ids(kind: "customer" | "contract"): Promise<string[]> {
    return this.look("ids", `shop=${DOMAIN}&kind=${kind}`);
  }

  /** Returns what the requests have spent so far. @throws if the platform would have refused a request */
  async spent(): Promise<Spent & { throttled: number }> {
    const { invalid, throttled } = await this.look<{ invalid: string[]; throttled: number }>("state", "");
    if (invalid.length > 0) throw new Error(`the platform would not answer: ${invalid[0]}`);
    return { ...(await this.look<Spent>("spent", `shop=${DOMAIN}`)), throttled };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server[Symbol.asyncDispose]();
  }
}

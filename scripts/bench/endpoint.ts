import { serve } from "bun";

/** An endpoint in this process, so that one clock measures both when an event was sent and when it arrived. */
export class Endpoint implements Disposable {
  private arrival = Promise.withResolvers<number>();
  private readonly server = serve({
    hostname: "127.0.0.1",
    port: 0,
    development: false,
    fetch: async (request) => {
      this.arrival.resolve(performance.now());
      await request.arrayBuffer();
      return new Response();
    },
  });
  readonly url = String(this.server.url);

  /** Resolves to the arrival time of the next delivery. */
  next(): Promise<number> {
    this.arrival = Promise.withResolvers<number>();
    return this.arrival.promise;
  }

  [Symbol.dispose](): void {
    this.server.stop(true);
  }
}

/** An endpoint that accepts connections and never answers. */
export function startHanging() {
  const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  return { url: `http://127.0.0.1:${listener.port}/`, [Symbol.dispose]: () => listener.stop(true) };
}

// `bun scripts/bench/endpoint.ts` starts an endpoint in its own process.
if (import.meta.main) process.stderr.write(`listening on ${new Endpoint().url}\n`);

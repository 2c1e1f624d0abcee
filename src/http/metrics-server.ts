import type { Log } from "../lib/log.ts";
import { respond, respondMethodNotAllowed, respondNotFound, respondToThrown } from "./respond.ts";

const IDLE_TIMEOUT_S = 30;
/** The text format of Prometheus. */
const CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

interface Listening {
  /** The port of the listener. If port 0 was asked for, the system has chosen this port. */
  port: number | undefined;
  stop(): Promise<void>;
}

/**
 * Serves `GET /metrics` only. The metrics have a listener of their own, so that a proxy in front of the main listener
 * cannot expose them.
 * @throws if the address cannot be used
 */
export function listenForMetrics(
  { host, port }: { host: string; port: number },
  text: () => Promise<string>,
  log: Log,
): Listening {
  const server = Bun.serve({
    hostname: host,
    port,
    reusePort: false,
    development: false,
    idleTimeout: IDLE_TIMEOUT_S,
    error: (thrown) => respondToThrown(thrown, log),
    routes: {
      "/metrics": async ({ method }) =>
        method === "GET"
          ? respond(200, await text(), { "Content-Type": CONTENT_TYPE, "Cache-Control": "no-store" })
          : respondMethodNotAllowed(["GET"]),
      "/*": () => respondNotFound(),
    },
  });
  return { port: server.port, stop: () => server.stop(true) };
}

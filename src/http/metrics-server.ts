import type { Log } from "../lib/log.ts";
import { respond, respondMethodNotAllowed, respondNotFound, respondToThrown } from "./respond.ts";

const IDLE_TIMEOUT_S = 30;
/** The text format of Prometheus. */
const CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

interface Listening {
  /** The port of the listener. The system chooses it for port 0. */
  port: number | undefined;
  stop(): Promise<void>;
}

/**
 * Listens for `GET /metrics`, and answers nothing else. The metrics have a listener of their own, so that a proxy of
 * the other listener cannot pass them on.
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

import type { Log } from "../lib/log.ts";
import type { AnsweredRequest } from "./server.ts";

/**
 * Returns a function that logs each request in one line. The line has the route instead of the path, because paths,
 * queries and user agents can be personal or secret.
 */
export function createRequestLog(log: Log): (answered: AnsweredRequest) => void {
  return ({ route, method, response: { status, headers }, tookMs, context: { shop }, address }) => {
    const durationMs = Math.round(tookMs * 10) / 10;
    const requestId = headers.get("X-Request-Id") ?? undefined;
    log.info("request", { method, route, status, durationMs, shop, requestId, client: address() });
  };
}

import { version } from "../../package.json";
import { cannotListen } from "../domain/error.ts";
import { listenForMetrics } from "../http/metrics-server.ts";
import { httpAddress } from "../lib/networks.ts";
import { createMetrics } from "./metrics.ts";
import type { AppResources } from "./work.ts";

export type Monitor = NonNullable<ReturnType<typeof openMonitor>>;

/** Opens the metrics and their listener. @returns undefined without SDS_METRICS */
export function openMonitor({ config, log }: AppResources, isReady: () => boolean) {
  const address = config.metrics;
  if (address === null) return undefined;
  const engine = config.database === null ? "sqlite" : "postgres";
  const metrics = createMetrics({ version, engine, isReady });
  let server: ReturnType<typeof listenForMetrics> | undefined;

  return {
    metrics,
    /** Returns where the metrics are served. */
    get url(): string {
      return `${httpAddress(address.host, server?.port)}/metrics`;
    },
    /** @throws SdsError `failed` if the port is taken */
    listen(): void {
      try {
        server = listenForMetrics(address, metrics.text, log);
      } catch (thrown) {
        throw cannotListen(address.host, address.port, thrown, "SDS_METRICS");
      }
    },
    stop: async () => server?.stop(),
  };
}

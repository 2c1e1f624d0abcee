import { version } from "../../package.json";
import { cannotListen } from "../domain/error.ts";
import { listenForMetrics } from "../http/metrics-server.ts";
import { httpAddress } from "../lib/networks.ts";
import { failureFields } from "../store/port/store-error.ts";
import { createFigures } from "./figures.ts";
import { createMetrics, type MetricsSource } from "./metrics.ts";
import type { AppResources } from "./work.ts";

/** How long a scrape waits for the first figures of the database. */
const FIRST_FIGURES_MS = 5_000;

export type Monitor = NonNullable<ReturnType<typeof openMonitor>>;

/** Opens the metrics and their listener. @returns undefined without SDS_METRICS */
export function openMonitor(resources: AppResources, parts: Pick<MetricsSource, "isReady" | "fewestPoints">) {
  const { config, now, log } = resources;
  const address = config.metrics;
  if (address === null) return undefined;
  const engine = config.database === null ? "sqlite" : "postgres";
  const figures = createFigures(resources);
  const metrics = createMetrics({ version, engine, now, figures: figures.last, ...parts });
  const firstRead = Promise.withResolvers<void>();
  let stopped = false;
  let server: ReturnType<typeof listenForMetrics> | undefined;

  async function text(): Promise<string> {
    if (figures.last() === undefined) await Promise.race([firstRead.promise, Bun.sleep(FIRST_FIGURES_MS)]);
    return metrics.text();
  }

  return {
    metrics,
    /** Returns where the metrics are served. */
    get url(): string {
      return `${httpAddress(address.host, server?.port)}/metrics`;
    },
    /** @throws SdsError `failed` if the port is taken */
    listen(): void {
      try {
        server = listenForMetrics(address, text, log);
      } catch (thrown) {
        throw cannotListen(address.host, address.port, thrown, "SDS_METRICS");
      }
    },
    /** Reads the figures of the database. Never rejects. */
    async refresh(): Promise<void> {
      try {
        await figures.read();
      } catch (thrown) {
        // A stop closes the database, so a failure is normal then.
        if (!stopped) log.error("cannot read the figures of the metrics", failureFields(thrown));
      }
      firstRead.resolve();
    },
    async stop(): Promise<void> {
      stopped = true;
      await server?.stop();
    },
  };
}

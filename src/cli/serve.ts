import type { Command } from "commander";
import { version } from "../../package.json";
import type { App } from "../compose/app.ts";
import { type Config, readConfig } from "../config.ts";
import { messageOf } from "../domain/error.ts";
import { isShortage } from "../lib/descriptor-reserve.ts";
import type { Log, LogLevel } from "../lib/log.ts";
import { browsable, isLoopback } from "../lib/networks.ts";
import { storeName } from "../store/open-store.ts";
import type { Store } from "../store/port/store.ts";
import type { SdsCommand } from "./command.ts";
import { configOf } from "./context.ts";
import { dependencies, INITIAL_ENVIRONMENT, prepareFetch, raiseFetchLimit } from "./dependencies.ts";
import { tell } from "./print.ts";
import { secretFiles } from "./secret-files.ts";
import { addSettings } from "./settings-files.ts";
import { untilSignal } from "./signal.ts";

const TLS_HELP = `
The service speaks http, so keys go in clear text. Stay on the loopback address,
and let a reverse proxy on this machine add a name and TLS. \`sds docs operating\`
has examples for Caddy and nginx.`;

export function addCommands(program: SdsCommand): void {
  program
    .command("serve")
    .description("run the service: the API, the intake, the settings page and the sending of webhooks")
    .option("--host <host>", "address to listen on (env SDS_HOST, default 127.0.0.1)")
    .option("--port <port>", "port to listen on; 0 means any free port (env SDS_PORT, default 8080)")
    .examples("sds serve --port 8080")
    .addHelpText("after", TLS_HELP)
    .action(serve);
}

async function serve(_options: object, command: Command): Promise<void> {
  const config = configOf(command);
  raiseFetchLimit(config);
  let logLevel = config.logLevel;
  const { log, ...rest } = dependencies(() => logLevel);
  endOnUncaught(log);
  prepareFetch();
  const setLogLevel = (level: LogLevel) => {
    logLevel = level;
  };
  const stop = untilSignal(() => reload(command, config, { log, setLogLevel }));
  const { openApp } = await import("../compose/app.ts");
  const app = await openApp(config, { log, ...rest });
  try {
    // A start can take some seconds. A signal must stop the program during the start too.
    const address = await Promise.race([app.start(), stop.then(() => undefined)]);
    if (config.egressAllow.length > 0)
      log.warn("SDS_EGRESS_ALLOW is set: webhooks may go to addresses that are not public");
    for (const warning of secretFiles(config)) log.warn(warning);
    if (!isLoopback(config.host))
      log.warn(
        "other machines can reach this address, and http sends keys in clear text: put a proxy with TLS before it",
      );
    if (address !== undefined) await introduce(address, config, app, log);
    log.info(`stopping on ${await stop}`);
  } finally {
    await app.stop();
  }
}

/**
 * Reads the settings again, and applies the log level. All other settings need a restart. Files with secrets need no
 * signal: they are read whenever they change. Wrong settings change nothing.
 */
function reload(
  command: Command,
  config: Config,
  { log, setLogLevel }: { log: Log; setLogLevel: (level: LogLevel) => void },
): void {
  try {
    const flags = command.optsWithGlobals();
    const env = { ...INITIAL_ENVIRONMENT };
    for (const warning of addSettings(flags["data"], env)) log.warn(warning);
    const next = readConfig(flags, env);
    const later = Object.keys(config).filter((name) => name !== "logLevel" && !isSame(config, next, name));
    if (later.length > 0) log.warn("settings that changed need a restart of serve", { settings: later.join(", ") });
    setLogLevel(next.logLevel);
    log.info("read the settings", { logLevel: next.logLevel });
  } catch (thrown) {
    log.error("the settings are wrong, so the former ones stay", { reason: messageOf(thrown) });
  }
}

function isSame(one: Config, other: Config, name: string): boolean {
  return JSON.stringify(one[name as keyof Config]) === JSON.stringify(other[name as keyof Config]);
}

/** Tells the operator, and programs that read the log, where the service is. */
async function introduce(address: string, config: Config, app: App, log: Log): Promise<void> {
  tell(await introduction(address, config, app.store));
  const engine = config.database === null ? "sqlite" : "postgres";
  if (!process.stderr.isTTY)
    log.info(`listening on ${address}`, { version, engine, address, metrics: app.metricsUrl() });
}

/** Returns the text that a new operator needs first. Its first line says that `serve` is ready. */
async function introduction(address: string, { data, database, publicUrl }: Config, { shops }: Store): Promise<string> {
  const { length } = await shops.list();
  const base = publicUrl ?? browsable(address);
  return [
    `listening on ${address}`,
    `  data           ${storeName(data, database)}`,
    `  shops          ${length === 0 ? "no shop yet: sds shop add alpha.myshopify.com" : length}`,
    `  settings page  ${base}/admin (sign in with: sds admin link)`,
    `  documentation  ${base}/docs`,
  ].join("\n");
}

/**
 * Ends the program on an unhandled error. A shortage of file descriptors is only logged: failed work is retried.
 */
function endOnUncaught(log: Log): void {
  const onThrown = (thrown: unknown) => {
    const fields = { error: messageOf(thrown), stack: thrown instanceof Error ? thrown.stack : undefined };
    if (isShortage(thrown)) {
      log.error("a socket or file could not be opened", fields);
      return;
    }
    log.error("the program ends because of an unhandled error", fields);
    process.exit(1);
  };
  process.on("uncaughtException", onThrown);
  process.on("unhandledRejection", onThrown);
}

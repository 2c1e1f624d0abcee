import type { Command } from "commander";
import { openApp } from "../compose/app.ts";
import { configOf } from "./context.ts";
import { dependencies, prepareFetch, raiseFetchLimit } from "./dependencies.ts";
import { example } from "./options.ts";
import { tell } from "./print.ts";
import { untilSignal } from "./signal.ts";
import { endOnUncaught } from "./uncaught.ts";

const TLS_HELP = `
It speaks http, so keys go in clear text: stay on the loopback address, and let a reverse proxy on this machine give it
a name and TLS (docs/operating.md has one for Caddy and one for nginx).
`;

export function addServeCommand(program: Command): void {
  program
    .command("serve")
    .description("run the service: the API, the intake, the settings page and the sending of webhooks")
    .option("--host <host>", "address to listen on (env SDS_HOST, default 127.0.0.1)")
    .option("--port <port>", "port to listen on; 0 means any free port (env SDS_PORT, default 8080)")
    .addHelpText("after", `${example("sds serve --port 8080")}${TLS_HELP}`)
    .action(async (_options: object, command: Command) => {
      const config = configOf(command);
      raiseFetchLimit(config);
      const { log, ...rest } = dependencies(config);
      endOnUncaught(log);
      prepareFetch();
      const stop = untilSignal();
      const app = await openApp(config, { log, ...rest });
      try {
        // Waits for a signal too: a start can take some seconds.
        const address = await Promise.race([app.start(), stop.then(() => undefined)]);
        if (config.egressAllow.length > 0)
          log.warn("SDS_EGRESS_ALLOW is set: webhooks may go to addresses that are not public");
        if (address !== undefined) tell(`listening on ${address}`);
        log.info(`stopping on ${await stop}`);
      } finally {
        await app.stop();
      }
    });
}

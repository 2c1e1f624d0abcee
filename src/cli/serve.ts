import type { Command } from "commander";
import { openApp } from "../app.ts";
import { configOf, example } from "./context.ts";
import { dependencies, raiseFetchLimit } from "./dependencies.ts";
import { tell } from "./print.ts";

export function addServeCommand(program: Command): void {
  program
    .command("serve")
    .description("run the API, the intake, the webhook sender and everything else")
    .option("--host <host>", "address to listen on (env SDS_HOST, default 127.0.0.1)")
    .option("--port <port>", "port to listen on, 0 picks one (env SDS_PORT, default 8080)")
    .addHelpText("after", example("sds serve --host 0.0.0.0 --port 8080"))
    .action(async (_options: object, command: Command) => {
      const config = configOf(command);
      raiseFetchLimit(config);
      const world = dependencies(config);
      const stop = untilSignal();
      const app = await openApp(config, world);
      try {
        const address = await app.start();
        if (config.egressAllow.length > 0) world.log.warn("SDS_EGRESS_ALLOW is set: webhooks may go to addresses that are not public");
        tell(`listening on ${address}`);
        world.log.info(`stopping on ${await stop}`);
      } finally {
        await app.stop();
      }
    });
}

/** Resolves to the first signal to stop; a second one ends the program at once. */
export function untilSignal(): Promise<NodeJS.Signals> {
  const { promise, resolve } = Promise.withResolvers<NodeJS.Signals>();
  let stopping = false;
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.on(signal, () => {
      if (stopping) process.exit(1);
      stopping = true;
      resolve(signal);
    });
  }
  return promise;
}

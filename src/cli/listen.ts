import type { Command } from "commander";
import { signingSecret } from "../actions/endpoint.ts";
import { SdsError } from "../domain/error.ts";
import { printable } from "../lib/log.ts";
import { withShop } from "./context.ts";
import { example, SHOP_OPTION } from "./options.ts";
import { printLine, tell } from "./print.ts";
import { type ReceivedWebhook, startReceiver } from "./receiver.ts";
import { untilSignal } from "./signal.ts";

interface Options {
  port: string;
  forward?: string;
}

export function addListenCommand(program: Command): void {
  program
    .command("listen")
    .description("run a receiver on this machine that verifies webhooks and prints them, for development")
    .option("--port <port>", "port on 127.0.0.1 to listen on; 0 means any free port", "4000")
    .option("--forward <url>", "pass genuine webhooks on to this URL, and return its answer")
    .option(...SHOP_OPTION)
    .addHelpText("after", example("sds listen --forward http://127.0.0.1:3000/webhooks"))
    .action(listen);
}

async function listen({ port, forward: forwardTo }: Options, command: Command): Promise<void> {
  if (forwardTo !== undefined && !URL.canParse(forwardTo))
    throw new SdsError("invalid", `--forward is "${forwardTo}": it must be a URL`);
  if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535)
    throw new SdsError("invalid", `--port is "${port}": it must be a port from 0 to 65535`);
  const stop = untilSignal();
  await withShop(command, async (store, shop) => {
    // This makes the shop's first secret, if it has none.
    await signingSecret(store, shop, Date.now());
    const receiver = startReceiver({
      port: Number(port),
      secrets: () => store.webhooks.secrets(shop.id),
      onReceived: print,
      forwardTo,
    });
    tell(`listening on ${receiver.url}`);
    tell(`To get the webhooks of ${shop.domain}, run: sds webhook set --url ${receiver.url} --all-topics`);
    tell("Set SDS_EGRESS_ALLOW=127.0.0.0/8 for that command and for `sds serve`.");
    await stop;
    await receiver.stop();
  });
}

function print({ genuine, topic, id, body }: ReceivedWebhook): void {
  const line = `${new Date().toISOString()}  ${genuine ? "genuine" : "REFUSED"}  ${topic}  ${id}`;
  // Anybody can post here: the body of a forged webhook is not shown, and control characters cannot reach the terminal.
  printLine(printable(genuine ? `${line}\n${body}` : line));
}

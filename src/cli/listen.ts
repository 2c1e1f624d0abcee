import type { Command } from "commander";
import { invalid } from "../domain/error.ts";
import { printable } from "../lib/log.ts";
import type { SdsCommand } from "./command.ts";
import { configOf, withShop } from "./context.ts";
import { printLine, tell } from "./print.ts";
import { type ReceivedWebhook, startReceiver } from "./receiver.ts";
import { untilSignal } from "./signal.ts";

export function addCommands(program: SdsCommand): void {
  program
    .command("listen")
    .description("run a receiver on this machine that verifies webhooks and prints them, for development")
    .option("--port <port>", "port on 127.0.0.1 to listen on; 0 means any free port", "4000")
    .option("--forward <url>", "pass genuine webhooks on to this URL, and return its answer", parseUrl)
    .shopOption()
    .examples("sds listen --forward http://127.0.0.1:3000/webhooks")
    .action(listen);
}

async function listen({ forward: forwardTo }: { forward?: string }, command: Command): Promise<void> {
  const { port } = configOf(command);
  const stop = untilSignal();
  await withShop(command, async (store, shop) => {
    // Makes the shop's first secret, if it has no secret yet.
    await store.webhooks.secret(shop.id, Date.now());
    const receiver = startReceiver({
      port,
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

/** @throws SdsError `invalid` */
function parseUrl(text: string): string {
  if (URL.canParse(text)) return text;
  throw invalid(`--forward is "${text}": it must be a URL`);
}

function print({ genuine, topic, id, body }: ReceivedWebhook): void {
  const line = `${new Date().toISOString()}  ${genuine ? "genuine" : "REFUSED"}  ${topic}  ${id}`;
  // Anybody can post here. So a forged body is not shown, and no control character reaches the terminal.
  printLine(printable(genuine ? `${line}\n${body}` : line));
}

import type { Command } from "commander";
import { SdsError } from "../domain/error.ts";
import { verify } from "../domain/signature.ts";
import { printable } from "../log.ts";
import { chooseShop, example, SHOP_OPTION, withStore } from "./context.ts";
import { printLine, tell } from "./print.ts";
import { untilSignal } from "./serve.ts";

/** A delivery as a receiver sees it. */
export interface ReceivedDelivery {
  genuine: boolean;
  topic: string;
  id: string;
  body: string;
}

export function addListenCommand(program: Command): void {
  program
    .command("listen")
    .description("a local receiver that verifies deliveries and prints them, for trying things out")
    .option("--port <port>", "port on 127.0.0.1 to listen on", "4000")
    .option("--forward <url>", "pass genuine deliveries on to this URL, and its answer back")
    .option(...SHOP_OPTION)
    .addHelpText("after", example("sds listen --forward http://127.0.0.1:3000/webhooks"))
    .action(async (options: { port: string; forward?: string; shop?: string }, command: Command) => {
      if (options.forward !== undefined && !URL.canParse(options.forward)) throw new SdsError("invalid", `--forward is "${options.forward}": it must be a URL`);
      if (!/^\d{1,5}$/.test(options.port) || Number(options.port) > 65_535)
        throw new SdsError("invalid", `--port is "${options.port}": it must be a port from 0 to 65535`);
      const stop = untilSignal();
      await withStore(command, async (store) => {
        const shop = await chooseShop(store, options.shop);
        await store.webhooks.secret(shop.id, Date.now());
        const receiver = startReceiver(Number(options.port), () => store.webhooks.secrets(shop.id), print, options.forward);
        tell(`listening on ${receiver.url}`);
        tell(`Have ${shop.domain} send here: sds webhook set --url ${receiver.url} --all-topics, with SDS_EGRESS_ALLOW=127.0.0.0/8 for it and for serve.`);
        await stop;
        await receiver.stop();
      });
    });
}

export interface Receiver {
  url: string;
  stop(): Promise<void>;
}

/**
 * Answers 200 to what is genuine and 401 to the rest.
 * @param secrets those in force, newest first: deliveries queued before a rotation keep theirs
 */
export function startReceiver(port: number, secrets: () => Promise<string[]>, onReceived: (received: ReceivedDelivery) => void, forward?: string): Receiver {
  const server = listenOn(port, async (request) => {
    const body = await request.text();
    const header = request.headers.get("x-service-signature");
    const checks = (await secrets()).map((secret) => verify(secret, body, header));
    const genuine = (await Promise.all(checks)).includes(true);
    onReceived({ genuine, topic: request.headers.get("x-service-topic") ?? "", id: idOf(body), body });
    if (!genuine) return new Response("The signature does not fit.\n", { status: 401 });
    return forward === undefined ? new Response("ok\n") : passOn(forward, request.headers, body);
  });
  return {
    url: `http://127.0.0.1:${server.port}/`,
    stop: () => server.stop(true),
  };
}

function listenOn(port: number, fetch: (request: Request) => Promise<Response>) {
  try {
    return Bun.serve({ hostname: "127.0.0.1", port, reusePort: false, development: false, fetch });
  } catch (thrown) {
    throw new SdsError("failed", `cannot listen on 127.0.0.1 port ${port}`, { cause: thrown });
  }
}

async function passOn(url: string, headers: Headers, body: string): Promise<Response> {
  const names = ["content-type", "x-service-topic", "x-service-signature"];
  const kept = Object.fromEntries(names.map((name) => [name, headers.get(name) ?? ""]));
  try {
    const answer = await fetch(url, { method: "POST", headers: kept, body, redirect: "manual" });
    return new Response(await answer.bytes(), { status: answer.status });
  } catch {
    tell(`Could not reach ${url}.`);
    return new Response(`Could not reach ${url}.\n`, { status: 502 });
  }
}

function idOf(body: string): string {
  try {
    return String((JSON.parse(body) as { id?: unknown }).id);
  } catch {
    return "?";
  }
}

function print({ genuine, topic, id, body }: ReceivedDelivery): void {
  const line = `${new Date().toISOString()}  ${genuine ? "genuine" : "REFUSED"}  ${topic}  ${id}`;
  // Anybody can post here: what is not genuine is not shown, and nothing steers the terminal.
  printLine(printable(genuine ? `${line}\n${body}` : line));
}

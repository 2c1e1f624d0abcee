import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { saveEndpoint } from "../../actions/endpoint.ts";
import { createKey } from "../../actions/key.ts";
import { importSecret, signBody } from "../../client/signature.ts";
import { type App, openApp } from "../../compose/app.ts";
import { type Config, readConfig } from "../../config.ts";
import type { Actor } from "../../domain/audit.ts";
import { messageOf, SdsError } from "../../domain/error.ts";
import { TOPIC_NAMES } from "../../domain/events/event.ts";
import { MAX_INTAKE_RECORDS } from "../../http/refusals.ts";
import { createSignInLink } from "../admin.ts";
import type { SdsCommand } from "../command.ts";
import { dependencies, programCommand, randomBytes, resolveName } from "../dependencies.ts";
import { printLine, tell } from "../print.ts";
import { type ReceivedWebhook, startReceiver } from "../receiver.ts";
import { untilSignal } from "../signal.ts";
import { ShopSimulation } from "./shop-simulation.ts";

const SHOP = "demo.myshopify.com";
const CUSTOMERS = 150;
/** Milliseconds between two events of the demo shop. */
const EVENT_INTERVAL_MS = 3_000;
const ACTOR: Actor = { role: "operator", who: "demo", from: null };
/** Short, so that deliveries are retried and die while somebody watches. */
const SDS_RETRY_WAITS = "5s,10s,20s,40s";

export function addDemoCommand(program: SdsCommand): void {
  program
    .command("demo")
    .description(
      "run a shop with sample data in a temporary folder; every few seconds something happens in it, until you stop it",
    )
    .option(
      "--port <port>",
      "port to listen on; 0 means any free port (default 8080, or any free port if that is taken)",
    )
    .examples("sds demo")
    .action(async ({ port }: { port?: string }) => {
      const folder = mkdtempSync(join(tmpdir(), "sds-demo-"));
      try {
        await runDemo(folder, port);
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    });
}

async function runDemo(folder: string, port: string | undefined): Promise<void> {
  const stop = untilSignal();
  const { app, config, address } = await startApp(folder, port);
  const { store } = app;
  try {
    const shop = await store.shops.add({ domain: SHOP, plan: "pro", currency: "USD" }, Date.now());
    const { plaintext: key } = await createKey(
      { store, random: randomBytes },
      { shop, label: "Demo", actor: ACTOR },
      Date.now(),
    );
    const post = await intakeClient(app, address);
    const simulation = new ShopSimulation(Date.now());
    await post(simulation.past(CUSTOMERS));
    // The endpoint is set after the past data was posted, so only new events are sent.
    const receiver = startReceiver({
      port: 0,
      secrets: () => store.webhooks.secrets(shop.id),
      onReceived: printReceived,
      answer: sometimesFails(),
    });
    const change = { url: receiver.url, topics: TOPIC_NAMES };
    await saveEndpoint(
      { store, resolve: resolveName, allow: config.egressAllow },
      { shop, change, actor: ACTOR },
      Date.now(),
    );
    const addresses = { shop, publicUrl: null, configuredUrl: address };
    const { url: link } = await createSignInLink({ store, random: randomBytes }, addresses, Date.now());
    printLine(introduction({ folder, address, key, link, receiver: receiver.url }));
    const timer = setInterval(async () => {
      const { title, records } = simulation.next(Date.now());
      const failure = await post(records).then(
        () => "",
        (thrown: unknown) => `, but ${messageOf(thrown)}`,
      );
      tell(`${new Date().toLocaleTimeString()}  ${title}${failure}`);
    }, EVENT_INTERVAL_MS);
    await stop;
    clearInterval(timer);
    await receiver.stop();
    tell("The demo has stopped. Its folder is removed.");
  } finally {
    await app.stop();
  }
}

async function startApp(folder: string, port: string | undefined) {
  // The demo ignores the environment. It allows deliveries to its own receiver on this machine.
  const config = readConfig(
    { data: folder, host: "127.0.0.1", port: port ?? "8080" },
    { SDS_LOG: "error", SDS_EGRESS_ALLOW: "127.0.0.0/8", SDS_DELIVERY_CONCURRENCY: "64", SDS_RETRY_WAITS },
  );
  const open = (each: Config) => openApp(each, dependencies(each.logLevel));
  const app = await open(config);
  try {
    return { app, config, address: await app.start() };
  } catch (thrown) {
    await app.stop();
    if (port !== undefined) throw thrown;
    const onFreePort = await open({ ...config, port: 0 });
    return { app: onFreePort, config, address: await onFreePort.start() };
  }
}

/** Returns a function that posts records like any billing system: over HTTP, signed with the intake secret. */
async function intakeClient(app: App, address: string): Promise<(records: unknown[]) => Promise<void>> {
  const found = await app.store.shops.intakeSecret(SHOP);
  const secret = await importSecret(found?.secret ?? "");
  return async (records) => {
    for (let at = 0; at < records.length; at += MAX_INTAKE_RECORDS) {
      const part = records.slice(at, at + MAX_INTAKE_RECORDS);
      const body = Uint8Array.from(Buffer.from(JSON.stringify(part)));
      const headers = { "X-Service-Shop": SHOP, "X-Service-Signature": await signBody(secret, body) };
      const response = await fetch(`${address}/intake`, { method: "POST", body, headers, proxy: false });
      if (!response.ok)
        throw new SdsError("failed", `the intake answered ${response.status}: ${await response.text()}`);
    }
  };
}

function printReceived({ genuine, topic, id }: ReceivedWebhook): void {
  tell(`          → received ${topic}, ${genuine ? "signature verified" : "SIGNATURE WRONG"} (${id})`);
}

/** The command that starts this program in another terminal: `sds` if it is in PATH. */
function ownCommand(): string[] {
  const inPath = Bun.which("sds");
  return inPath !== null && realpathSync(inPath) === realpathSync(process.execPath) ? ["sds"] : programCommand();
}

function quoted(word: string): string {
  return /^[\w./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/**
 * Makes answers for the log: webhooks of declined orders fail once and are then delivered, those of rewards are never
 * delivered.
 */
function sometimesFails(): (received: ReceivedWebhook) => Response | undefined {
  const failed = new Set<string>();
  return ({ topic, id }) => {
    if (topic === "loyalty.reward_earned") return refuse(501, "The loyalty program is not set up.");
    if (topic !== "order.failed" || failed.has(id)) return undefined;
    failed.add(id);
    return refuse(503, "Restarting, please try again.");
  };
}

function refuse(status: number, text: string): Response {
  tell(`          ← answered ${status}`);
  return new Response(`${text}\n`, { status });
}

interface Introduction {
  folder: string;
  address: string;
  key: string;
  /** Opens the settings page once. */
  link: string;
  /** Address of the demo's receiver. */
  receiver: string;
}

function introduction({ folder, address, key, link, receiver }: Introduction): string {
  const sds = [...ownCommand(), "--data", folder].map(quoted).join(" ");
  return `
A demo shop, ${SHOP}, is at ${address} with ${CUSTOMERS} customers and their subscriptions and orders.
API key: ${key}
Settings page: ${link}

Try this in another terminal:

  curl -H 'Authorization: Bearer ${key}' '${address}/api/v1/customers?limit=3'
  curl -H 'Authorization: Bearer ${key}' '${address}/api/v1/subscriptions?limit=3'
  curl -H 'Authorization: Bearer ${key}' '${address}/api/v1/orders?limit=3'

Its data is in ${folder}. Every command works on it, for instance:

  ${sds} key list

The link to the settings page works once, within ten minutes. This prints another one:

  ${sds} admin link

Every few seconds something happens in the shop. The signed webhooks go to a receiver at ${receiver}.
It refuses some: webhooks of declined orders arrive at the second attempt, webhooks of rewards never do.
Press Ctrl-C to stop the demo and remove its data.
`;
}

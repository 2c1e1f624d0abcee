import { mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { saveEndpoint } from "../../actions/endpoint.ts";
import { createKey } from "../../actions/key.ts";
import { importSecret, signBody } from "../../client/signature.ts";
import type { App } from "../../compose/app.ts";
import { type Config, readConfig } from "../../config.ts";
import type { Actor } from "../../domain/audit.ts";
import { messageOf, SdsError } from "../../domain/error.ts";
import { TOPIC_NAMES } from "../../domain/events/event.ts";
import type { Shop } from "../../domain/shop.ts";
import { MAX_INTAKE_RECORDS } from "../../http/refusals.ts";
import type { Store } from "../../store/port/store.ts";
import { createSignInLink } from "../admin.ts";
import type { SdsCommand } from "../command.ts";
import { dependencies, programCommand, randomBytes, resolveName, sleep } from "../dependencies.ts";
import { printLine, tell } from "../print.ts";
import { type ReceivedWebhook, startReceiver } from "../receiver.ts";
import { untilSignal } from "../signal.ts";
import { type DemoPlatform, startPlatform } from "./platform.ts";
import { isOfPlatform, type SampleRecord } from "./sample-records.ts";
import { ShopSimulation } from "./shop-simulation.ts";

const SHOP = "demo.myshopify.com";
const CUSTOMERS = 150;
/** Milliseconds between two events of the demo shop. */
const EVENT_INTERVAL_MS = 3_000;
/** Milliseconds between two checks whether the shop is loaded. */
const LOADED_CHECK_MS = 100;
const ACTOR: Actor = { role: "operator", who: "demo", from: null };
/** Short, so that deliveries are retried and die while somebody watches. */
const SDS_RETRY_WAITS = "2s,4s,8s,16s";

export function addCommands(program: SdsCommand): void {
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
  const [token, clientSecret] = [randomBytes(16).toHex(), randomBytes(16).toHex()];
  const platform = startPlatform({ domain: SHOP, token, clientSecret });
  const settings = writeSettings(folder, platform.url, clientSecret);
  const { app, config, address } = await startApp(folder, port, settings);
  const { store } = app;
  try {
    const simulation = new ShopSimulation(Date.now());
    const past = simulation.past(CUSTOMERS);
    await platform.apply(past.filter(isOfPlatform));
    const { shop } = await app.platform.connect(SHOP, { kind: "token", token }, ACTOR);
    tell("Loading the shop from its platform …");
    const isStopped = await Promise.race([stop.then(() => true), untilLoaded(store, shop).then(() => false)]);
    // Without this call, the first reconciliation would come an hour after the load.
    if (!isStopped) await app.platform.synchronizer.reconcile(shop);
    const post = await intakeClient(app, address);
    await post(past.flatMap(loyaltyOf));
    const { plaintext: key } = await createKey(
      { store, random: randomBytes },
      { shop, label: "Demo", actor: ACTOR },
      Date.now(),
    );
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
    platform.webhooksTo = `${address}/platform/webhooks`;
    const timer = setInterval(() => void playEvent(simulation, platform, post), EVENT_INTERVAL_MS);
    await stop;
    clearInterval(timer);
    await receiver.stop();
    tell("The demo has stopped. Its folder is removed.");
  } finally {
    await app.stop();
    await platform.stop();
  }
}

/** Plays the next event of the shop. Records that the platform does not know, such as rewards, go to the intake. */
async function playEvent(
  simulation: ShopSimulation,
  platform: DemoPlatform,
  post: (records: unknown[]) => Promise<void>,
): Promise<void> {
  const { title, records } = simulation.next(Date.now());
  const others = records.flatMap((record) => (isOfPlatform(record) ? loyaltyOf(record) : record));
  const failure = await Promise.all([platform.apply(records.filter(isOfPlatform)), post(others)]).then(
    () => "",
    (thrown: unknown) => `, but ${messageOf(thrown)}`,
  );
  tell(`${new Date().toLocaleTimeString()}  ${title}${failure}`);
}

/** Returns a customer's record with only the data that the platform lacks; an empty list for other records. */
function loyaltyOf(record: SampleRecord): object[] {
  if (record.type !== "customer") return [];
  const { type, shopifyId, loyaltyTier, creditsCents } = record;
  return [{ type, shopifyId, loyaltyTier, creditsCents }];
}

/**
 * Writes the settings that connect the demo to its platform, so that commands in other terminals have them too.
 * @returns the settings of `serve`
 */
function writeSettings(folder: string, platformUrl: string, clientSecret: string): Record<string, string> {
  const secretFile = join(folder, "platform-secret");
  writeFileSync(secretFile, clientSecret, { mode: 0o600 });
  const settings = {
    SDS_PLATFORM_URL: platformUrl,
    SDS_PLATFORM_CLIENT_ID: "demo",
    SDS_PLATFORM_SECRET_FILE: secretFile,
    // Allows deliveries to the demo's own receiver.
    SDS_EGRESS_ALLOW: "127.0.0.0/8",
    SDS_RETRY_WAITS,
  };
  writeFileSync(
    join(folder, "sds.env"),
    Object.entries(settings)
      // The value is quoted, because a folder's name can contain ` #` or a quote.
      .map(([name, value]) => (value.includes('"') ? `${name}='${value}'\n` : `${name}="${value}"\n`))
      .join(""),
  );
  return settings;
}

/** Waits until `serve` has loaded the shop. */
async function untilLoaded({ syncs }: Store, { id }: Shop): Promise<void> {
  while ((await syncs.lastComplete(id, "full")) === undefined) await sleep(LOADED_CHECK_MS);
}

async function startApp(folder: string, port: string | undefined, settings: Record<string, string>) {
  // The demo ignores the environment.
  const config = readConfig(
    { data: folder, host: "127.0.0.1", port: port ?? "8080" },
    { ...settings, SDS_LOG: "error", SDS_DELIVERY_CONCURRENCY: "64" },
  );
  const { openApp } = await import("../../compose/app.ts");
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
 * Makes some deliveries fail, so that the delivery log shows failures. Webhooks of declined orders arrive at the second
 * attempt, webhooks of rewards never do.
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
It is connected to a platform beside the demo, which knows what this program reads of the real one.
API key: ${key}
Settings page: ${link}

Try this in another terminal:

  curl -H 'Authorization: Bearer ${key}' '${address}/api/v1/customers?limit=3'
  curl -H 'Authorization: Bearer ${key}' '${address}/api/v1/subscriptions?limit=3'
  curl -H 'Authorization: Bearer ${key}' '${address}/api/v1/orders?limit=3'

Its data is in ${folder}. Every command works on it, for instance:

  ${sds} key list
  ${sds} sync ${SHOP}
  ${sds} status

The link to the settings page works once, within ten minutes. This prints another one:

  ${sds} admin link

Every few seconds something happens in the shop. The platform tells the demo of it, or a loyalty app does.
The signed webhooks go to a receiver at ${receiver}.
It refuses some: webhooks of declined orders arrive at the second attempt, webhooks of rewards never do.
Press Ctrl-C to stop the demo and remove its data.
`;
}

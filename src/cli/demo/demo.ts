import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Command } from "commander";
import { type App, openApp } from "../../app.ts";
import { type Config, readConfig } from "../../config.ts";
import { SdsError } from "../../domain/error.ts";
import { TOPIC_NAMES } from "../../domain/event.ts";
import { randomId } from "../../domain/ids.ts";
import { fingerprintOf, generateKey, hashKey } from "../../domain/key.ts";
import { importSecret, signBody } from "../../domain/signature.ts";
import { example, randomBytes } from "../context.ts";
import { dependencies } from "../dependencies.ts";
import { type ReceivedDelivery, startReceiver } from "../listen.ts";
import { printLine, tell } from "../print.ts";
import { untilSignal } from "../serve.ts";
import { DemoShop } from "./life.ts";

const SHOP = "demo.myshopify.com";
const CUSTOMERS = 150;
/** Milliseconds. */
const SOMETHING_HAPPENS_EVERY = 3_000;

export function addDemoCommand(program: Command): void {
  program
    .command("demo")
    .description("a shop with sample data that lives, in a folder of its own, until stopped")
    .option("--port <port>", "port to listen on, 0 picks one (default 8080, or any where that is taken)")
    .addHelpText("after", example("sds demo"))
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
  const { app, address } = await startApp(folder, port);
  try {
    const shop = await app.store.shops.add({ domain: SHOP, plan: "pro", currency: "USD" }, Date.now());
    const key = generateKey(randomBytes);
    const entry = { id: randomId("key_", randomBytes), label: "Demo", fingerprint: fingerprintOf(key), createdAt: Date.now(), lastUsedAt: null, legacy: false };
    await app.store.keys.add(shop.id, entry, hashKey(key));

    const post = await intakeClient(app, address);
    const life = new DemoShop(Date.now());
    await post([...life.past(CUSTOMERS)].flat());
    const receiver = startReceiver(0, () => app.store.webhooks.secrets(shop.id), printReceived);
    await app.store.webhooks.set(shop.id, { url: receiver.url, topics: TOPIC_NAMES }, Date.now());
    introduce(folder, address, key, receiver.url);

    const timer = setInterval(async () => {
      const { title, records } = life.next(Date.now());
      try {
        await post(records);
        tell(`${new Date().toLocaleTimeString()}  ${title}`);
      } catch (thrown) {
        tell(`${new Date().toLocaleTimeString()}  ${title}, but ${thrown}`);
      }
    }, SOMETHING_HAPPENS_EVERY);
    await stop;
    clearInterval(timer);
    await receiver.stop();
    tell("Stopped; the demo's folder is removed.");
  } finally {
    await app.stop();
  }
}

async function startApp(folder: string, port: string | undefined): Promise<{ app: App; address: string }> {
  // The demo's own receiver is on this machine, so deliveries to it are let through; no variable of the environment counts here.
  const config = readConfig(
    { data: folder, host: "127.0.0.1", port: port ?? "8080" },
    { SDS_LOG: "warn", SDS_EGRESS_ALLOW: "127.0.0.0/8", SDS_DELIVERY_CONCURRENCY: "64" },
  );
  const open = (config: Config) => openApp(config, dependencies(config));
  const app = await open(config);
  try {
    return { app, address: await app.start() };
  } catch (thrown) {
    await app.stop();
    if (port !== undefined) throw thrown;
    const elsewhere = await open({ ...config, port: 0 });
    return { app: elsewhere, address: await elsewhere.start() };
  }
}

/** The demo's data comes in as anybody's would: over HTTP, signed with the intake secret. */
async function intakeClient(app: App, address: string): Promise<(records: unknown[]) => Promise<void>> {
  const found = await app.store.shops.intakeSecret(SHOP);
  const secret = await importSecret(found?.secret ?? "");
  return async (records) => {
    const body = Uint8Array.from(Buffer.from(JSON.stringify(records)));
    const headers = { "X-Service-Shop": SHOP, "X-Service-Signature": await signBody(secret, body) };
    const response = await fetch(`${address}/intake`, { method: "POST", body, headers, proxy: false });
    if (!response.ok) throw new SdsError("failed", `the intake answered ${response.status}: ${await response.text()}`);
  };
}

function printReceived({ genuine, topic, id }: ReceivedDelivery): void {
  tell(`          → received ${topic}, ${genuine ? "signature verified" : "SIGNATURE WRONG"} (${id})`);
}

function introduce(folder: string, address: string, key: string, receiver: string): void {
  printLine(`
A demo shop, ${SHOP}, is at ${address} with ${CUSTOMERS} customers and their subscriptions and orders.
API key: ${key}

Try, in another terminal:

  curl -H 'Authorization: Bearer ${key}' '${address}/api/v1/customers?limit=3'
  curl -H 'Authorization: Bearer ${key}' '${address}/api/v1/subscriptions?limit=3'
  curl -H 'Authorization: Bearer ${key}' '${address}/api/v1/orders?limit=3'

Its data is in ${folder}, so commands work on it too: sds --data ${folder} key list
Its settings page opens with the address that this prints: sds --data ${folder} admin link
Something happens every few seconds, and is sent, signed, to a receiver at ${receiver}. Ctrl-C stops the demo and removes its data.
`);
}

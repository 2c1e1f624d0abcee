import { expect, setDefaultTimeout, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../support/app.ts";
import { afterTest } from "../support/cleanup.ts";
import { eventually } from "../support/eventually.ts";
import { Program } from "../support/program.ts";
import { Receiver } from "../support/receiver.ts";

// Starting programs takes time on a busy machine.
setDefaultTimeout(30_000);

const DOMAIN = "alpha.myshopify.com";
const SECRET = "the-app-client-secret";
const LINE = { title: "House blend", price: "12.50", quantity: 2, variant: "gid://shopify/ProductVariant/11", product: "gid://shopify/Product/12" };

/** The stand-in of the platform as a process of its own, told what to do over HTTP. */
class PlatformProcess {
  readonly secretFile = join(temporaryFolder(), "secret");
  address = "";

  async start(): Promise<this> {
    writeFileSync(this.secretFile, SECRET);
    const main = join(import.meta.dir, "../support/platform/main.ts");
    const child = Bun.spawn([process.execPath, main, "--client-secret-file", this.secretFile, "--restore-rate", "10000", "--maximum-available", "10000"], { stdout: "pipe" });
    afterTest(async () => {
      child.kill("SIGKILL");
      await child.exited;
    });
    for await (const chunk of child.stdout) {
      const found = /listening on (\S+)/.exec(new TextDecoder().decode(chunk))?.[1];
      if (found === undefined) continue;
      this.address = found;
      break;
    }
    return this;
  }

  get env(): Record<string, string> {
    return { SDS_PLATFORM_URL: `${this.address}/{shop}`, SDS_PLATFORM_CLIENT_ID: "client", SDS_PLATFORM_SECRET_FILE: this.secretFile };
  }

  async tell<T = string>(what: string, fields: object = {}): Promise<T> {
    const response = await fetch(`${this.address}/control`, { method: "POST", body: JSON.stringify({ shop: DOMAIN, do: what, with: fields }) });
    const body = (await response.json()) as { result: T; error?: string };
    if (!response.ok) throw new Error(body.error);
    return body.result;
  }

  async workflows(): Promise<{ handle: string; raw: string }[]> {
    return (await (await fetch(`${this.address}/control/workflows?shop=${DOMAIN}`)).json()) as { handle: string; raw: string }[];
  }

  async invalid(): Promise<string[]> {
    return ((await (await fetch(`${this.address}/control/state`)).json()) as { invalid: string[] }).invalid;
  }
}

test("a shop is connected, loaded, changed at the platform, and the change is seen everywhere", async () => {
  const platform = await new PlatformProcess().start();
  await platform.tell("addShop", { currency: "EUR" });
  const customer = await platform.tell("createCustomer", { email: "ada@example.com", firstName: "Ada", lastName: "Lovelace" });
  const contract = await platform.tell("createContract", { customer, lines: [LINE] });

  const program = new Program(undefined, { ...platform.env, SDS_EGRESS_ALLOW: "127.0.0.0/8" });
  const receiver = new Receiver();
  expect(await program.json(["shop", "connect", DOMAIN, "--client-credentials"])).toMatchObject({ domain: DOMAIN, currency: "EUR", plan: "pro", kind: "client_credentials" });
  await program.json(["webhook", "set", "--url", receiver.url, "--all-topics"]);
  await program.json(["shop", "set", DOMAIN, "--triggers", "all"]);
  expect(await program.json(["sync", DOMAIN])).toMatchObject({ customers: 1, subscriptions: 1, orders: 1, events: 0 });
  const { key } = await program.json<{ key: string }>(["key", "create", "--label", "Test"]);
  const server = await program.serve();
  await platform.tell("webhooksTo", { url: `${server.url}/platform/webhooks` });
  const get = async (resource: string) => {
    const response = await fetch(`${server.url}/api/v1/${resource}`, { headers: { Authorization: `Bearer ${key}` } });
    return ((await response.json()) as { data: Record<string, unknown>[] }).data;
  };
  expect(await get("subscriptions")).toMatchObject([{ shopifyId: contract, status: "ACTIVE" }]);

  const attempt = await platform.tell("startAttempt", { id: contract, index: 1 });
  await platform.tell("failAttempt", { id: attempt, code: "CARD_DECLINED" });
  await platform.tell("cancel", { id: contract });
  // Deliveries of a shop go out side by side.
  const received = (await receiver.gets(3)).toSorted((a, b) => a.topic.localeCompare(b.topic));
  expect(received.map(({ topic }) => topic)).toEqual(["order.failed", "subscription.cancelled", "subscription.updated"]);
  expect(received[0]?.json.data).toMatchObject({ contract_id: contract, reason: "card_declined", attempt_count: 1, retries_exhausted: false, total_cents: 2500 });
  expect(received[1]?.json.data).toMatchObject({ churn_type: "involuntary" });
  expect(await get("subscriptions")).toMatchObject([{ shopifyId: contract, status: "CANCELLED", nextBillingDate: null }]);
  expect(await get("orders")).toMatchObject([{ status: "FAILED", cycleNumber: 1, shopifyId: null }, { status: "PAID", cycleNumber: 0 }]);
  const workflows = await eventually(async () => ((await platform.workflows()).length === 2 ? platform.workflows() : undefined));
  expect(workflows.map(({ handle }) => handle).toSorted()).toEqual(["billing-attempt-failed", "subscription-cancelled"]);
  expect(workflows[0]?.raw).toContain(`"customer_id":${customer.split("/").at(-1)},`);
  const entries = await eventually(async () => {
    const found = await program.json<{ kind: string; status: string }[]>(["delivery", "list", "--kind", "trigger"]);
    return found.every(({ status }) => status === "delivered") && found;
  });
  expect(entries).toMatchObject([{ topic: "subscription-cancelled", attempts: 1, lastStatusCode: 200 }, { topic: "billing-attempt-failed" }]);

  // Webhooks that never came.
  await platform.tell("webhooksTo");
  await platform.tell("activate", { id: contract });
  expect(await program.json(["sync", "--since", "1h"])).toMatchObject({ events: 1 });
  expect((await receiver.gets(4)).at(-1)?.json.data).toMatchObject({ status: "ACTIVE" });
  expect(await program.json(["shop", "show", DOMAIN])).toMatchObject({ platform: { connected: true, repairs: 1, inbox: { waiting: 0, failed: 0 } } });
  expect(await platform.invalid()).toEqual([]);
});

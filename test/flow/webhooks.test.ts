import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { createHmac } from "node:crypto";
import { TOPIC_NAMES } from "../../src/domain/event.ts";
import { verify } from "../../src/domain/signature.ts";
import { eventually } from "../support/eventually.ts";
import { Program } from "../support/program.ts";
import { Receiver } from "../support/receiver.ts";
import { gid, order, subscription } from "../support/records.ts";

// Starting programs takes time on a busy machine.
setDefaultTimeout(30_000);

const DOMAIN = "alpha.myshopify.com";
const LOCAL = { SDS_EGRESS_ALLOW: "127.0.0.0/8" };

interface Entry {
  id: string;
  status: string;
  attempts: number;
  error: string | null;
}

async function shopSending(env: Record<string, string> = {}) {
  const program = new Program(undefined, { ...LOCAL, ...env });
  const receiver = new Receiver();
  await program.json(["shop", "add", DOMAIN]);
  await program.json(["webhook", "set", "--url", receiver.url, "--all-topics"]);
  const { secret } = await program.json<{ secret: string }>(["webhook", "secret"]);
  const intake = await program.json<{ secret: string }>(["intake", "secret"]);
  const post = async (url: string, record: object) => {
    const body = JSON.stringify(record);
    const signature = `sha256=${createHmac("sha256", intake.secret).update(body).digest("hex")}`;
    return fetch(`${url}/intake`, {
      method: "POST",
      body,
      headers: { "X-Service-Shop": DOMAIN, "X-Service-Signature": signature },
    });
  };
  const entries = (...args: string[]) => program.json<Entry[]>(["delivery", "list", ...args]);
  return { program, receiver, secret, post, entries };
}

test("the event of a change is sent, signed, within moments", async () => {
  const { program, receiver, secret, post, entries } = await shopSending();
  const server = await program.serve();
  const began = performance.now();
  expect((await post(server.url, subscription(1))).status).toBe(202);
  const [delivered] = await receiver.gets(1);
  expect(performance.now() - began).toBeLessThan(900);
  expect(delivered).toMatchObject({
    topic: "subscription.created",
    json: { shop: DOMAIN, data: { contract_id: gid.contract(1) } },
  });
  expect(await receiver.allGenuine(secret)).toBe(true);
  const [entry] = await eventually(async () => ((await entries())[0]?.status === "delivered" ? entries() : undefined));
  expect(entry as object).toEqual({
    id: delivered?.id,
    kind: "webhook",
    topic: "subscription.created",
    status: "delivered",
    attempts: 1,
    lastStatusCode: 200,
    error: null,
    createdAt: delivered?.json.created_at,
    nextAttemptAt: null,
  });
});

test("import queues events only with --events, and a running serve sends them", async () => {
  const { program, receiver } = await shopSending();
  const quiet = await program.json(["import", "-"], { stdin: JSON.stringify(subscription(1)) });
  expect(quiet).toEqual({ read: 1, changed: 1, events: 0 });
  await program.serve();
  const loud = await program.json(["import", "-", "--events"], {
    stdin: `${JSON.stringify(subscription(2))}\n${JSON.stringify(order(2, 1))}`,
  });
  expect(loud).toEqual({ read: 2, changed: 2, events: 2 });
  const received = await receiver.gets(2);
  expect(received.map(({ topic }) => topic).sort()).toEqual(["order.charged", "subscription.created"]);
});

describe("webhook", () => {
  test("set, show, secret, rotate-secret, clear", async () => {
    const program = new Program();
    await program.json(["shop", "add", DOMAIN]);
    expect(await program.json(["webhook", "show"])).toEqual({ url: null, topics: [] });
    const url = "https://93.184.215.14/hooks";
    expect(await program.json(["webhook", "set", "--url", url])).toEqual({ url, topics: [] });
    expect(await program.json(["webhook", "set", "--topics", "order.failed,order.charged"])).toEqual({
      url,
      topics: ["order.charged", "order.failed"],
    });
    expect(await program.json(["webhook", "set", "--all-topics"])).toEqual({ url, topics: TOPIC_NAMES });
    const { secret } = await program.json<{ secret: string }>(["webhook", "secret"]);
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(await program.json(["webhook", "secret"])).toEqual({ secret });
    const { secret: rotated } = await program.json<{ secret: string }>(["webhook", "rotate-secret"]);
    expect(rotated).not.toBe(secret);
    expect(await program.json(["webhook", "secret"])).toEqual({ secret: rotated });
    expect((await program.run(["webhook", "clear"])).status).toBe(0);
    expect(await program.json(["webhook", "show"])).toEqual({ url: null, topics: [] });
    const database = await Bun.file(`${program.data}/sds.db`).text();
    expect(database).not.toContain(secret.slice(6));
    expect(database).not.toContain(rotated.slice(6));
  });

  test.each([
    [["--url", "http://example.com/"], "this URL is not accepted: only https:// URLs are accepted"],
    [["--url", "https://127.0.0.1/"], "this URL is not accepted: 127.0.0.1 is a loopback address"],
    [
      ["--url", "https://localhost/"],
      "this URL is not accepted: localhost is a name of this machine or a private network",
    ],
    [["--url", "https://[fd00::1]/"], "this URL is not accepted: fd00::1 is a private address"],
    [["--topics", "order.charged,order.paid"], `"order.paid" is not a topic: choose from ${TOPIC_NAMES.join(", ")}`],
    [["--topics", "order.charged", "--all-topics"], "say either --topics or --all-topics"],
    [[], "say what to set: --url, --topics or --all-topics"],
  ])("set %j is refused, and nothing changes", async (args, message) => {
    const program = new Program();
    await program.json(["shop", "add", DOMAIN]);
    expect(await program.run(["webhook", "set", ...args])).toEqual({
      status: 2,
      stdout: "",
      stderr: `sds: ${message}\n`,
    });
    expect(await program.json(["webhook", "show"])).toEqual({ url: null, topics: [] });
  });

  test("a name that does not resolve at save is kept with a warning", async () => {
    const program = new Program();
    await program.json(["shop", "add", DOMAIN]);
    const { status, stderr } = await program.run([
      "webhook",
      "set",
      "--url",
      "https://nowhere.invalid/",
      "--all-topics",
    ]);
    expect({ status, stderr }).toEqual({
      status: 0,
      stderr: "sds: warning: the name nowhere.invalid does not resolve at present; the URL is kept\n",
    });
    expect(await program.json(["webhook", "show"])).toMatchObject({ url: "https://nowhere.invalid/" });
  });

  test("test sends a sample, marked in the log", async () => {
    const { program, receiver, secret } = await shopSending();
    await program.serve();
    const { id } = await program.json<{ id: string }>(["webhook", "test", "--topic", "order.failed"]);
    const [delivered] = await receiver.gets(1);
    expect(delivered).toMatchObject({ id, topic: "order.failed" });
    expect(await receiver.allGenuine(secret)).toBe(true);
    expect(await program.json<object[]>(["delivery", "list"])).toMatchObject([{ id, test: true }]);
    expect((await program.run(["delivery", "list"])).stdout).toContain("order.failed (test)");
  });

  test("test without an endpoint or a plan says so", async () => {
    const program = new Program();
    await program.json(["shop", "add", DOMAIN]);
    expect(await program.run(["webhook", "test"])).toMatchObject({
      status: 1,
      stderr: "sds: there is no endpoint yet: set its URL first\n",
    });
    await program.json(["shop", "set", DOMAIN, "--plan", "free"]);
    expect(await program.run(["webhook", "test"])).toMatchObject({ status: 1 });
    expect((await program.run(["webhook", "test", "--topic", "x"])).status).toBe(2);
  });
});

describe("delivery", () => {
  test("list filters, show has body, signature and every attempt, retry sends again", async () => {
    const { program, receiver, secret, post, entries } = await shopSending({ SDS_RETRY_WAITS: "20ms" });
    receiver.answer = () => new Response(null, { status: 500 });
    const server = await program.serve();
    await post(server.url, subscription(1));
    const [dead] = await eventually(async () =>
      (await entries("--status", "dead")).length === 1 ? entries("--status", "dead") : undefined,
    );
    expect(dead).toMatchObject({
      attempts: 2,
      lastStatusCode: 500,
      error: "The endpoint responded with HTTP 500.",
      nextAttemptAt: null,
    });
    expect(await entries("--status", "pending")).toEqual([]);
    expect(await entries("--kind", "trigger")).toEqual([]);

    const id = dead?.id ?? "";
    const shown = await program.json<{ body: string; signature: string; history: object[] }>(["delivery", "show", id]);
    expect(shown).toMatchObject({
      ...dead,
      body: receiver.received[0]?.body,
      signature: receiver.received[0]?.signature,
    });
    expect(await verify(secret, shown.body, shown.signature)).toBe(true);
    expect(shown.history).toMatchObject([
      { number: 1, statusCode: 500 },
      { number: 2, statusCode: 500 },
    ]);
    expect((await program.run(["delivery", "show", id])).stdout).toContain(shown.signature);

    receiver.answer = () => new Response();
    const retried = await program.json(["delivery", "retry", id]);
    expect(retried).toMatchObject({ id, status: "pending", body: shown.body, signature: shown.signature });
    await eventually(async () => (await entries("--status", "delivered")).length === 1);
    expect(new Set(receiver.received.map(({ body, signature }) => body + signature)).size).toBe(1);
    expect(receiver.received).toHaveLength(3);
  });

  test("retry --dead counts first, and does it with --yes", async () => {
    const { program, receiver, post, entries } = await shopSending({ SDS_RETRY_WAITS: "20ms" });
    receiver.answer = () => new Response(null, { status: 500 });
    const server = await program.serve();
    for (const n of [1, 2]) await post(server.url, subscription(n));
    await eventually(async () => (await entries("--status", "dead")).length === 2);
    expect(await program.json(["delivery", "retry", "--dead"])).toEqual({ dead: 2, retried: 0 });
    expect(await program.json(["delivery", "retry", "--dead", "--since", "2099-01-01T00:00:00Z", "--yes"])).toEqual({
      dead: 0,
      retried: 0,
    });
    receiver.answer = () => new Response();
    expect(await program.json(["delivery", "retry", "--dead", "--since", "1h", "--yes"])).toEqual({
      dead: 2,
      retried: 2,
    });
    await eventually(async () => (await entries("--status", "delivered")).length === 2);
  });

  test("a delivery that does not exist ends with 3, and wrong usage ends with 2", async () => {
    const program = new Program();
    await program.json(["shop", "add", DOMAIN]);
    for (const verb of ["show", "retry"]) expect((await program.run(["delivery", verb, "whd_x"])).status).toBe(3);
    for (const args of [
      ["retry"],
      ["retry", "whd_x", "--dead"],
      ["retry", "--dead", "--since", "x"],
      ["list", "--limit", "0"],
      ["list", "--status", "x"],
      ["list", "--kind", "x"],
    ]) {
      expect((await program.run(["delivery", ...args])).status).toBe(2);
    }
  });

  test("list shows the last 20, newest first", async () => {
    const { program, entries } = await shopSending();
    const lines = Array.from({ length: 25 }, (_, n) => JSON.stringify(subscription(n + 1))).join("\n");
    await program.json(["import", "-", "--events"], { stdin: lines });
    expect(await entries()).toHaveLength(20);
    expect(await entries("--limit", "3")).toEqual((await entries("--limit", "25")).slice(0, 3));
  });
});

test("listen verifies webhooks, prints them and passes them on", async () => {
  const program = new Program(undefined, LOCAL);
  await program.json(["shop", "add", DOMAIN]);
  const receiver = new Receiver();
  const listener = await program.serve(["listen", "--port", "0", "--forward", receiver.url]);
  await program.json(["webhook", "set", "--url", listener.url, "--all-topics"]);
  await program.serve();
  const { id } = await program.json<{ id: string }>(["webhook", "test"]);
  await receiver.gets(1);
  await eventually(() => listener.output.includes(`genuine  subscription.created  ${id}`));
  const forged = await fetch(listener.url, {
    method: "POST",
    body: "{}",
    headers: { "X-Service-Signature": `sha256=${"0".repeat(64)}` },
  });
  expect(forged.status).toBe(401);
  expect(receiver.received).toHaveLength(1);
  expect(await listener.stop()).toBe(0);
});

test("serve warns that SDS_EGRESS_ALLOW is set, and the variable counts only for the program that has it", async () => {
  const { program, entries } = await shopSending();
  const warned = await program.serve();
  await eventually(() => warned.output.includes("SDS_EGRESS_ALLOW is set"));
  await warned.stop();
  await program.json(["webhook", "test"]);
  await program.serve(undefined, { SDS_EGRESS_ALLOW: "" });
  const [entry] = await eventually(async () => ((await entries())[0]?.attempts === 1 ? entries() : undefined));
  expect(entry?.error).toBe("The endpoint's address is not allowed: only https:// URLs are accepted.");
});

test("the demo's deliveries arrive and are verified", async () => {
  const server = await new Program().serve(["demo", "--port", "0"]);
  await eventually(() => /→ received \S+, signature verified \(whd_/.test(server.output), 15_000);
  expect(server.output).not.toContain("SIGNATURE WRONG");
  await server.stop("SIGINT");
});

test("after kill -9 at any moment, acknowledged events arrive with the same bytes, and none is sent twice at the same time", async () => {
  const { program, receiver, secret, post, entries } = await shopSending({
    SDS_DELIVERY_TIMEOUT: "1s",
    SDS_RETRY_WAITS: "50ms,100ms,200ms,400ms",
  });
  receiver.answer = async () => {
    // A kill has to meet attempts at every stage, so the endpoint takes a random time.
    await Bun.sleep(Math.random() * 40);
    return new Response(null, { status: Math.random() < 0.2 ? 500 : 200 });
  };
  const acknowledged = new Set<string>();
  let n = 0;
  for (let round = 0; round < 6; round += 1) {
    const server = await program.serve();
    const enough = acknowledged.size + 10 + Math.floor(Math.random() * 30);
    let killed = false;
    const clients = Array.from({ length: 4 }, async () => {
      while (!killed) {
        n += 1;
        const record = subscription(n);
        const response = await post(server.url, record).catch(() => undefined);
        if (response?.status === 202) acknowledged.add(record.shopifyId);
        if (acknowledged.size >= enough && !killed) {
          killed = true;
          await server.stop("SIGKILL");
        }
      }
    });
    await Promise.all(clients);
  }
  receiver.answer = () => new Response();
  await program.serve();
  await eventually(async () => {
    const [pending, retrying] = [await entries("--status", "pending"), await entries("--status", "retrying")];
    return pending.length + retrying.length === 0;
  }, 30_000);
  const arrived = new Set(receiver.received.map(({ json }) => json.data["contract_id"]));
  const dead = await entries("--status", "dead", "--limit", "1000");
  expect([...acknowledged].filter((contract) => !arrived.has(contract))).toEqual([]);
  expect(dead).toEqual([]);
  expect(receiver.overlaps).toEqual([]);
  expect(await receiver.allGenuine(secret)).toBe(true);
  const bodies = Map.groupBy(receiver.received, ({ id }) => id);
  for (const attempts of bodies.values()) expect(new Set(attempts.map(({ body }) => body)).size).toBe(1);
}, 60_000);

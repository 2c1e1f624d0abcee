import { describe, expect, test } from "bun:test";
import { TOPIC_NAMES } from "../../src/domain/events/event.ts";
import { eventually } from "../support/eventually.ts";
import { failure, Program } from "../support/program.ts";
import { Receiver } from "../support/receiver.ts";
import { gid, order, subscription } from "../support/records.ts";
import { DOMAIN, LOCAL, shopSending } from "../support/shop-sending.ts";

test("the event of a change is sent, signed", async () => {
  const { program, receiver, secret, post, entries } = await shopSending();
  const server = await program.serve();
  expect((await post(server.url, subscription(1))).status).toBe(202);
  const [delivered] = await receiver.gets(1);
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
    const program = await Program.withShop();
    expect(await program.json(["webhook", "show"])).toEqual({ url: null, topics: [] });
    const url = "https://93.184.215.14/hooks";
    expect(await program.json(["webhook", "set", "--url", url])).toEqual({ url, topics: [] });
    const topics = ["order.charged", "order.failed"];
    expect(await program.json(["webhook", "set", "--topics", topics.toReversed().join()])).toEqual({ url, topics });
    expect(await program.json(["webhook", "set", "--all-topics"])).toEqual({ url, topics: TOPIC_NAMES });
    const { secret } = await program.json<{ secret: string }>(["webhook", "secret"]);
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(await program.json(["webhook", "secret"])).toEqual({ secret });
    const rotated = (await program.run(["webhook", "rotate-secret", "--yes"])).stdout.trim();
    expect(rotated).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(rotated).not.toBe(secret);
    expect(await program.json(["webhook", "secret"])).toEqual({ secret: rotated });
    expect((await program.run(["webhook", "clear"])).status).toBe(0);
    expect(await program.json(["webhook", "show"])).toEqual({ url: null, topics: [] });
    for (const text of [secret, rotated]) expect(await program.holds(text.slice(6))).toBe(false);
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
    const program = await Program.withShop();
    expect(await program.run(["webhook", "set", ...args])).toEqual(failure(2, message));
    expect(await program.json(["webhook", "show"])).toEqual({ url: null, topics: [] });
  });

  test("a name that does not resolve at save is kept with a warning", async () => {
    const program = await Program.withShop();
    const url = "https://nowhere.invalid/";
    expect(await program.run(["webhook", "set", "--url", url, "--all-topics"])).toMatchObject({
      status: 0,
      stderr: "sds: warning: the name nowhere.invalid does not resolve at present; the URL is kept\n",
    });
    expect(await program.json(["webhook", "show"])).toMatchObject({ url });
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

  test("test without an endpoint says so", async () => {
    const program = await Program.withShop();
    expect(await program.run(["webhook", "test"])).toEqual(failure(1, "there is no endpoint yet: set its URL first"));
    expect((await program.run(["webhook", "test", "--topic", "x"])).status).toBe(2);
  });
});

test("listen verifies webhooks, prints them and passes them on", async () => {
  const program = await Program.withShop(LOCAL);
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

test("the demo's orders fail and recover, and its deliveries arrive, are verified, are retried, and die", async () => {
  const server = await new Program().serve(["demo", "--port", "0"]);
  // The receiver refuses the webhook of a declined order once.
  await eventually(() => /received order.failed, signature verified \((whd_\w+)\)[\s\S]*\1/.test(server.output));
  // The platform's third event is the recovery of that order.
  await eventually(() => server.output.includes("received order.recovered, signature verified"));
  expect(server.output).not.toContain("SIGNATURE WRONG");
  // The receiver refuses all five attempts for a reward. They take half a minute.
  await eventually(() =>
    /received loyalty.reward_earned, signature verified \((whd_\w+)\)([\s\S]*\1){4}/.test(server.output),
  );
  const sds = /^ {2}(\S.* --data \S+) key list$/m.exec(server.output)?.[1];
  const dead = await eventually(() => {
    const { stdout } = Bun.spawnSync(["sh", "-c", `${sds} delivery list --status dead --json`]);
    return (JSON.parse(stdout.toString()) as object[]).at(-1);
  });
  expect(dead).toMatchObject({ topic: "loyalty.reward_earned", attempts: 5, lastStatusCode: 501 });
  await server.stop("SIGINT");
});

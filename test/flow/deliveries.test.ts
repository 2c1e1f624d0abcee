import { describe, expect, test } from "bun:test";
import { verifySignature } from "../../src/client/signature.ts";
import { nextTurn } from "../../src/lib/waits.ts";
import { eventually } from "../support/eventually.ts";
import { Program } from "../support/program.ts";
import { gid, subscription } from "../support/records.ts";
import { shopSending } from "../support/shop-sending.ts";

/** A shop whose endpoint has answered HTTP 500 to both attempts of an event. */
async function shopWithDead(text: string) {
  const all = await shopSending({ SDS_RETRY_WAITS: "20ms" });
  all.receiver.answer = () => new Response(text, { status: 500 });
  const server = await all.program.serve();
  await all.post(server.url, subscription(1));
  const dead = await eventually(async () => {
    const [first, ...others] = await all.entries("--status", "dead");
    return others.length === 0 && first;
  });
  return { ...all, server, dead };
}

describe("delivery", () => {
  test("list can be filtered; show prints body, signature and every attempt; retry sends again", async () => {
    const { program, receiver, secret, entries, dead } = await shopWithDead("out\nof order");
    expect(dead).toMatchObject({
      attempts: 2,
      lastStatusCode: 500,
      error: "The endpoint responded with HTTP 500.",
      nextAttemptAt: null,
    });
    expect(await entries("--status", "pending")).toEqual([]);
    expect(await entries("--kind", "trigger")).toEqual([]);
    const topic = ["--topic", "subscription.created"];
    for (const filter of [topic, ["--from", "1h"], ["--to", "2099-01-01T00:00:00Z"], ["--subject", gid.contract(1)]])
      expect(await entries(...filter)).toEqual([dead]);
    for (const filter of [
      [...topic, "--to", "1h"],
      ["--from", "2099-01-01T00:00:00Z"],
      ["--subject", "sub_x"],
    ])
      expect(await entries(...filter)).toEqual([]);
    expect((await program.run(["delivery", "list", "--to", "soon"])).stderr).toContain('--to is "soon": it must be');

    const { id } = dead;
    const shown = await program.json<{ body: string; signature: string; history: object[] }>(["delivery", "show", id]);
    const { body, signature } = receiver.received[0] ?? {};
    expect(shown).toMatchObject({ ...dead, body, signature } as object);
    expect(await verifySignature(secret, shown.body, shown.signature)).toBe(true);
    expect(shown.history).toMatchObject([
      { number: 1, statusCode: 500, url: receiver.url, answer: "out\nof order" },
      { number: 2, statusCode: 500, url: receiver.url, answer: "out\nof order" },
    ]);
    const text = (await program.run(["delivery", "show", id])).stdout;
    expect(text).toContain(`\nurl 2     ${receiver.url}\nanswer 2  out of order\n`);
    expect(text).toContain(shown.signature);

    receiver.answer = () => new Response();
    const retried = await program.json(["delivery", "retry", id]);
    expect(retried).toMatchObject({ id, status: "pending", body: shown.body, signature: shown.signature });
    await eventually(async () => (await entries("--status", "delivered")).length === 1);
    expect(new Set(receiver.received.map(({ body, signature }) => body + signature)).size).toBe(1);
    expect(receiver.received).toHaveLength(3);
  });

  test("why tells what was sent and what was not, and ends with 2 for no id, with 3 for an unknown one", async () => {
    const { program, post, server, dead } = await shopWithDead("no");
    await program.run(["webhook", "clear"]);
    await post(server.url, subscription(1, { status: "PAUSED" }));
    expect(await program.json(["delivery", "why", gid.contract(1)])).toMatchObject([
      { topic: "subscription.created", decision: "dead", delivery: dead.id, error: dead.error },
      { topic: "subscription.updated", decision: "no_endpoint", delivery: null, error: null },
      { topic: null, decision: "nothing_changed", delivery: null },
    ]);
    const { stdout } = await program.run(["delivery", "why", "1"]);
    expect(stdout).toContain(`subscription.created: dead: The endpoint responded with HTTP 500. (${dead.id})\n`);
    expect(stdout).toContain("subscription.updated: not sent: the shop had no endpoint\n");
    expect((await program.run(["delivery", "why", gid.contract(9)])).status).toBe(3);
    expect((await program.run(["delivery", "why", "contract-1"])).status).toBe(2);
  });

  test("show says which attempts had no endpoint", async () => {
    const { program, receiver, dead } = await shopWithDead("no");
    await program.run(["webhook", "clear"]);
    await program.run(["delivery", "retry", dead.id]);
    const shown = await eventually(async () => {
      const { stdout } = await program.run(["delivery", "show", dead.id]);
      return stdout.includes("url 3") && stdout;
    });
    expect(shown).toContain(`\nurl 2     ${receiver.url}\n`);
    expect(shown).toContain("\nurl 3     none\n");
  });

  test("retry --dead counts first, and retries only with --yes", async () => {
    const { program, receiver, post, entries } = await shopSending({ SDS_RETRY_WAITS: "20ms" });
    receiver.answer = () => new Response(null, { status: 500 });
    const server = await program.serve();
    for (const n of [1, 2]) await post(server.url, subscription(n));
    await eventually(async () => (await entries("--status", "dead")).length === 2);
    const retry = (...args: string[]) => program.json(["delivery", "retry", "--dead", ...args]);
    expect(await retry()).toEqual({ dead: 2, retried: 0 });
    expect(await retry("--since", "2099-01-01T00:00:00Z", "--yes")).toEqual({ dead: 0, retried: 0 });
    receiver.answer = () => new Response();
    expect(await retry("--since", "1h", "--yes")).toEqual({ dead: 2, retried: 2 });
    await eventually(async () => (await entries("--status", "delivered")).length === 2);
  });

  test("a delivery that does not exist ends with 3", async () => {
    const program = await Program.withShop();
    for (const verb of ["show", "retry"]) expect((await program.run(["delivery", verb, "whd_x"])).status).toBe(3);
  });

  test("list shows the last 20, newest first", async () => {
    const { program, entries } = await shopSending();
    const lines = Array.from({ length: 25 }, (_, n) => JSON.stringify(subscription(n + 1))).join("\n");
    await program.json(["import", "-", "--events"], { stdin: lines });
    expect(await entries()).toHaveLength(20);
    expect(await entries("--limit", "3")).toEqual((await entries("--limit", "25")).slice(0, 3));
  });
});

test("after kill -9 at any moment, acknowledged events arrive with the same bytes, and none is sent twice at the same time", async () => {
  const { program, receiver, secret, post, entries } = await shopSending({
    SDS_DELIVERY_TIMEOUT: "1s",
    SDS_RETRY_WAITS: "50ms,100ms,200ms,400ms",
  });
  receiver.answer = async () => {
    // Each request waits a random number of turns of the event loop. So a kill can meet attempts at every stage.
    for (let turns = Math.random() * 400; turns > 0; turns -= 1) await nextTurn();
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
  });
  const arrived = new Set(receiver.received.map(({ json }) => json.data["contract_id"]));
  const dead = await entries("--status", "dead", "--limit", "1000");
  expect([...acknowledged].filter((contract) => !arrived.has(contract))).toEqual([]);
  expect(dead).toEqual([]);
  expect(receiver.overlaps).toEqual([]);
  expect(await receiver.allGenuine(secret)).toBe(true);
  const bodies = Map.groupBy(receiver.received, ({ id }) => id);
  for (const attempts of bodies.values()) expect(new Set(attempts.map(({ body }) => body)).size).toBe(1);
});

import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { verify } from "../../src/client/verify.ts";
import { TOPIC_NAMES } from "../../src/domain/events/event.ts";
import { temporaryFolder } from "../support/app.ts";
import { clientProject, type RunningProgram, startIn } from "../support/client-project.ts";
import { eventually } from "../support/eventually.ts";
import { Program } from "../support/program.ts";
import { beginPost } from "../support/raw-http.ts";
import { Receiver } from "../support/receiver.ts";
import { savedProgram } from "../support/samples.ts";

/** Serves a shop that sends its events to an address. */
async function sendingShop(url: string): Promise<{ program: Program; secret: string }> {
  const program = await Program.withShop({ SDS_EGRESS_ALLOW: "127.0.0.0/8" });
  await program.json(["webhook", "set", "--url", url, "--all-topics"]);
  const { secret } = await program.json<{ secret: string }>(["webhook", "secret"]);
  await program.serve();
  return { program, secret };
}

/** Waits until a delivery is delivered or dead. */
function statusOf(program: Program, id: string): Promise<string> {
  return eventually(async () => {
    const { status, lastStatusCode } = await program.json(["delivery", "show", id]);
    return lastStatusCode !== null && `${status} ${lastStatusCode}`;
  });
}

test("verify accepts real deliveries of every topic, with both signatures", async () => {
  const receiver = new Receiver();
  const { program, secret } = await sendingShop(receiver.url);
  for (const topic of TOPIC_NAMES) await program.json(["webhook", "test", "--topic", topic]);
  const received = await receiver.gets(TOPIC_NAMES.length);
  for (const { body, headers, json } of received)
    for (const signature of ["standard", "service"] as const) {
      expect(await verify(secret, body, headers, { signature })).toEqual({ event: json as never, isTest: true });
      expect(await verify(`${secret.slice(0, -4)}AAA=`, body, headers, { signature })).toEqual({
        refused: "wrong_signature",
      });
    }
  expect(received.map(({ topic }) => topic).toSorted()).toEqual(TOPIC_NAMES.toSorted());
});

/**
 * Starts a receiver, and a shop that sends to it. The shop first has another endpoint, because the receiver needs the
 * shop's signing secret at its start.
 */
async function receiving(start: (secret: string, port: string) => RunningProgram, printed: RegExp) {
  const free = new Receiver();
  const { program, secret } = await sendingShop(free.url);
  const receiver = start(secret, "0");
  const [, port = ""] = await receiver.prints(printed);
  const url = `http://127.0.0.1:${port}/`;
  await program.json(["webhook", "set", "--url", url, "--all-topics"]);
  return { program, secret, receiver, url };
}

test("client-receiver.mjs stores each genuine event once, and answers 401 to forged ones", async () => {
  const folder = await clientProject();
  const { program, receiver, url } = await receiving(
    (secret, port) => startIn(folder, ["node", "client-receiver.mjs"], { WEBHOOK_SECRET: secret, PORT: port }),
    /listening on port (\d+)/,
  );
  const { id } = await program.json<{ id: string }>(["webhook", "test", "--topic", "order.failed"]);
  await receiver.prints(/declined: insufficient_funds 1990/);
  expect(await statusOf(program, id)).toBe("delivered 204");
  expect((await fetch(url, { method: "POST", body: "{}" })).status).toBe(401);
  await receiver.prints(/refused: no_signature/);
  // The receiver survives senders that hang up or send too much.
  (await beginPost(url)).destroy();
  await receiver.prints(/failed: aborted/);
  expect((await fetch(url, { method: "POST", body: "x".repeat(1_048_577) })).status).toBe(413);
});

describe.skipIf(Bun.which("python3") === null)("receiver.py", () => {
  async function python() {
    const folder = temporaryFolder();
    const database = join(folder, "events.db");
    const started = await receiving((secret, port) => {
      const file = join(folder, "secret.txt");
      writeFileSync(file, `${secret}\n`);
      const command = ["python3", savedProgram("receiver.py"), "--port", port, "--database", database];
      return startIn(folder, command, { SDS_WEBHOOK_SECRET_FILE: file });
    }, /listening on http:\/\/127\.0\.0\.1:(\d+)/);
    const events = () => {
      const db = new Database(database, { readonly: true });
      try {
        return db.query<{ id: string; topic: string; data: string }, []>("SELECT id, topic, data FROM event").all();
      } finally {
        db.close();
      }
    };
    return { ...started, events };
  }

  test("stores a genuine event once, however often it is sent", async () => {
    const { program, receiver, events } = await python();
    const { id } = await program.json<{ id: string }>(["webhook", "test", "--topic", "order.failed"]);
    await receiver.prints(/^test: order.failed whd_/m);
    expect(await statusOf(program, id)).toBe("delivered 204");
    await program.json(["delivery", "retry", id]);
    const { id: second } = await program.json<{ id: string }>(["webhook", "test", "--topic", "order.charged"]);
    expect(await statusOf(program, second)).toBe("delivered 204");
    expect(events()).toMatchObject([
      { id, topic: "order.failed", data: expect.stringContaining('"reason": "insufficient_funds"') },
      { id: second, topic: "order.charged" },
    ]);
  });

  test("refuses forged events, and goes on", async () => {
    const { receiver, url, events } = await python();
    const post = async (body: string, headers: Record<string, string> = {}) =>
      (await fetch(url, { method: "POST", body, headers })).status;
    const forged = { "webhook-id": "whd_a", "webhook-timestamp": "1", "webhook-signature": `v1,${"A".repeat(43)}=` };
    expect([
      await post("{}"),
      await post("{}", forged),
      await post("{}", { ...forged, "webhook-timestamp": "é", "webhook-signature": "é" }),
      await post(" ".repeat(1_048_577), forged),
      (await fetch(url)).status,
    ]).toEqual([401, 401, 401, 413, 501]);
    await receiver.prints(/refused: a header of the signature is missing\nrefused: the signature is wrong/);
    expect(events()).toEqual([]);
  });
});

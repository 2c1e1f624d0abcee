import { expect, test } from "bun:test";
import { Webhook } from "standardwebhooks";
import { Webhook as SvixWebhook } from "svix";
import { eventually } from "../support/eventually.ts";
import { failure, Program } from "../support/program.ts";
import type { Delivered } from "../support/receiver.ts";
import { customer, gid, reward, subscription } from "../support/records.ts";
import { DOMAIN, shopSending } from "../support/shop-sending.ts";

const ROTATE = ["webhook", "rotate-secret"];

/**
 * Verifies a delivery with each secret.
 * @returns for each secret: whether the libraries of Standard Webhooks and of Svix accept
 */
function accepted({ body, headers }: Pick<Delivered, "body" | "headers">, secrets: readonly string[]): boolean[][] {
  const passes = (verify: () => unknown) => {
    try {
      verify();
      return true;
    } catch {
      return false;
    }
  };
  return secrets.map((secret) => [
    passes(() => new Webhook(secret).verify(body, headers)),
    passes(() => new SvixWebhook(secret).verify(body, headers)),
  ]);
}

/** Fields that make a large body. */
const LARGE = Object.fromEntries(Array.from({ length: 100 }, (_, n) => [`field_${n}`, "x".repeat(1_000)]));
const YES = [true, true];
const NO = [false, false];

/** Sends a delivery again, and waits until it arrives. */
async function sentAgain({ program, receiver }: Awaited<ReturnType<typeof shopSending>>, id: string) {
  const before = receiver.received.length;
  await eventually(async () => (await program.run(["delivery", "retry", id])).status === 0);
  return (await receiver.gets(before + 1))[before] as Delivered;
}

test("the libraries of Standard Webhooks and Svix accept deliveries, and refuse changed ones", async () => {
  const { program, receiver, secret, post } = await shopSending();
  const server = await program.serve();
  const records = [
    customer(1),
    subscription(1, { customer: gid.customer(1) }),
    reward("r1", { source: "loyalty", note: 'Grüße, 你好 \u2028 "q" <&>' }),
    reward("r2", { source: "loyalty", ...LARGE }),
  ];
  const postedAt = Math.floor(Date.now() / 1_000);
  expect((await post(server.url, records)).status).toBe(202);
  const received = await receiver.gets(3);
  for (const delivered of received) {
    const { id, body, headers } = delivered;
    expect(accepted(delivered, [secret, `whsec_${"A".repeat(43)}=`])).toEqual([YES, NO]);
    expect(new Webhook(secret).verify(body, headers)).toEqual(delivered.json);
    expect(headers["webhook-id"]).toBe(id);
    expect(Number(headers["webhook-timestamp"])).toBeWithin(postedAt, Date.now() / 1_000 + 1);
    const changes = [
      { body: `${body} ` },
      { headers: { ...headers, "webhook-id": "whd_other" } },
      { headers: { ...headers, "webhook-timestamp": String(Number(headers["webhook-timestamp"]) + 1) } },
    ];
    for (const change of changes) expect(accepted({ ...delivered, ...change }, [secret])).toEqual([NO]);
  }
});

test("after a rotation with an overlap either secret verifies, also deliveries that were queued before", async () => {
  const sending = await shopSending();
  const { program, receiver, secret } = sending;
  await program.json(["import", "-", "--events"], { stdin: JSON.stringify(subscription(1)) });
  const began = Date.now();
  const { rotatedAt } = await program.json<{ rotatedAt: string }>([...ROTATE, "--overlap", "24h", "--yes"]);
  expect(Date.parse(rotatedAt)).toBeWithin(began, Date.now() + 1);
  const { secret: rotated } = await program.json<{ secret: string }>(["webhook", "secret"]);
  await program.serve();
  const [first] = (await receiver.gets(1)) as [Delivered];
  expect(accepted(first, [rotated, secret])).toEqual([YES, YES]);
  const [fresh = "", former = "", ...more] = first.headers["webhook-signature"]?.split(" ") ?? [];
  expect(more).toEqual([]);
  const withOnly = (signature: string) => ({ ...first, headers: { ...first.headers, "webhook-signature": signature } });
  expect(accepted(withOnly(fresh), [rotated, secret])).toEqual([YES, NO]);
  expect(accepted(withOnly(former), [rotated, secret])).toEqual([NO, YES]);

  // A rotation without an overlap applies to the next attempt. X-Service-Signature is still made with the first secret.
  const printed = await program.run([...ROTATE, "--yes"]);
  const last = printed.stdout.trim();
  expect(printed).toEqual({ status: 0, stdout: `${last}\n`, stderr: "" });
  const second = await sentAgain(sending, first.id);
  expect(accepted(second, [last, rotated, secret])).toEqual([YES, NO, NO]);
  expect(second.headers["webhook-signature"]).not.toContain(" ");
  expect([second.body, second.signature]).toEqual([first.body, first.signature]);
  expect(await receiver.allGenuine(secret)).toBe(true);
});

test("an overlap ends by itself", async () => {
  const sending = await shopSending();
  const { program } = sending;
  await program.serve();
  const { id } = await program.json<{ id: string }>(["webhook", "test"]);
  // Its first attempt is made with the first secret.
  await sending.receiver.gets(1);
  let { secret } = sending;
  // On a busy machine, a short overlap can end before the attempt begins. Then a longer overlap is tried.
  for (let seconds = 3; ; seconds *= 2) {
    const { stdout, stderr } = await program.run([...ROTATE, "--overlap", `${seconds}s`, "--yes"]);
    const text =
      /^Until (\S+Z), webhook-signature has a signature of the former secret too\.\n$/.exec(stderr)?.[1] ?? "";
    const until = Date.parse(text);
    const during = await sentAgain(sending, id);
    const former = secret;
    secret = stdout.trim();
    if (Date.now() >= until) continue;
    expect(accepted(during, [secret, former])).toEqual([YES, YES]);
    await eventually(() => Date.now() > until);
    expect(accepted(await sentAgain(sending, id), [secret, former])).toEqual([YES, NO]);
    return;
  }
});

test("a test event is marked in each attempt, also after a restart and when it is sent again", async () => {
  const sending = await shopSending({ SDS_RETRY_WAITS: "100ms,100ms,100ms,1h" });
  const { program, receiver, post } = sending;
  receiver.answer = () => new Response(null, { status: 500 });
  const server = await program.serve();
  const { id } = await program.json<{ id: string }>(["webhook", "test", "--topic", "subscription.created"]);
  await receiver.gets(4);
  await server.stop();
  receiver.answer = () => new Response();
  const next = await program.serve();
  await sentAgain(sending, id);
  const marks = receiver.received.map(({ headers }) => [headers["webhook-id"], headers["x-service-test"]]);
  expect(marks).toEqual(Array.from({ length: 5 }, () => [id, "true"]));
  receiver.received.splice(0);
  await post(next.url, subscription(1));
  const [event] = await receiver.gets(1);
  expect(event?.topic).toBe("subscription.created");
  expect(event?.headers).not.toHaveProperty("x-service-test");
});

test.each([
  ["yes\n", 0, true],
  ["\n", 2, false],
])("rotate-secret asks on a terminal, and %j ends it with %d", async (answer, status, isRotated) => {
  const program = await Program.withShop();
  const { secret } = await program.json<{ secret: string }>(["webhook", "secret"]);
  const { shown, ...ended } = await program.answer(ROTATE, answer);
  expect(ended).toEqual({ status });
  expect(shown).toStartWith(`this makes a new signing secret for ${DOMAIN}, and its receivers need it. Go on? [y/N] `);
  const now = await program.json<{ secret: string }>(["webhook", "secret"]);
  expect(now.secret !== secret).toBe(isRotated);
  expect(shown.includes(now.secret)).toBe(isRotated);
});

test("rotate-secret without --yes, with a wrong overlap or with an unknown shop changes nothing", async () => {
  const program = await Program.withShop();
  const secret = await program.json(["webhook", "secret"]);
  const question = `this makes a new signing secret for ${DOMAIN}, and its receivers need it: add --yes to do it`;
  const refusals: [string[], number, string][] = [
    [[], 2, question],
    [["--overlap", "24h", "--json"], 2, question],
    [["--overlap", "31d", "--yes"], 2, `the overlap is "31d": it must be a duration from 1s to 30d, like 24h`],
    [["--overlap", "0s", "--yes"], 2, `the overlap is "0s": it must be a duration from 1s to 30d, like 24h`],
    [["--overlap", "-1h", "--yes"], 2, `the overlap is "-1h": it must be a duration from 1s to 30d, like 24h`],
    [["--shop", "beta.myshopify.com", "--yes"], 3, "there is no shop beta.myshopify.com"],
  ];
  for (const [args, status, message] of refusals) {
    const stdout = args.includes("--json") ? `${JSON.stringify({ error: { code: "invalid", message } })}\n` : "";
    expect(await program.run([...ROTATE, ...args])).toEqual({ ...failure(status, message), stdout });
  }
  expect(await program.json(["webhook", "secret"])).toEqual(secret);
});

import { expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { createConnector } from "../../src/delivery/connector.ts";
import { createDeliverer, signatureOf } from "../../src/delivery/deliverer.ts";
import { parseNetworks } from "../../src/lib/networks.ts";
import type { Claim } from "../../src/store/port/deliveries.ts";
import { START, testApp } from "../support/app.ts";
import { pausableProcess } from "../support/process-clock.ts";
import { Receiver } from "../support/receiver.ts";
import { subscription } from "../support/records.ts";

/** The time of the attempts. It is in the middle of a second, because the signed time is in whole seconds. */
const AT = START + 3_500;

/** Makes a deliverer with a real database, and a claimed delivery to an endpoint on this machine. */
async function delivering() {
  const { app, addShop } = await testApp();
  const { shop } = await addShop();
  const { webhooks, deliveries, mirror } = app.store;
  const receiver = new Receiver();
  await webhooks.set(shop.id, { url: receiver.url, topics: ["subscription.created"] }, START);
  const secret = await webhooks.secret(shop.id, START);
  await mirror.applyRecords([{ shop, records: [subscription(1)] }], START, []);
  const {
    claimed: [claim],
  } = await deliveries.recordAndClaim([], [{ shopId: shop.id, kind: "webhook", count: 1 }], START, START + 15_000, []);
  if (claim === undefined) throw new Error("nothing was claimed");
  const reads: number[] = [];
  const { secretOf } = webhooks;
  webhooks.secretOf = (shopId, version) => {
    reads.push(version);
    return secretOf(shopId, version);
  };
  const started: Claim[] = [];
  const settings = { resolve: async () => [], allow: parseNetworks("127.0.0.0/8"), timeoutMs: 5_000 };
  const startWorkflow = async (trigger: Claim) => {
    started.push(trigger);
    return { statusCode: 200, error: null, timedOut: false };
  };
  const now = () => AT;
  const deliver = createDeliverer({ webhooks, connect: createConnector(), startWorkflow, now }, settings);
  return { deliver, claim, receiver, secret, shop, addShop, webhooks, deliveries, reads, started };
}

test("a webhook is sent with its topic and a signature of its body", async () => {
  const { deliver, claim, receiver, secret } = await delivering();
  expect(await deliver(claim)).toMatchObject({ statusCode: 200, error: null, timedOut: false });
  expect(receiver.received).toMatchObject([{ topic: "subscription.created", body: claim.body }]);
  expect(await receiver.allGenuine(secret)).toBe(true);
});

test("a webhook whose secret was read too late is not sent: its lease could end during the attempt", async () => {
  const { deliver, claim, receiver, webhooks } = await delivering();
  const pauseProcess = pausableProcess();
  const { secretOf } = webhooks;
  webhooks.secretOf = (...which) => {
    pauseProcess(3_000);
    return secretOf(...which);
  };
  expect(await deliver(claim).catch((thrown: Error) => thrown.message)).toContain("took too long");
  expect(receiver.received).toEqual([]);
});

test("the signature of a delivery, shown by itself, is the one that is sent", async () => {
  const { deliver, claim, receiver, shop, webhooks, deliveries } = await delivering();
  await deliver(claim);
  const signature = await signatureOf(webhooks, shop.id, await deliveries.show(shop.id, claim.id));
  expect(receiver.received.map((each) => each.signature)).toEqual([signature ?? "missing"]);
});

test("a secret is read once for many deliveries, and each version by itself", async () => {
  const { deliver, claim, webhooks, shop, receiver, reads } = await delivering();
  await deliver(claim);
  await deliver(claim);
  expect(reads).toEqual([1]);
  const rotated = await webhooks.rotateSecret(shop.id, START);
  receiver.received.splice(0);
  await deliver({ ...claim, secretVersion: 2, newestSecret: { version: 2, overlapEndsAt: null } });
  expect(reads).toEqual([1, 2]);
  expect(await receiver.allGenuine(rotated)).toBe(true);
});

test("each shop's webhooks are signed with its own secret", async () => {
  const { deliver, claim, webhooks, addShop, receiver } = await delivering();
  await deliver(claim);
  const { shop: other } = await addShop("beta.myshopify.com");
  const secret = await webhooks.secret(other.id, START);
  receiver.received.splice(0);
  await deliver({ ...claim, shopId: other.id });
  expect(await receiver.allGenuine(secret)).toBe(true);
});

test("a secret that cannot be read is read again for the next delivery", async () => {
  const { deliver, claim, webhooks } = await delivering();
  const { secretOf } = webhooks;
  webhooks.secretOf = () => Promise.reject(new Error("disk I/O error"));
  await expect(deliver(claim)).rejects.toThrow("disk I/O error");
  webhooks.secretOf = secretOf;
  expect(await deliver(claim)).toMatchObject({ statusCode: 200 });
});

test("an attempt returns its URL and the answer", async () => {
  const { deliver, claim, receiver } = await delivering();
  receiver.answer = () => new Response("not today", { status: 503 });
  expect(await deliver(claim)).toMatchObject({ statusCode: 503, url: String(claim.url), answer: "not today" });
  const url = "http://127.0.0.1:1/closed?secret=1";
  const failed = await deliver({ ...claim, url });
  expect(failed).toMatchObject({ statusCode: null, url });
  expect(failed).not.toHaveProperty("answer");
});

test("without an endpoint the attempt fails", async () => {
  const { deliver, claim } = await delivering();
  expect(await deliver({ ...claim, url: null })).toEqual({
    statusCode: null,
    error: "The shop has no endpoint.",
    timedOut: false,
  });
});

const SECONDS = String(Math.floor(AT / 1_000));

/** Computes webhook-signature by its definition. */
function standardSignature(secret: string, { id, body }: Pick<Claim, "id" | "body">): string {
  const key = Buffer.from(secret.slice("whsec_".length), "base64");
  return `v1,${createHmac("sha256", key).update(`${id}.${SECONDS}.${body}`).digest("base64")}`;
}

test("a webhook has the headers of Standard Webhooks, with the time of the attempt", async () => {
  const { deliver, claim, receiver, secret } = await delivering();
  await deliver(claim);
  const headers = {
    "webhook-id": claim.id,
    "webhook-timestamp": SECONDS,
    "webhook-signature": standardSignature(secret, claim),
  };
  expect(receiver.received).toMatchObject([{ headers }]);
  expect(receiver.received[0]?.headers).not.toHaveProperty("x-service-test");
});

test("a test event is marked", async () => {
  const { deliver, claim, receiver } = await delivering();
  await deliver({ ...claim, test: true });
  expect(receiver.received).toMatchObject([{ headers: { "x-service-test": "true" } }]);
});

test("webhook-signature has the newest secret, and the former one until the overlap ends", async () => {
  const { deliver, claim, receiver, secret, shop, webhooks } = await delivering();
  const rotated = await webhooks.rotateSecret(shop.id, START);
  const [fresh, former] = [rotated, secret].map((each) => standardSignature(each, claim));
  for (const overlapEndsAt of [AT + 1, AT, null])
    await deliver({ ...claim, newestSecret: { version: 2, overlapEndsAt } });
  expect(receiver.received.map(({ headers }) => headers["webhook-signature"])).toEqual([
    `${fresh} ${former}`,
    `${fresh}`,
    `${fresh}`,
  ]);
  expect(await receiver.allGenuine(secret)).toBe(true);
});

test.each([
  ["whsec_YWI", "YWI=", "without padding"],
  ["whsec_YWJ=", "YWI=", "with bits behind the end"],
  ["whsec_-_-_", "+/+/", "with the letters of URLs"],
  ["YWI=", "YWI=", "without whsec_"],
])("the secret %j signs with the bytes of %j: it is one %s", async (odd, base64) => {
  const { deliver, claim, receiver, webhooks } = await delivering();
  webhooks.secretOf = async () => odd;
  expect(await deliver(claim)).toMatchObject({ statusCode: 200 });
  const signature = standardSignature(`whsec_${base64}`, claim);
  expect(receiver.received).toMatchObject([{ headers: { "webhook-signature": signature } }]);
  expect(await receiver.allGenuine(odd)).toBe(true);
});

test.each(["whsec_", "whsec_====", "whsec_é!", "whsec_A"])(
  "the secret %j has no key: the attempt goes on",
  async (odd) => {
    const { deliver, claim, receiver, webhooks } = await delivering();
    webhooks.secretOf = async () => odd;
    expect(await deliver(claim)).toMatchObject({ statusCode: 200 });
    expect(receiver.received).toMatchObject([{ headers: { "webhook-id": claim.id, "webhook-timestamp": SECONDS } }]);
    expect(receiver.received[0]?.headers).not.toHaveProperty("webhook-signature");
    expect(await receiver.allGenuine(odd)).toBe(true);
  },
);

test("a trigger starts a workflow, and has no signature", async () => {
  const { deliver, claim, receiver, shop, webhooks, deliveries, started } = await delivering();
  const trigger: Claim = { ...claim, kind: "trigger", url: null };
  expect(await deliver(trigger)).toMatchObject({ statusCode: 200, error: null, timedOut: false });
  expect([started, receiver.received]).toEqual([[trigger], []]);
  const details = await deliveries.show(shop.id, claim.id);
  expect(await signatureOf(webhooks, shop.id, { ...details, kind: "trigger" })).toBeNull();
});

import { expect, test } from "bun:test";
import { type ReceivedWebhook, startReceiver } from "../../src/cli/receiver.ts";
import { importSecret, signBody } from "../../src/client/signature.ts";
import { afterTest } from "../support/cleanup.ts";
import { Receiver } from "../support/receiver.ts";

const BODY = '{"id":"whd_a","topic":"order.failed"}';
const [NEW, OLD] = ["whsec_bmV3", "whsec_b2xk"];

function started(forwardTo?: string) {
  const received: ReceivedWebhook[] = [];
  const receiver = startReceiver({
    port: 0,
    secrets: async () => [NEW, OLD],
    onReceived: (each) => received.push(each),
    forwardTo,
  });
  afterTest(() => receiver.stop());
  async function post(secret: string, body = BODY, more: Record<string, string> = {}) {
    const signature = await signBody(await importSecret(secret), Buffer.from(body));
    const headers = {
      "X-Service-Topic": "order.failed",
      "X-Service-Signature": signature,
      "Content-Type": "application/json",
      ...more,
    };
    const answer = await fetch(receiver.url, { method: "POST", body, headers });
    return { status: answer.status, text: await answer.text() };
  }
  return { receiver, received, post };
}

test("a webhook signed with the newest or an older secret is genuine, and others are refused", async () => {
  const { received, post } = started();
  expect([await post(NEW), await post(OLD)]).toEqual([
    { status: 200, text: "ok\n" },
    { status: 200, text: "ok\n" },
  ]);
  expect(await post("whsec_b3RoZXI=")).toEqual({ status: 401, text: "The signature is wrong.\n" });
  const webhook = { topic: "order.failed", id: "whd_a", body: BODY };
  expect(received).toEqual([
    { genuine: true, ...webhook },
    { genuine: true, ...webhook },
    { genuine: false, ...webhook },
  ]);
});

test("a body that is not JSON has no id", async () => {
  const { received, post } = started();
  await post(NEW, "{");
  expect(received).toMatchObject([{ genuine: true, id: "?" }]);
});

test("only genuine webhooks are forwarded, with their headers, and the answer comes back", async () => {
  const target = new Receiver(0, "test");
  target.answer = () => new Response("taken", { status: 202 });
  const { post } = started(target.url);
  const standard = { "webhook-id": "whd_a", "webhook-timestamp": "1700000000", "webhook-signature": "v1,a v1,b" };
  expect(await post(NEW, BODY, { ...standard, "X-Service-Test": "true" })).toEqual({ status: 202, text: "taken" });
  await post("whsec_b3RoZXI=");
  await post(NEW);
  const first = { body: BODY, topic: "order.failed", signature: expect.stringMatching(/^sha256=/) };
  expect(target.received).toMatchObject([
    { ...first, headers: { ...standard, "x-service-test": "true", "content-type": "application/json" } },
    first,
  ]);
  expect(Object.keys(target.received[1]?.headers ?? {})).not.toContainAnyValues(["x-service-test", "webhook-id"]);
});

test("a target that cannot be reached is answered with 502", async () => {
  const server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response() });
  const url = `http://127.0.0.1:${server.port}/`;
  await server.stop(true);
  const { post } = started(url);
  expect(await post(NEW)).toEqual({ status: 502, text: `Could not reach ${url}.\n` });
});

test("the error of a taken port names its number", () => {
  const { receiver } = started();
  const port = Number(new URL(receiver.url).port);
  expect(() => startReceiver({ port, secrets: async () => [], onReceived: () => {} })).toThrow(
    `cannot listen on 127.0.0.1 port ${port}: another program uses the port`,
  );
});

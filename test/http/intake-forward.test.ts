import { expect, test } from "bun:test";
import { verifySignature } from "../../src/client/signature.ts";
import { createForwarder } from "../../src/http/intake-forward.ts";
import { createLog } from "../../src/lib/log.ts";
import { afterTest } from "../support/cleanup.ts";

const BUSY = 50;
const shop = { id: 7, domain: "alpha.myshopify.com" };
const signer = { shop, secret: "whsec_0123456789abcdef" } as never;

/** Starts another node that answers each post. */
function startNode(answer: (body: string, request: Request) => Response | Promise<Response>) {
  const received: { body: string; headers: Headers }[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const body = await request.text();
      received.push({ body, headers: request.headers });
      return answer(body, request);
    },
  });
  afterTest(() => server.stop(true));
  return { url: `http://127.0.0.1:${server.port}`, received };
}

const accepts = (body: string) => Response.json({ accepted: (JSON.parse(body) as unknown[]).length }, { status: 202 });

/** Requests without a timeout, because the other node of a test may be slow. */
const patientFetch = ((url: string, init: RequestInit) => fetch(url, { ...init, signal: null })) as typeof fetch;

/** Makes the forwarder of a node. Another node at `url` works for all shops. The test moves the clock. */
function forwarderTo(url: string | undefined, fetchWith = patientFetch) {
  const clock = { ms: 1_000_000 };
  const logged: string[] = [];
  const log = createLog("warn", { write: (line: string) => logged.push(line) > 0 }, Date.now);
  const forward = createForwarder({ ownerUrl: () => url, fetch: fetchWith, clock: () => clock.ms, log });
  const post = (text = '{"n":1}') => forward({ signer, text });
  return { post, clock, logged };
}

/** Posts until the shop is busy. */
async function makeBusy(post: () => Promise<number | undefined>): Promise<void> {
  for (let count = 0; count < BUSY; count += 1) expect(await post()).toBeUndefined();
}

test("only posts of a busy shop are passed on, signed and marked", async () => {
  const node = startNode(accepts);
  const { post, clock } = forwarderTo(node.url);
  await makeBusy(post);
  expect(node.received).toEqual([]);
  expect(await post('[{"n":1},{"n":2}]')).toBe(2);
  const [{ body, headers } = { body: "", headers: new Headers() }] = node.received;
  expect(body).toBe('[{"n":1},{"n":2}]');
  expect(await verifySignature("whsec_0123456789abcdef", body, headers.get("x-service-signature"))).toBe(true);
  expect([headers.get("x-service-shop"), headers.get("x-sds-forwarded")]).toEqual([shop.domain, "1"]);
  // The shop stays busy in the next second. Two seconds later, the shop is no longer busy.
  clock.ms += 1_000;
  expect(await post()).toBe(1);
  clock.ms += 2_000;
  expect(await post()).toBeUndefined();
});

test("posts that arrive together share requests, and each gets its own count", async () => {
  const node = startNode(accepts);
  const { post } = forwarderTo(node.url);
  await makeBusy(post);
  const texts = Array.from({ length: 40 }, (_, n) => `{"n":${n}}${n % 2 === 0 ? `\n{"m":${n}}` : ""}`);
  expect(await Promise.all(texts.map((text) => post(text)))).toEqual(texts.map((_, n) => (n % 2 === 0 ? 2 : 1)));
  expect(node.received.length).toBeLessThan(20);
  const records = node.received.flatMap(({ body }) => JSON.parse(body) as { n?: number }[]);
  expect(records.flatMap(({ n }) => n ?? []).toSorted((a, b) => a - b)).toEqual(texts.map((_, n) => n));
});

test.each([400, 413, 401, 503, 302])("this node commits a post that the other node answers with %d", async (status) => {
  const node = startNode(() => new Response("", { status, headers: { Location: "http://127.0.0.1:1/" } }));
  const { post, logged } = forwarderTo(node.url);
  await makeBusy(post);
  expect(await post()).toBeUndefined();
  expect(node.received).toHaveLength(1);
  expect(logged).toEqual([]);
});

test("a node that cannot be reached gets no posts for five seconds", async () => {
  const { post, clock, logged } = forwarderTo("http://127.0.0.1:1");
  await makeBusy(post);
  for (let count = 0; count < 3; count += 1) expect(await post()).toBeUndefined();
  expect(logged).toHaveLength(1);
  expect(logged[0]).toContain("another node does not take records");
  expect(logged[0]).not.toContain("whsec");
  clock.ms += 5_000;
  await makeBusy(post);
  await post();
  expect(logged).toHaveLength(2);
});

test("a node that does not answer is left alone too", async () => {
  const { promise, resolve } = Promise.withResolvers<Response>();
  const node = startNode(() => promise);
  const { post, logged } = forwarderTo(node.url, fetch);
  await makeBusy(post);
  for (let count = 0; count < 3; count += 1) expect(await post()).toBeUndefined();
  expect(node.received).toHaveLength(1);
  expect(logged).toEqual([expect.stringContaining("The operation timed out.")]);
  resolve(new Response());
});

test("a post without records, or with too many, stays here, and so does all without another node", async () => {
  const node = startNode(accepts);
  const { post } = forwarderTo(node.url);
  await makeBusy(post);
  for (const text of ["", " \n", "[]", `[${Array(251).fill("{}")}]`]) expect(await post(text)).toBeUndefined();
  expect(node.received).toEqual([]);
  const alone = forwarderTo(undefined);
  for (let count = 0; count < 2 * BUSY; count += 1) expect(await alone.post()).toBeUndefined();
});

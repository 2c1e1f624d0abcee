import { expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { createBodyReader } from "../../src/http/body.ts";
import { createIntakeHandler } from "../../src/http/intake.ts";
import { createPlatformWebhookHandler } from "../../src/http/shopify-webhooks.ts";
import { createLog } from "../../src/lib/log.ts";
import { testShop } from "../support/app.ts";

const CONTEXT = { id: "", isSecure: () => false, client: () => "" };

/**
 * Makes a body reader with memory for one body, and a load gauge. The gauge counts the posts for which GET requests
 * wait.
 */
async function setUp() {
  const { app, clock, shop } = await testShop();
  const parts = {
    bodies: createBodyReader({ maxTotalBytes: 2_000 }),
    shops: app.store.shops,
    moves: app.store.moves,
    load: {
      counted: 0,
      during<T>(work: Promise<T>): Promise<T> {
        this.counted += 1;
        return work;
      },
    },
    forward: async () => undefined,
    log: createLog("error", { write: () => undefined }, clock.now),
    now: clock.now,
  };
  return { app, shop, ...parts, parts };
}

function post(body: string, headers: Record<string, string>): Request {
  return new Request("http://sds.test/", { method: "POST", body, headers: { "Content-Length": "2", ...headers } });
}

test("readers make room for a signed post to the intake only, and its body counts until it is applied", async () => {
  const { app, shop, bodies, load, parts } = await setUp();
  const { promise: goesOn, resolve: goOn } = Promise.withResolvers<void>();
  const { promise: submitted, resolve: submit } = Promise.withResolvers<void>();
  const recordWriter = {
    async submit() {
      submit();
      await goesOn;
      return { accepted: 0, changed: 0, events: 0 };
    },
  };
  const handler = createIntakeHandler({ ...parts, recordWriter });
  const secret = (await app.store.shops.intakeSecret(shop.domain))?.secret ?? "";
  const headers = (signature: string) => ({
    "X-Service-Shop": shop.domain,
    "X-Service-Signature": `sha256=${signature}`,
  });
  const send = async (signature: string) => handler(post("[]", headers(signature)), CONTEXT);

  expect(await send("0".repeat(64)).catch((thrown: unknown) => thrown)).toMatchObject({ code: "unauthorized" });
  expect(load.counted).toBe(0);
  const answered = send(createHmac("sha256", secret).update("[]").digest("hex"));
  await submitted;
  expect(load.counted).toBe(1);
  const other = () => bodies.read(post("[]", {}), { maxBytes: 100, sender: "" });
  expect(await other().catch((thrown: unknown) => thrown)).toMatchObject({ code: "unavailable" });
  goOn();
  expect((await answered).status).toBe(202);
  using body = await other();
  expect(body.bytes).toHaveLength(2);
});

test("others run while the records of a large body are checked", async () => {
  const { app, shop, parts } = await setUp();
  const records = Array.from({ length: 240 }, (_, n) => ({
    type: "reward",
    id: `reward-${n}`,
    source: "loyalty",
    customer: "gid://shopify/Customer/1",
    ...Object.fromEntries(["a", "b", "c", "d"].map((name) => [name, name.repeat(1_000)])),
  }));
  const body = JSON.stringify(records);
  let turns = 0;
  let isSubmitted = false;
  const recordWriter = {
    async submit() {
      isSubmitted = true;
      return { accepted: records.length, changed: 0, events: 0 };
    },
  };
  const bodies = {
    async read() {
      setImmediate(function count() {
        turns += 1;
        if (!isSubmitted) setImmediate(count);
      });
      const bytes = new TextEncoder().encode(body);
      return { bytes, [Symbol.dispose]: () => undefined };
    },
  };
  const secret = (await app.store.shops.intakeSecret(shop.domain))?.secret ?? "";
  const signature = createHmac("sha256", secret).update(body).digest("hex");
  const headers = { "X-Service-Shop": shop.domain, "X-Service-Signature": `sha256=${signature}` };
  const handler = createIntakeHandler({ ...parts, bodies, recordWriter });
  const request = new Request("http://sds.test/", { method: "POST", body, headers });
  expect((await handler(request, CONTEXT)).status).toBe(202);
  expect(turns).toBeGreaterThanOrEqual(7);
});

test("readers make room for a genuine platform webhook only", async () => {
  const { load, parts } = await setUp();
  for (const genuine of [false, true]) {
    const handler = createPlatformWebhookHandler({
      ...parts,
      verify: () => genuine,
      connections: { shopMovedTo: async () => undefined },
      warnings: { noteVersion: async () => undefined },
      inboxWriter: { submit: async () => true, drain: async () => undefined },
    });
    const answered = (async () => handler(post("{}", { "X-Shopify-Hmac-Sha256": `${"A".repeat(43)}=` }), CONTEXT))();
    const outcome = await answered.catch((thrown: unknown) => thrown);
    expect(outcome).toMatchObject(genuine ? { status: 200 } : { code: "unauthorized" });
    expect(load.counted).toBe(genuine ? 1 : 0);
  }
});

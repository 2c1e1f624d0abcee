import { expect, test } from "bun:test";
import { statSync } from "node:fs";
import { join } from "node:path";
import { answerOf, NOT_FOUND, notAllowed, refusal, success } from "../support/answer.ts";
import { testApp, testShop } from "../support/app.ts";
import { signedIn } from "../support/signed-in.ts";

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/** Every path that is served, with the methods it takes. */
const SERVED = {
  "/api/v1/subscriptions": "GET",
  "/api/v1/customers?limit=1": "GET",
  "/api/v1/orders?cursor=x": "GET",
  "/intake": "POST",
  "/platform/webhooks": "POST",
  "/healthz": "GET, HEAD",
  "/readyz?x": "GET, HEAD",
  "/admin": "GET",
  "/admin/sign-in": "GET, POST",
  "/admin/sign-out": "GET, POST",
  "/assets/page.css": "GET",
  "/assets/page.js?v=1": "GET",
  "/assets/icon.svg": "GET",
  "/app": "GET",
  "/app/bounce": "GET",
  "/app/keys": "GET, POST",
  "/app/webhooks/secret": "GET, POST",
  "/app/deliveries/whd_a": "GET",
  "/admin/keys": "GET, POST",
  "/admin/keys/key_a/revoke": "GET, POST",
  "/admin/webhooks": "GET, POST",
  "/admin/webhooks/secret": "GET, POST",
  "/admin/webhooks/rotate": "GET, POST",
  "/admin/webhooks/clear": "GET, POST",
  "/admin/webhooks/test": "GET, POST",
  "/admin/deliveries": "GET",
  "/admin/deliveries/retry-dead": "GET, POST",
  "/admin/deliveries/whd_a": "GET",
  "/admin/deliveries/whd_a/curl": "GET",
  "/admin/deliveries/whd_a/retry": "GET, POST",
  "/admin/triggers": "GET, POST",
  "/admin/deliveries/workflows": "GET",
  "/admin/deliveries/workflows/retry-dead": "GET, POST",
  "/admin/data": "GET",
  "/admin/data/browse": "GET",
  "/admin/data/browse/sub_a": "GET",
  "/admin/data/inbox": "GET",
  "/admin/data/inbox/retry": "GET, POST",
  "/admin/data/inbox/1/retry": "GET, POST",
  "/admin/data/requests": "GET",
  "/admin/data/requests/1/export": "GET, POST",
  "/admin/data/requests/1/answered": "GET, POST",
  "/admin/plan": "GET",
  "/admin/style": "GET, POST",
  "/admin/style/clear": "GET, POST",
  "/admin/style/preview": "GET, POST",
  "/admin/fields": "GET, POST",
  "/admin/fields/edit/size": "GET, POST",
  "/admin/fields/archive/size": "GET, POST",
  "/admin/fields/restore/size": "GET, POST",
  "/admin/fields/values": "GET, POST",
  "/admin/fields/values/sub_a": "GET, POST",
  "/docs": "GET, HEAD",
  "/docs/quick-start": "GET, HEAD",
  "/docs/search?q=x": "GET, HEAD",
  "/docs/docs.css?v=1": "GET, HEAD",
};

test("a path takes its methods and no others, without a key or a session", async () => {
  const { request } = await testApp();
  for (const [path, allow] of Object.entries(SERVED)) {
    for (const method of METHODS) {
      const response = await request(path, { method });
      if (allow.split(", ").includes(method))
        expect([method, path, [404, 405, 500].includes(response.status)]).toEqual([method, path, false]);
      else expect([method, path, await answerOf(response)]).toEqual([method, path, notAllowed(allow)]);
    }
  }
});

test("below /api an unknown path is 404 for GET, with or without a key, and 405 for every other method", async () => {
  const { request, get } = await testShop();
  for (const path of [
    "/api",
    "/api/",
    "/api/v1",
    "/api/v1/",
    "/api/v2/orders",
    "/api/v1/subscriptions/",
    "/api/v1/Orders",
    "/api/v1/%6frders",
    "/api//v1/orders",
    "/api/v1/orders/1",
    "/api/v1/orders;x",
    "/api/v9/nothing?cursor=x",
  ]) {
    expect([path, await answerOf(await request(path)), await answerOf(await get(path))]).toEqual([
      path,
      NOT_FOUND,
      NOT_FOUND,
    ]);
    for (const method of METHODS.slice(1))
      expect([method, path, await answerOf(await request(path, { method }))]).toEqual([
        method,
        path,
        notAllowed("GET"),
      ]);
  }
});

test("elsewhere an unknown path is 404 for every method, signed in or not", async () => {
  const { cookie, all } = await signedIn();
  for (const path of [
    "/",
    "/nothing",
    "/apis",
    "//api/v1/orders",
    "/healthz/",
    "/intake/x",
    "/admin/",
    "/admin/nothing",
    "/admin/keys/",
    "/admin/keys/x/y",
    "/admin/Keys",
    "/admin/deliveries/a-b",
    "/administrator",
    "/docs/",
    "/docs/nothing",
    "/docs/errors",
  ])
    for (const method of METHODS)
      for (const headers of [{}, { Cookie: cookie }])
        expect([method, path, await answerOf(await all.request(path, { method, headers }))]).toEqual([
          method,
          path,
          NOT_FOUND,
        ]);
});

test.each(["x", "sds", "[::1]", "a.example", "sds:8080"])("the API answers under the host %s", async (host) => {
  const { app, key } = await testShop();
  const response = await app.handle(
    new Request(`http://${host}/api/v1/orders`, { headers: { Authorization: `Bearer ${key}` } }),
  );
  expect(response.status).toBe(200);
});

test("healthz is 200, whatever the database does", async () => {
  const { app, request } = await testApp();
  app.store.check = async () => {
    throw new Error("disk full");
  };
  expect(await answerOf(await request("/healthz"))).toEqual(success(200, { status: "ok" }));
});

test("the check of readyz is a write that reaches the disk each time", async () => {
  const { app, folder } = await testApp();
  const logSize = () => statSync(join(folder, "data/sds.db-wal")).size;
  const sizes = [logSize()];
  for (let check = 0; check < 3; check += 1) {
    await app.store.check();
    sizes.push(logSize());
  }
  expect(new Set(sizes).size).toBe(4);
});

test("readyz is 503 while the database cannot be written, and while the program stops", async () => {
  const { app, request, clock } = await testApp();
  const ready = async () => answerOf(await request("/readyz"));
  const { check } = app.store;
  app.store.check = async () => {
    throw new Error("disk full");
  };
  const retryAfter = { "retry-after": "1" };
  expect(await ready()).toEqual(refusal(503, "unavailable", "The database cannot be written.", retryAfter));
  app.store.check = check;
  clock.ms += 1_000;
  expect(await ready()).toEqual(success(200, { status: "ok" }));
  await app.stop();
  expect(await ready()).toEqual(refusal(503, "unavailable", "The program is stopping.", retryAfter));
});

import { describe, expect, test } from "bun:test";
import { connectionText, shopStatus } from "../../../src/actions/shop.ts";
import { connected, HOUR_MS } from "../../support/connected.ts";
import type { Fault } from "../../support/platform/faults.ts";
import { answer, count, failFirst, OPERATION, RESULT, requestCount } from "./queries.ts";

describe("a refused token", () => {
  test("is replaced with the app's own credentials, and is not logged as trouble", async () => {
    const all = await connected();
    all.remote.revokeTokens();
    expect(await count(all)).toEqual(RESULT);
    expect(requestCount(all)).toBe(2);
    expect(all.test.logged.join("")).not.toContain("refuses the shop's connection");
  });
});

describe("trouble with the connection is shown with the shop, and logged when it begins and when it ends", () => {
  const frozen = "the shop is frozen, because a bill is unpaid (HTTP 402)";
  test.each<[string, Fault, string, string?]>([
    ["401", { status: 401 }, "the platform refuses the shop's token (HTTP 401); connect the shop again"],
    ["402", { status: 402 }, `${frozen}; wait until it is paid`],
    ["403", { status: 403 }, "the shop or the platform does not allow the app (HTTP 403); check the app"],
    [
      "400 invalid_grant",
      { status: 400, body: '{"error":"invalid_grant"}' },
      "the platform refuses the refresh token before it expires (HTTP 400: invalid_grant): another program, such as the billing app",
      "token",
    ],
    ["402 to a request for a token", { status: 402 }, frozen, "token"],
    ["301", { status: 301, headers: { Location: `https://beta.myshopify.com/` } }, "(HTTP 301): beta.myshopify.com"],
    ["301 without a domain", { status: 301 }, "the shop has another domain now (HTTP 301); rename it with"],
    ["404", { status: 404 }, "the platform does not know the shop (HTTP 404)"],
    ["404 to a request for a token", { status: 404 }, "the platform does not know the shop (HTTP 404)", "token"],
    ["423", { status: 423 }, "the platform has locked the shop (HTTP 423)"],
    ["430", { status: 430 }, "the platform mistakes the requests for an attack and refuses them (HTTP 430)"],
  ])("HTTP %s", async (_title, fault, text, faultyOperation = OPERATION) => {
    const all = await connected();
    const { platform } = all.test.app;
    const status = () => shopStatus(all.test.app.store, all.shop.shop, Date.now());
    const shown = async () => (await status()).trouble;
    const logged = () => all.logged("the shop's connection").map(({ level }) => level);
    const pair = all.remote.issuePair();
    const credentials =
      faultyOperation === "token"
        ? { kind: "refresh" as const, refreshToken: pair.refreshToken }
        : { kind: "token" as const, token: all.remote.issueToken() };
    await platform.connect(all.shop.shop.domain, credentials);
    all.replaceAnswers(faultyOperation, fault);
    if (faultyOperation === "token") all.test.clock.ms += HOUR_MS;
    const since = all.test.clock.ms;
    for (let n = 0; n < 3; n += 1) {
      await expect(count(all)).rejects.toThrow(text);
      all.test.clock.ms += 1_000;
    }
    expect(await shown()).toContain(text);
    expect(connectionText(await status())).toEndWith(`; since ${new Date(since).toISOString()}`);
    expect(logged()).toEqual(["error"]);
    all.platform.fault = () => undefined;
    for (let n = 0; n < 2; n += 1) await count(all);
    expect(await shown()).toBe(null);
    expect(logged()).toEqual(["error", "info"]);
  });

  test("a field without access is not trouble with the connection", async () => {
    const all = await connected();
    const denied = { message: "Access denied", path: ["customersCount"], extensions: { code: "ACCESS_DENIED" } };
    all.platform.fault = failFirst(1, answer({ data: { customersCount: null }, errors: [denied] }));
    await expect(count(all)).rejects.toThrow("Access denied");
    expect((await shopStatus(all.test.app.store, all.shop.shop, Date.now())).trouble).toBeNull();
  });
});

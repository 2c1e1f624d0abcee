import { describe, expect, test } from "bun:test";
import type { Patient } from "../../../src/cli/doctor/check.ts";
import { REMOTE_CHECKS } from "../../../src/cli/doctor/network.ts";
import { SHOP_CHECKS } from "../../../src/cli/doctor/shops.ts";
import type { Store } from "../../../src/store/port/store.ts";
import { START } from "../../support/app.ts";
import { checkupOf, patientWith, runDataCheck, withCheckup } from "./patient.ts";

const TOKENS = { accessToken: "shpat_1", refreshToken: null, expiresAt: null };

/** Connects the shop of a patient to the platform. */
async function connected({ shops, connections }: Store): Promise<void> {
  const shop = await shops.find("alpha.myshopify.com");
  await connections.connect(shop?.id ?? 0, "token", TOKENS, ["read_customers"], START);
}

/** A platform whose clock differs from ours. */
function platformWith(aheadMs: number, requests: [string, RequestInit | undefined][] = []): Partial<Patient> {
  const answer = async (url: string, init?: RequestInit) => {
    requests.push([url, init]);
    return new Response(null, { headers: { date: new Date(START + aheadMs).toUTCString() } });
  };
  return { fetch: answer as unknown as typeof fetch };
}

describe("the clock", () => {
  test.each([
    [10_000, true, "as the platform"],
    [11_000, false, "the clock of this machine is 11 seconds behind the platform"],
    [-11_000, true, "as the platform"],
    [-3_600_000, false, "the clock of this machine is 3,599 seconds ahead of the platform"],
  ])("with a platform that is %d ms ahead: ok is %p", async (aheadMs, ok, detail) => {
    const patient = await patientWith(platformWith(aheadMs), {}, connected);
    expect(await runDataCheck(REMOTE_CHECKS, "clock", patient)).toMatchObject({ ok, detail });
  });

  test("is compared with the shop's platform by a request without a token, and not without a connected shop", async () => {
    const requests: [string, RequestInit | undefined][] = [];
    const patient = await patientWith(platformWith(0, requests), {}, connected);
    await runDataCheck(REMOTE_CHECKS, "clock", patient);
    expect(requests).toMatchObject([["https://alpha.myshopify.com/", { method: "HEAD", redirect: "manual" }]]);
    expect(JSON.stringify(requests)).not.toContain("shpat_");
    const alone = await runDataCheck(REMOTE_CHECKS, "clock", await patientWith(platformWith(3_600_000)));
    expect(alone).toEqual({ ok: true, detail: "not compared: no connected shop's platform answers" });
  });

  test("is compared with the database server, of which it may differ by two seconds", async () => {
    const patient = await patientWith();
    const check = (time: number) =>
      runDataCheck(REMOTE_CHECKS, "clock", withCheckup(patient, { clock: async () => time }));
    expect(await check(START + 2_000)).toEqual({ ok: true, detail: "as the database server" });
    expect(await check(START - 2_001)).toMatchObject({
      ok: false,
      detail: expect.stringContaining("ahead of the data"),
    });
  });
});

test("a platform that cannot be reached is a fault", async () => {
  const refused = Object.assign(new Error("no"), { code: "ConnectionRefused" });
  const fetch = (() => Promise.reject(refused)) as unknown as typeof globalThis.fetch;
  const found = await runDataCheck(REMOTE_CHECKS, "platform", await patientWith({ fetch }, {}, connected));
  expect(found).toMatchObject({ ok: false, detail: "the platform cannot be reached: the connection was refused" });
});

test("a shop that did not grant what sds needs is a fault", async () => {
  const found = await runDataCheck(SHOP_CHECKS, "scopes", await patientWith({}, {}, connected));
  expect(found).toMatchObject({
    ok: false,
    detail: "alpha.myshopify.com without read_own_subscription_contracts, read_orders",
  });
});

test("endpoints of 10,000 shops are tried at 20 hosts, and the result is one line without paths", async () => {
  let tries = 0;
  let running = 0;
  let most = 0;
  const resolve = async () => {
    tries += 1;
    running += 1;
    most = Math.max(most, running);
    await new Promise(setImmediate);
    running -= 1;
    return [];
  };
  const patient = await patientWith({ resolve });
  const endpoints = Array.from({ length: 200 }, (_, n) => ({
    url: `https://hooks-${n}.example.com/in?token=secret`,
    domain: `shop-${n}.myshopify.com`,
  }));
  const shops = { ...checkupOf(patient).shops, endpoints: async () => ({ count: 10_000, endpoints }) };
  const found = await runDataCheck(REMOTE_CHECKS, "endpoints", withCheckup(patient, { shops }));
  expect(found).toMatchObject({
    ok: false,
    detail:
      "20 endpoints, such as hooks-0.example.com of shop-0.myshopify.com, hooks-1.example.com of " +
      "shop-1.myshopify.com, hooks-2.example.com of shop-2.myshopify.com: " +
      "the name hooks-0.example.com does not resolve; 20 of 10,000 were tried, those that fail first",
  });
  expect([tries, most]).toEqual([20, 10]);
});

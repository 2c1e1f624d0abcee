import { describe, expect, test } from "bun:test";
import { nextTurn } from "../../../src/lib/waits.ts";
import { CUSTOMERS_COUNT } from "../../../src/shopify/api/operations/customers.ts";
import { BILLING_CYCLES } from "../../../src/shopify/api/operations/cycles.ts";
import type { Priority } from "../../../src/shopify/api/rate-limits.ts";
import { connected, HOUR_MS } from "../../support/connected.ts";
import { eventually } from "../../support/eventually.ts";
import type { Fault } from "../../support/platform/faults.ts";
import { recorded } from "../../support/recorded-client.ts";
import { answer, count, failFirst, RESULT, requestCount } from "./queries.ts";

/** Like `recorded`, with a function that runs one of the program's own queries. */
async function recordedQuery(...options: Parameters<typeof recorded>) {
  const all = await recorded(...options);
  const query = (own: { maxRetries?: number; priority?: Priority } = {}) =>
    all.client.withOptions(own).query(all.shop, CUSTOMERS_COUNT, {});
  return { ...all, query };
}

/** Like `recordedQuery`. The platform fails the first requests of the query. */
async function failing(requestCount: number, fault: Fault, ...options: Parameters<typeof recorded>) {
  const all = await recordedQuery(...options);
  all.all.platform.fault = failFirst(requestCount, fault);
  return all;
}

const STATUS = { maximumAvailable: 1000, currentlyAvailable: 40, restoreRate: 50 };

function cost(requestedQueryCost: number, status: Partial<typeof STATUS> = {}): object {
  return { requestedQueryCost, throttleStatus: { ...STATUS, ...status } };
}

function refusal(message: string, code?: string, cost?: object): Fault {
  return answer({ errors: [{ message, extensions: { code } }] }, cost);
}

function throttled(cost?: object): Fault {
  return refusal("Throttled", "THROTTLED", cost);
}

function retryAfter(status: number, text: string): Fault {
  return { status, headers: { "Retry-After": text } };
}

describe("a failure that may pass is retried", () => {
  test.each<[string, Fault, number[]]>([
    ["after HTTP 500, with waits that double", { status: 500 }, [1000, 2000, 4000]],
    ["after HTTP 503, when the seconds in Retry-After are over", retryAfter(503, "2"), [2000, 2000, 2000]],
    ["after HTTP 429, also when Retry-After has a fraction", retryAfter(429, "1.5"), [1500, 1500, 1500]],
    [
      "without regard to a Retry-After that is a date",
      retryAfter(503, "Fri, 31 Dec 2026 23:59:59 GMT"),
      [1000, 2000, 4000],
    ],
    ["after a minute if Retry-After is longer", retryAfter(503, "3600"), [60_000, 60_000, 60_000]],
    ["after an answer that is not JSON", { status: 200, body: "<html>" }, [1000, 2000, 4000]],
    ["after a reset connection", "reset", [1000, 2000, 4000]],
    ["after a lost answer", "lost", [1000, 2000, 4000]],
    ["after a defect of the platform", refusal("Sorry", "INTERNAL_SERVER_ERROR"), [1000, 2000, 4000]],
  ])("%s", async (_title, fault, expected) => {
    const { waits, query } = await failing(3, fault);
    expect(await query()).toEqual(RESULT);
    expect(waits).toEqual(expected);
  });

  test("four times, then it is reported", async () => {
    const { all, waits, query } = await failing(1_000, { status: 502 });
    await expect(query()).rejects.toThrow("the platform answered HTTP 502");
    expect(waits).toEqual([1000, 2000, 4000, 8000]);
    expect(requestCount(all)).toBe(5);
  });

  test("as often as the caller wants, with waits of a minute at most", async () => {
    const { client, shop, waits, query } = await failing(1_000, { status: 502 });
    const many = client.queryWithJson(shop, CUSTOMERS_COUNT, "{}", { maxRetries: 8 });
    await expect(many).rejects.toThrow("HTTP 502");
    expect(waits).toEqual([1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]);
    waits.length = 0;
    await expect(query({ maxRetries: 1 })).rejects.toThrow("HTTP 502");
    expect(waits).toEqual([1000]);
  });

  test.each<[string, Fault, string]>([
    ["HTTP 400", { status: 400 }, "the platform answered HTTP 400"],
    ["HTTP 403", { status: 403 }, "does not allow the app (HTTP 403)"],
    ["a redirect", { status: 302, headers: { Location: "/elsewhere" } }, "the platform answered HTTP 302"],
    ["an error of the query", refusal("no such field"), "the platform answered: no such field"],
  ])("but %s is not", async (_title, fault, message) => {
    const { all, waits, query } = await failing(1_000, fault);
    await expect(query()).rejects.toThrow(message);
    expect(waits).toEqual([]);
    expect(requestCount(all)).toBe(1);
  });
});

describe("points", () => {
  test.each<[string, object | undefined, number[]]>([
    ["until the missing ones are back", cost(100), [1200]],
    ["a minute at most", cost(900, { currentlyAvailable: 0, restoreRate: 2 }), [60_000]],
    ["a second if the platform does not say how many are missing", undefined, [1000]],
    ["a second if it does not say how fast they come back", cost(100, { restoreRate: 0 }), [1000]],
    ["a second if none are missing", cost(30), [1000]],
  ])("a throttled request waits %s", async (_title, missing, expected) => {
    const { waits, query } = await failing(1, throttled(missing));
    expect(await query()).toEqual(RESULT);
    expect(waits).toEqual(expected);
  });

  test("a throttled request waits as often as it takes, also for a caller that wants no retries", async () => {
    const { waits, query } = await failing(20, throttled(cost(100)));
    expect(await query({ maxRetries: 0 })).toEqual(RESULT);
    expect(waits).toEqual(Array.from({ length: 20 }, () => 1200));
  });

  test("a load is finished, however often another program took the points first", async () => {
    const all = await connected();
    const fault = throttled(cost(100, { restoreRate: 50_000 }));
    all.platform.fault = ({ operation, n }) => (operation === "AllContracts" && n <= 10 ? fault : undefined);
    all.createContract();
    const { subscriptions } = await all.load();
    expect(subscriptions).toBe(1);
  });

  test("a query that costs more than the maximum of points fails, because it would wait for ever", async () => {
    const { all, query } = await failing(1_000, throttled(cost(1001)));
    await expect(query()).rejects.toThrow("limit of requests");
    expect(requestCount(all)).toBe(1);
  });

  test("a throttled request runs before a less urgent request that came later", async () => {
    const { query, hooks } = await failing(1, throttled(cost(500, { currentlyAvailable: 0 })));
    const ended: string[] = [];
    const run = (priority: Priority) => query({ priority }).then(() => ended.push(priority));
    let later: Promise<unknown> | undefined;
    hooks.onSleep = async (nth) => {
      if (nth > 1) return;
      later = run("order");
      // These turns give the order's query time to run. The order's query must not run before the attempt's query.
      for (let turn = 0; turn < 20; turn += 1) await nextTurn();
    };
    await run("attempt");
    await later;
    expect(ended).toEqual(["attempt", "order"]);
  });

  test("a wait for points ends when the caller stops", async () => {
    const fault = throttled(cost(500, { currentlyAvailable: 0, restoreRate: 1 }));
    const { all, client, shop } = await failing(1_000, fault, { inRealTime: true });
    const stopping = new AbortController();
    const query = client.queryWithJson(shop, CUSTOMERS_COUNT, "{}", { signal: stopping.signal });
    query.catch(() => undefined);
    await eventually(() => requestCount(all) === 1);
    stopping.abort();
    await expect(query).rejects.toThrow("was stopped");
    client.stop();
  });

  test("a request waits before it is sent if the last answer shows too few points", async () => {
    const { waits, clock, query } = await failing(3, answer({ data: RESULT }, cost(100)));
    await query();
    expect(waits).toEqual([]);
    await query();
    expect(waits).toEqual([1200]);
    clock.ms += 1_000;
    await query();
    expect(waits).toEqual([1200, 200]);
  });

  test.each([
    ["as many as a larger one cost", 12, 3, [120], [1600]],
    ["more than a smaller one cost, by its size", 3, 12, [30], [1600]],
    ["what its size cost before", 12, 3, [120, 30], [1600]],
  ])("a query of varying size waits for %s", async (_title, firstSize, size, costs, expected) => {
    const { all, client, shop, waits } = await recordedQuery();
    const query = (count: number) => client.query(shop, BILLING_CYCLES, { id: "gid", from: 1, to: count, count });
    const data = { subscriptionBillingCycles: { nodes: [] } };
    const answers = costs.map((points) => answer({ data }, cost(points)));
    all.platform.fault = ({ n }) => answers[n - 1] ?? answer({ data });
    await query(firstSize);
    for (const _ of costs.slice(1)) await query(size);
    await query(size);
    expect(waits).toEqual(expected);
  });

  test("a request does not wait for the points of another shop", async () => {
    const { all, client, waits, query } = await failing(1, answer({ data: RESULT }, cost(100)));
    await query();
    all.platform.addShop("beta.myshopify.com");
    await all.test.addShop("beta.myshopify.com");
    const { shop: other } = await all.test.app.platform.connect("beta.myshopify.com", { kind: "client_credentials" });
    await client.query(other, CUSTOMERS_COUNT, {});
    expect(waits).toEqual([]);
  });

  test("are almost never exceeded, however many requests begin at the same time", async () => {
    const { all, query } = await recordedQuery({ inRealTime: true }, { maximumAvailable: 60, restoreRate: 400 });
    for (let n = 0; n < 5; n += 1) all.remote.createCustomer({ email: `${n}@example.com` });
    await Promise.all(Array.from({ length: 40 }, () => query()));
    expect(all.platform.throttled).toBeLessThanOrEqual(3);
  });
});

describe("a platform is slow", () => {
  test("if it took more than five seconds for the shop's last request, and until it is faster", async () => {
    const { promise: until, resolve } = Promise.withResolvers<void>();
    const { all, client, shop, clock, query } = await failing(1, { until });
    const slow = query();
    await eventually(() => requestCount(all) === 1);
    clock.ms += 5_001;
    resolve();
    await slow;
    expect([client.isSlow(shop.id), client.isSlow(shop.id + 1)]).toEqual([true, false]);
    await query();
    expect(client.isSlow(shop.id)).toBe(false);
  });

  test("but neither because of waits for points, nor after a failure", async () => {
    const { all, client, shop, waits, query } = await recordedQuery();
    const empty = throttled(cost(800, { currentlyAvailable: 0 }));
    all.platform.fault = ({ n }) => (n <= 2 ? empty : n <= 5 ? { status: 502 } : undefined);
    await query();
    expect(Math.max(...waits)).toBeGreaterThan(5_000);
    expect(client.isSlow(shop.id)).toBe(false);
  });
});

test("a field without access is logged once, however often it is queried", async () => {
  const denied = { message: "Access denied", path: ["customer", "firstName"], extensions: { code: "ACCESS_DENIED" } };
  const customer = { id: "gid://shopify/Customer/1" };
  const data = { customer: { ...customer, firstName: null } };
  const { logged, query } = await failing(2, answer({ data, errors: [denied] }));
  for (let n = 0; n < 2; n += 1) expect<unknown>(await query()).toEqual({ customer });
  expect(logged.filter((line) => line.includes("has no access to a field"))).toHaveLength(1);
});

describe("a stop", () => {
  test("ends requests at once, also those for tokens", async () => {
    const all = await connected();
    all.test.clock.ms += 24 * HOUR_MS;
    const never = Promise.withResolvers<void>();
    all.platform.fault = () => ({ until: never.promise });
    const begun = all.operations().length;
    const query = count(all);
    query.catch(() => undefined);
    await eventually(() => all.operations().length > begun);
    await all.test.app.stop();
    await expect(query).rejects.toThrow("the request to the platform was stopped");
  });

  test("fails requests that begin later, without sending them", async () => {
    const { all, client, query } = await recordedQuery();
    client.stop();
    await expect(query()).rejects.toThrow("was stopped");
    expect(requestCount(all)).toBe(0);
  });

  test("by the caller ends the retries", async () => {
    const { all, client, shop, waits, hooks } = await failing(1_000, { status: 502 });
    const stopping = new AbortController();
    hooks.onSleep = async () => stopping.abort();
    const query = client.queryWithJson(shop, CUSTOMERS_COUNT, "{}", { signal: stopping.signal });
    await expect(query).rejects.toThrow("was stopped");
    expect(waits).toEqual([1000]);
    expect(requestCount(all)).toBe(1);
  });
});

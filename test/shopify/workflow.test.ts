import { expect, test } from "bun:test";
import { apiUrls } from "../../src/shopify/api/address.ts";
import { createWorkflowStarter } from "../../src/shopify/workflow.ts";
import type { Claim } from "../../src/store/port/deliveries.ts";
import { answerWith, type ConnectedShop, connected, DOMAIN } from "../support/connected.ts";
import { eventually } from "../support/eventually.ts";
import { pausableProcess } from "../support/process-clock.ts";
import { recordedClient } from "../support/recorded-client.ts";

function triggerLog({ test, shop }: ConnectedShop) {
  return test.app.store.deliveries.list(shop.shop.id, { limit: 20, kind: "trigger" });
}

test("triggers are started once each, with the customer's exact number, and logged like webhooks", async () => {
  const all = await connected();
  const { store, sender } = all.test.app;
  await store.shops.set(DOMAIN, {
    triggers: ["subscription-created", "billing-attempt-failed", "streak-milestone-reached"],
  });
  const customer = all.remote.createCustomer({ email: "a@example.com" });
  const contract = all.createContract({ customer });
  await all.deliverAll();
  all.remote.failAttempt(all.remote.startAttempt(contract, 1), "EXPIRED_CARD");
  await all.deliverAll();
  await all.shop.intake({ type: "reward", id: "s1", source: "streak", customer, milestone: 5 });
  all.remote.cancel(contract);
  await all.deliverAll();
  sender.wake();
  await eventually(async () => (await triggerLog(all)).every(({ status }) => status === "delivered"));
  const { workflows } = all.remote;
  const handles = ["billing-attempt-failed", "streak-milestone-reached", "subscription-created"];
  expect(workflows.map(({ handle }) => handle).toSorted()).toEqual(handles);
  const number = customer.split("/").at(-1);
  expect(workflows.every(({ raw }) => raw.includes(`"customer_id":${number},`))).toBe(true);
  expect(workflows.find(({ handle }) => handle === "billing-attempt-failed")?.payload).toMatchObject({
    "Contract ID": contract,
    Interval: "1 month",
    "Decline reason": "expired_card",
    "Attempt count": 1,
  });
  expect((await triggerLog(all)).map(({ lastStatusCode }) => lastStatusCode)).toEqual([200, 200, 200]);
});

test("triggers that the platform refuses are retried, with its message in the log", async () => {
  const all = await connected({}, { handles: [] });
  const { store, sender } = all.test.app;
  await store.shops.set(DOMAIN, { triggers: ["subscription-created"] });
  all.createContract();
  await all.deliverAll();
  sender.wake();
  await eventually(async () => (await triggerLog(all))[0]?.status === "retrying");
  const error = expect.stringContaining("Invalid handle 'subscription-created'");
  expect(await triggerLog(all)).toMatchObject([{ attempts: 1, lastStatusCode: 200, error }]);
  all.platform.fault = () => ({ status: 500 });
  all.test.clock.ms += 120_000;
  sender.wake();
  await eventually(async () => (await triggerLog(all))[0]?.attempts === 2);
  expect(await triggerLog(all)).toMatchObject([{ lastStatusCode: 500, error: "The platform answered HTTP 500." }]);
});

function urlOf({ platform }: ConnectedShop): string {
  return apiUrls(platform.url, DOMAIN).graphql;
}

/** Makes one attempt to start a workflow, and returns its result. */
async function attempt(
  all: ConnectedShop,
  { timeoutMs = 10_000, shopId = all.shop.shop.id, shops = all.test.app.store.shops } = {},
) {
  const { client, waits } = recordedClient(all);
  const start = createWorkflowStarter({ client, shops, timeoutMs });
  const claim = {
    shopId,
    body: '{"handle":"subscription-created","payload":{"customer_id":9007199254740993}}',
  } as Claim;
  return { outcome: await start(claim), waits };
}

test("an attempt is one request, without a retry of its own", async () => {
  const all = await connected();
  const answer = '{"data":{"flowTriggerReceive":{"userErrors":[]}}}';
  const sent = { statusCode: 200, error: null, url: urlOf(all), answer, timedOut: false };
  expect((await attempt(all)).outcome).toEqual(sent);
  all.replaceAnswers("FlowTrigger", { status: 503 });
  const { outcome, waits } = await attempt(all);
  expect(outcome).toEqual({
    statusCode: 503,
    error: "The platform answered HTTP 503.",
    url: urlOf(all),
    timedOut: false,
  });
  expect(waits).toEqual([]);
});

test("an attempt ends with its timeout", async () => {
  const all = await connected();
  all.platform.fault = () => ({ until: new Promise(() => undefined) });
  const { outcome } = await attempt(all, { timeoutMs: 20 });
  expect(outcome).toMatchObject({ statusCode: null, error: "The platform did not answer in time.", timedOut: true });
});

test("an attempt ends with its timeout even if the database does not answer", async () => {
  const all = await connected();
  const shops = { ...all.test.app.store.shops, byId: () => new Promise<undefined>(() => undefined) };
  const { outcome } = await attempt(all, { timeoutMs: 20, shops });
  expect(outcome).toMatchObject({ statusCode: null, error: "The platform did not answer in time.", timedOut: true });
});

test("an attempt sends nothing after its timeout, even if the process was paused", async () => {
  const all = await connected();
  const pauseProcess = pausableProcess();
  const { shops } = all.test.app.store;
  const slow = {
    ...shops,
    async byId(id: number) {
      const shop = await shops.byId(id);
      pauseProcess(20_000);
      return shop;
    },
  };
  const { outcome } = await attempt(all, { shops: slow });
  expect(outcome).toMatchObject({ statusCode: null, timedOut: true });
  expect(all.remote.workflows).toEqual([]);
});

test("an attempt for a shop that was removed fails", async () => {
  const all = await connected();
  const { outcome } = await attempt(all, { shopId: 9 });
  expect(outcome).toEqual({ statusCode: null, error: "The shop was removed.", timedOut: false });
});

test("an attempt keeps all messages of the platform, up to 500 characters", async () => {
  const all = await connected();
  const userErrors = ["one", "two", "x".repeat(600)].map((message) => ({ field: [], message }));
  all.replaceAnswers("FlowTrigger", answerWith({ flowTriggerReceive: { userErrors } }));
  const { error, answer } = (await attempt(all)).outcome;
  expect(error).toBe(`one two ${"x".repeat(492)}`);
  expect(JSON.parse(String(answer))).toEqual({ data: { flowTriggerReceive: { userErrors } } });
});

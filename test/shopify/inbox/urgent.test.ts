import { expect, test } from "bun:test";
import { afterTest } from "../../support/cleanup.ts";
import { connected, createContract } from "../../support/connected.ts";
import { eventually } from "../../support/eventually.ts";

/** How many subjects of one shop the program reads at the same time. */
const AT_ONCE = 32;

test("a failed payment is read before all webhooks that waited longer, and is listed with its time of arrival", async () => {
  const { test: program, platform, remote, shop, send, deliverAll } = await connected();
  const contracts = Array.from({ length: AT_ONCE + 2 }, () => createContract(remote));
  await deliverAll();
  const [failing = "", ...others] = contracts;
  for (const gid of others) remote.pause(gid);
  for (const webhook of remote.outgoing.splice(0)) await send(webhook);
  await eventually(() => !program.app.processor.working);
  program.clock.ms += 8_000;
  const { promise, resolve } = Promise.withResolvers<void>();
  afterTest(resolve);
  const asked: unknown[] = [];
  platform.fault = ({ variables }) => {
    asked.push(variables["id"]);
    return { until: promise };
  };
  remote.failAttempt(remote.startAttempt(failing, 1), "CARD_DECLINED");
  const failure = remote.outgoing.splice(0).find(({ topic }) => topic === "subscription_billing_attempts/failure");
  if (failure !== undefined) await send(failure);
  await eventually(() => asked.length === AT_ONCE);
  expect(asked).toContain(failing);
  const [entry] = await program.app.store.inbox.list(shop.shop.id, { limit: 1 });
  expect(entry?.nextAttemptAt).toBe(program.clock.ms);
});

import { expect, test } from "bun:test";
import { afterTest } from "../../support/cleanup.ts";
import { type ConnectedShop, connected, DOMAIN } from "../../support/connected.ts";
import { eventually } from "../../support/eventually.ts";
import { setProcessClock } from "../../support/process-clock.ts";

const CYCLES = "BillingCycles";

/**
 * Makes a shop with mirrored contracts. The shop regains points slowly. The program measures durations with the test's
 * clock.
 */
async function shopWithContracts() {
  const all = await connected({}, { restoreRate: 1 });
  setProcessClock(() => all.test.clock.ms);
  const contracts = Array.from({ length: 5 }, () => all.createContract());
  await all.deliverAll();
  return { all, contracts };
}

/** Changes contracts, so that each is due to be read. */
async function change({ test, remote, send }: ConnectedShop, contracts: readonly string[]): Promise<void> {
  for (const gid of contracts) remote.pause(gid);
  for (const webhook of remote.outgoing.splice(0)) await send(webhook);
  test.clock.ms += 8_000;
  test.app.processor.wake();
}

/**
 * Holds back the answers about billing cycles until the test ends.
 * @returns a function that counts the requests without an answer
 */
function holdAnswers({ platform }: ConnectedShop): () => number {
  let count = 0;
  const { promise, resolve } = Promise.withResolvers<void>();
  afterTest(resolve);
  platform.fault = ({ operation }) => {
    if (operation !== CYCLES) return undefined;
    count += 1;
    return { until: promise };
  };
  return () => count;
}

test("a shop that waits for points is read on at full speed", async () => {
  const { all, contracts } = await shopWithContracts();
  all.platform.bucket(DOMAIN).drainTo(0);
  await change(all, contracts.slice(0, 1));
  await eventually(() => all.platform.throttled > 0);
  all.test.clock.ms += 6_000;
  all.platform.bucket(DOMAIN).drainTo(1_000);
  await all.processed();
  const heldCount = holdAnswers(all);
  await change(all, contracts.slice(1));
  await eventually(() => heldCount() === 4);
});

test("a shop whose platform is slow is read one contract at a time", async () => {
  const { all, contracts } = await shopWithContracts();
  const { promise, resolve } = Promise.withResolvers<void>();
  let isAsked = false;
  all.platform.fault = ({ operation }) => {
    if (operation !== "Nodes") return undefined;
    isAsked = true;
    return { until: promise };
  };
  await change(all, contracts.slice(0, 1));
  await eventually(() => isAsked);
  all.test.clock.ms += 6_000;
  resolve();
  await all.processed();
  const heldCount = holdAnswers(all);
  await change(all, contracts.slice(1));
  await eventually(() => heldCount() > 0);
  for (let round = 0; round < 50; round += 1) await new Promise((next) => setImmediate(next));
  expect(heldCount()).toBe(1);
});

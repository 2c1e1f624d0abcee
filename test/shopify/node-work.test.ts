import { expect, test } from "bun:test";
import { connected, LINE } from "../support/connected.ts";
import { customer } from "../support/records.ts";

test("records that a node reads from the platform are its own work, and posted records are not", async () => {
  const { test: opened, remote, shop, deliverAll } = await connected();
  const { store, platform } = opened.app;
  const { applyRecords } = store.mirror;
  const seen = new Set<boolean | undefined>();
  store.mirror.applyRecords = (submissions, ...rest) => {
    for (const { isNodeWork } of submissions) seen.add(isNodeWork);
    return applyRecords(submissions, ...rest);
  };
  const first = remote.createCustomer({ email: "ada@example.com" });
  const contract = remote.createContract({ customer: first, lines: [LINE] });
  await platform.synchronizer.load(shop.shop, { events: false });
  expect([...seen]).toEqual([true]);
  seen.clear();
  remote.pause(contract);
  await deliverAll();
  expect([...seen]).toEqual([true]);
  seen.clear();
  expect((await shop.intake(customer(1))).status).toBe(202);
  expect([...seen]).toEqual([undefined]);
});

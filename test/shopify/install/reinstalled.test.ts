import { expect, test } from "bun:test";
import { START } from "../../support/app.ts";
import { type ConnectedShop, connected, DOMAIN, HOUR_MS } from "../../support/connected.ts";
import { Installing } from "../../support/installing.ts";
import type { Webhook } from "../../support/platform/webhook.ts";

/** A shop that its staff connected and the program loaded. It has a contract, also in the mirror. */
async function loaded(): Promise<ConnectedShop & { contract: string; staff: Installing }> {
  const all = await connected();
  await all.queueAllEvents();
  const contract = all.createContract();
  await all.deliverAll();
  all.test.clock.ms += HOUR_MS;
  await all.load();
  const staff = new Installing(all.test, all.platform, DOMAIN);
  await all.test.app.store.connections.uninstall(all.shop.shop.id, all.test.clock.ms - 1);
  await staff.open();
  return Object.assign(all, { contract, staff });
}

/** Uninstalls the app an hour later. @returns the platform's webhook about it, which is not sent yet */
function uninstall(all: ConnectedShop): Webhook {
  all.test.clock.ms += HOUR_MS;
  all.remote.uninstall();
  const webhook = all.remote.outgoing.splice(0).find(({ topic }) => topic === "app/uninstalled");
  if (webhook === undefined) throw new Error("no webhook about the uninstallation");
  return webhook;
}

test("installed again, a shop works at the first view, and loads what it missed, with each event once", async () => {
  const all = await loaded();
  const gone = uninstall(all);
  await all.send(gone);
  await all.processed();
  expect(await all.staff.connection()).toBeUndefined();
  expect(await all.staff.open()).toEqual({ waits: "token" });
  all.test.clock.ms += HOUR_MS;
  all.remote.pause(all.contract);
  all.remote.outgoing.splice(0);
  all.remote.install();
  all.test.clock.ms += HOUR_MS;
  expect(await all.staff.open()).toMatchObject({ shop: { id: all.shop.shop.id } });
  expect(await all.shop.all("subscriptions")).toMatchObject([{ status: "ACTIVE" }]);
  for (let run = 0; run < 2; run += 1) {
    await all.test.app.reconciler.runOnce();
    expect(await all.shop.all("subscriptions")).toMatchObject([{ status: "PAUSED" }]);
    expect(await all.queuedTopics()).toEqual(["subscription.created", "order.charged", "subscription.updated"]);
    all.test.clock.ms += HOUR_MS;
  }
});

test("a webhook of the old installation that comes late, and twice, ends nothing", async () => {
  const all = await loaded();
  const gone = uninstall(all);
  all.remote.install();
  all.test.clock.ms += 60_000;
  await all.staff.open();
  await all.staff.settled();
  const connection = await all.staff.connection();
  expect(connection).toMatchObject({ kind: "refresh", trouble: null });
  for (const id of ["first", "second"]) {
    await all.send({ ...gone, id });
    await all.processed();
  }
  expect(await all.staff.connection()).toEqual(connection);
  expect(all.logged("uninstalled the app")).toEqual([]);
  // The new installation is uninstalled too. Its webhook ends the connection.
  await all.send(uninstall(all));
  await all.processed();
  expect(await all.staff.connection()).toBeUndefined();
  expect(await all.staff.tokens()).toBeUndefined();
});

test.each([-HOUR_MS, HOUR_MS])(
  "a late webhook of the old installation ends no connection by a command, with a clock %p ms ahead",
  async (aheadMs) => {
    let now = () => START - aheadMs;
    const all = await connected({}, { now: () => now() });
    now = () => all.test.clock.ms - aheadMs;
    const { store, platform } = all.test.app;
    const gone = uninstall(all);
    all.remote.install();
    all.test.clock.ms += 60_000;
    await platform.connect(DOMAIN, { kind: "client_credentials" });
    await all.send(gone);
    await all.processed();
    expect(await store.connections.find(all.shop.shop.id)).toBeDefined();
    await all.send(uninstall(all));
    await all.processed();
    expect(await store.connections.find(all.shop.shop.id)).toBeUndefined();
  },
);

test("scopes that the shop grants later are read when the platform says so", async () => {
  const all = await loaded();
  await all.staff.open();
  await all.staff.settled();
  all.remote.setScopes([...all.remote.scopes, "read_all_orders"]);
  await all.deliverAll();
  expect((await all.staff.connection())?.scopes).toContain("read_all_orders");
});

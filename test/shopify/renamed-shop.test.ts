import { expect, test } from "bun:test";
import { shopStatus } from "../../src/actions/shop.ts";
import { connected, DOMAIN, HOUR_MS, withMirroredContract } from "../support/connected.ts";
import { eventually } from "../support/eventually.ts";

const NEW = "renamed.myshopify.com";

type Connected = Awaited<ReturnType<typeof connected>>;

/** Changes the domain of the shop at the stand-in. Its webhooks name the new domain. */
function renameAtPlatform({ platform, remote }: Connected, { redirects = false } = {}): void {
  platform.renameShop(DOMAIN, NEW);
  if (redirects) remote.movedTo = NEW;
}

async function warnings({ test: { app }, shop }: Connected): Promise<string[]> {
  return (await app.store.connections.warnings(shop.shop.id)).map(({ text }) => text);
}

const ADVICE = `the shop has the domain ${NEW} now: run \`sds shop rename ${DOMAIN} ${NEW}\``;

test.each([false, true])("a new domain is named, and its webhooks are used (redirects: %p)", async (redirects) => {
  const { all, contract } = await withMirroredContract();
  await all.load();
  const ids = (await all.shop.all("subscriptions")).map(({ id }) => id);
  all.test.clock.ms += HOUR_MS;
  renameAtPlatform(all, { redirects });
  all.remote.pause(contract);
  for (const webhook of all.remote.outgoing.splice(0)) expect((await all.send(webhook)).status).toBe(200);
  expect(all.logged("platform webhooks name an unknown shop")).toMatchObject([{ shop: NEW }]);
  await all.reconcile().catch(() => undefined);
  expect(await warnings(all)).toEqual([ADVICE]);
  const { trouble } = await shopStatus(all.test.app.store, all.shop.shop, Date.now());
  expect(trouble).toEqual(redirects ? expect.stringContaining(`(HTTP 301): ${NEW}`) : null);

  // The webhooks of the new domain reach the shop, although it was not renamed here yet.
  all.remote.activate(contract);
  for (const webhook of all.remote.outgoing.splice(0)) await all.send(webhook);
  expect((await all.inbox()).length).toBeGreaterThan(0);
  await all.test.app.store.shops.rename(DOMAIN, NEW);
  await all.processedAfter(HOUR_MS);
  expect(await all.inbox()).toEqual([]);
  const renamed = (await all.test.app.store.shops.find(NEW)) ?? all.shop.shop;
  await all.test.app.platform.synchronizer.reconcile(renamed);
  expect(await warnings(all)).toEqual([]);
  expect((await shopStatus(all.test.app.store, renamed, Date.now())).trouble).toBeNull();
  expect(await all.shop.all("subscriptions")).toMatchObject([{ id: ids[0], shopifyId: contract, status: "ACTIVE" }]);
});

test("requests about personal data that name a new domain are obeyed, also after the app was uninstalled", async () => {
  const { all, contract } = await withMirroredContract();
  await all.load();
  const customer = all.remote.ids("customer")[0] ?? "";
  all.test.clock.ms += HOUR_MS;
  renameAtPlatform(all);
  await all.reconcile();
  all.remote.uninstall();
  await all.deliverAll();
  expect(await all.test.app.store.connections.find(all.shop.shop.id)).toBeUndefined();
  expect(await warnings(all)).toEqual([ADVICE]);
  all.remote.redactCustomer(customer);
  await all.deliverAll();
  expect(await all.shop.all("customers")).toMatchObject([{ shopifyId: customer, email: null }]);
  expect(await all.shop.all("subscriptions")).toMatchObject([{ shopifyId: contract }]);
  all.remote.redactShop();
  await all.deliverAll();
  await eventually(async () => (await all.test.app.store.shops.list()).length === 0);
});

test("a redirect that ends is not warned of any more, and the other domain's webhooks are not used", async () => {
  const { all, contract } = await withMirroredContract();
  await all.load();
  all.test.clock.ms += HOUR_MS;
  all.remote.movedTo = NEW;
  await all.reconcile().catch(() => undefined);
  expect(await warnings(all)).toEqual([ADVICE]);
  all.remote.movedTo = undefined;
  await all.reconcile();
  expect(await warnings(all)).toEqual([]);
  all.remote.pause(contract);
  for (const webhook of all.remote.outgoing.splice(0)) await all.send({ ...webhook, shop: NEW });
  expect(await all.inbox()).toEqual([]);
});

test("cursors, checkpoints, keys, gids and the intake stay valid, and new events have the new domain", async () => {
  const all = await connected();
  await all.queueAllEvents();
  const contracts = [all.createContract(), all.createContract(), all.createContract()];
  await all.deliverAll();
  const first = await all.shop.get("/api/v1/subscriptions?limit=1");
  const page = (await first.json()) as { data: { id: string }[]; page: { nextCursor: string } };
  const checkpoint = first.headers.get("x-checkpoint") ?? "";
  const { id: firstId } = page.data[0] ?? { id: "" };
  const before = await all.shop.all("subscriptions");
  const renamed = await all.test.app.store.shops.rename(DOMAIN, NEW);
  const next = await all.shop.get(`/api/v1/subscriptions?cursor=${encodeURIComponent(page.page.nextCursor)}`);
  expect([next.status, ((await next.json()) as { data: unknown[] }).data.length]).toEqual([200, 2]);
  const since = await all.shop.get(`/api/v1/subscriptions?since=${encodeURIComponent(checkpoint)}`);
  expect([since.status, ((await since.json()) as { data: unknown[] }).data]).toEqual([200, []]);
  expect(await all.shop.all("subscriptions")).toEqual(before);
  const byGid = await all.shop.get(`/api/v1/subscriptions/${encodeURIComponent(contracts[0] ?? "")}`);
  expect(before).toContainEqual((await byGid.json()) as Record<string, unknown>);
  const filtered = await all.shop.get(`/api/v1/orders?contractId=${encodeURIComponent(contracts[0] ?? "")}`);
  expect(((await filtered.json()) as { data: unknown[] }).data).toHaveLength(1);
  expect(firstId).toStartWith("sub_");
  expect(await (await all.shop.get("/api/v1/shop")).json()).toMatchObject({ domain: NEW });

  const reward = { type: "reward", id: "r1", source: "loyalty", customer: "gid://shopify/Customer/1" };
  const answers = [
    await all.shop.intake(reward),
    await all.shop.intake(reward, { headers: { "X-Service-Shop": NEW } }),
  ];
  expect(answers.map(({ status }) => status)).toEqual([202, 202]);
  const [delivery] = await all.test.app.store.deliveries.list(renamed.id, { limit: 1 });
  const { body } = await all.test.app.store.deliveries.show(renamed.id, delivery?.id ?? "");
  expect(JSON.parse(body)).toMatchObject({ shop: NEW, topic: "loyalty.reward_earned" });
});

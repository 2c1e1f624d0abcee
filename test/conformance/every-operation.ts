import { hashToken } from "../../src/actions/session.ts";
import { auditEntry } from "../../src/domain/audit.ts";
import { TOPIC_NAMES } from "../../src/domain/events/event.ts";
import { addField, archiveField, restoreField } from "../../src/domain/fields/definition.ts";
import { hashKey } from "../../src/domain/key.ts";
import type { Shop } from "../../src/domain/shop.ts";
import { MOVED_TABLES } from "../../src/store/copy/moved-tables.ts";
import type { Departure } from "../../src/store/port/shop-moves.ts";
import type { Store } from "../../src/store/port/store.ts";
import { OPERATOR, signInAt } from "../support/actors.ts";
import { START } from "../support/app.ts";
import { claim, failed, record, succeeded } from "./delivery-fixtures.ts";
import { addShop, apiKey, chooseAllEvents, HOUR, receipt, removeShop, TOKENS, URL } from "./fixtures.ts";
import { mirror } from "./mirror-operations.ts";

const CHANNELS = { operator: true, email: true };

/** Calls each operation of the port at least once, with all its filters, on a shop with data in every table. */
export async function everyOperation(store: Store): Promise<void> {
  const shop = await addShop(store);
  await configure(store, shop);
  await mirror(store, shop);
  await deliver(store, shop);
  await receive(store, shop);
  await signIn(store, shop);
  await store.check();
  await store.figures();
  await store.totals.read(START);
  await store.checkpoint();
  await moveAway(store, shop);
  await removeShop(store, shop.domain);
  await store.shops.removing();
  await store.close();
}

/** Calls the operations of a move. The copy of the shop gets another domain, because it is in the same database. */
async function moveAway({ moves, shops, epoch, formerEpochs }: Store, shop: Shop): Promise<void> {
  await moves.find(shop.domain);
  const departure = (await moves.begin(shop.domain, "move_1", "elsewhere")) as Departure;
  const { move, spans } = departure;
  const there = "delta.myshopify.com";
  const row = departure.row.map((value) => (value === shop.domain ? there : value));
  await moves.stop(move, "stop_1", START);
  await moves.sending(move, START);
  await moves.goOn(move, "stop_1");
  await moves.forget(move);
  const room = await moves.arrive({ ...departure, move: "move_2", row, spans }, START);
  await moves.arrival("move_2");
  for (const { table, key, owner } of MOVED_TABLES) {
    const range = owner === undefined ? {} : { owners: await moves.read(departure.shop, owner.table, {}) };
    const rows = await moves.read(departure.shop, table.name, range);
    await moves.readBatch(departure.shop, table.name, range, { rows: 500, bytes: 1_000 });
    if (["orders", "deliveries"].includes(table.name) || owner !== undefined) continue;
    if (key.length > 0) await moves.read(departure.shop, table.name, { after: rows[0], upTo: rows[0] });
  }
  const styles = await moves.read(departure.shop, "widget_styles", {});
  await moves.arm("move_2", "stop_2");
  await moves.write("move_2", "stop_2", "widget_styles", [], styles);
  await moves.write("move_2", "stop_2", "widget_styles", styles, []);
  await moves.disarm("move_2", "stop_2");
  await moves.refuse("move_2");
  await moves.activate(
    "move_2",
    "stop_2",
    { epoch, formerEpochs, shopId: shop.id },
    auditEntry(OPERATOR, START, "shop.moved"),
  );
  await removeShop({ shops } as Store, there);
  await moves.origins(room.id);
  await moves.isAway(shop.domain);
  await moves.leave((await moves.begin(shop.domain, "move_3", "elsewhere"))?.move ?? "");
}

async function configure(store: Store, shop: Shop): Promise<void> {
  const { shops, keys, webhooks, connections, fields, styles } = store;
  await Promise.all([
    shops.list(),
    shops.find(shop.domain),
    shops.byId(shop.id),
    shops.neediest(10),
    shops.owning("key_none"),
    shops.settings(shop.id),
    shops.intakeSecret(shop.domain),
    shops.formerBranches(shop.id),
  ]);
  await shops.followPlan(shop.id, "free+addon");
  await shops.rename(shop.domain, "renamed.example.com");
  await shops.rename("renamed.example.com", shop.domain);
  await keys.add(shop.id, apiKey("1"), hashKey("key"));
  await Promise.all([keys.list(shop.id), keys.find(hashKey("key")), keys.touch(new Map([["key_1", START]]))]);
  await keys.revoke(shop.id, "key_1", START);
  await webhooks.set(shop.id, { url: URL, topics: TOPIC_NAMES }, START);
  await webhooks.rotateSecret(shop.id, START);
  await fields.update(shop.id, (all) => addField(all, { key: "note", label: "Note", type: "text" }));
  await fields.update(shop.id, (all) => archiveField(all, "note", START));
  await fields.update(shop.id, (all) => restoreField(all, "note"));
  await styles.set(shop.id, { source: "p{}", hash: "a" });
  await Promise.all([fields.list(shop.id), styles.shopOf(shop.domain), styles.find(shop.id), styles.clear(shop.id)]);
  await Promise.all([
    webhooks.settings(shop.id),
    webhooks.secret(shop.id, START),
    webhooks.secretOf(shop.id, 1),
    webhooks.secrets(shop.id),
    webhooks.overlapEndsAt(shop.id),
  ]);
  await webhooks.clear(shop.id);
  await store.audit.add(shop.id, auditEntry(OPERATOR, START, "link.made"));
  await store.audited(shop.id, auditEntry(OPERATOR, START, "style.removed")).styles.clear(shop.id);
  const filter = { who: "command", action: "link.made", from: START, to: START + 1 } as const;
  for (const place of [{}, { olderThan: 9 }, { newerThan: 0 }]) {
    await store.audit.list(shop.id, filter, place, 5);
    await store.audit.page(shop.id, filter, place, 5, () => false);
  }
  await store.audit.prune(START);
  await connections.connect(shop.id, "token", TOKENS, [], START);
  await Promise.all([connections.find(shop.id), store.syncs.unreconciled(0, 0), connections.tokens(shop.id)]);
  await connections.beginExchange(shop.domain, "p1", START, START + 1);
  await connections.extendExchange(shop.domain, "p1", START + 2);
  const newShop = { domain: shop.domain, plan: "pro" as const, currency: "USD" };
  await connections.install("p1", { shop: newShop, kind: "token", tokens: TOKENS, scopes: [], connectedAt: START });
  await connections.endExchange(shop.domain, "p1");
  await connections.endAllExchanges();
  await connections.setScopes(shop.id, ["read_orders"]);
  await connections.beginRenewal(shop.id, "p1", START, START + 1);
  await connections.renew(shop.id, TOKENS, TOKENS);
  await connections.endRenewal(shop.id, "p1");
  await connections.setScopes(shop.id, []);
  await connections.setTrouble(shop.id, "revoked", START);
  await store.alerts.list(shop.id);
  await store.alerts.addAddress(shop.id, "a@example.com", START);
  await store.alerts.addresses(shop.id);
  await store.alerts.removeAddress(shop.id, 0, START);
  await store.alerts.findAddress(hashToken("t"));
  await store.alerts.confirmAddress(hashToken("t"), START);
  for (const alert of await store.alerts.due(START)) await store.alerts.tell(alert, CHANNELS, URL, START);
  await store.alerts.claimNotice(START, () => START);
  await store.alerts.removeNotice(0);
  await connections.warn(shop.id, "answers", "another version", START);
  await connections.endWarning(shop.id, "webhooks");
  await connections.warnings(shop.id);
  await connections.shopMovedTo(shop.domain);
  await connections.disconnect(shop.id, START + 1);
  await connections.connect(shop.id, "token", TOKENS, [], START);
  await connections.uninstall(shop.id, START + 1);
  await Promise.all([connections.uninstallation(shop.id), connections.uninstalledBefore(START + 1)]);
  await connections.noteContractsEnded(shop.id, START + 1);
  await chooseAllEvents(store, shop);
}

async function deliver(store: Store, shop: Shop): Promise<void> {
  const { deliveries } = store;
  await deliveries.dueQueues(START);
  await Promise.all([deliveries.listPaces(), deliveries.bringForward(START - HOUR, START - HOUR)]);
  const [first, second, third] = await claim(store, shop);
  if (first === undefined || second === undefined || third === undefined) throw new Error("too little was queued");
  await record(store, [failed(first), failed(third)], []);
  await record(store, [{ ...succeeded(second), pace: { pace: "quick", timedOutAt: null } }]);
  for (const filter of [
    {},
    { status: "dead" },
    { kind: "trigger" },
    { kind: "webhook", status: "delivered" },
  ] as const) {
    await deliveries.list(shop.id, { limit: 5, ...filter });
  }
  await deliveries.pick(shop.id, [first.id]);
  await deliveries.show(shop.id, first.id);
  await deliveries.retry(shop.id, first.id, START);
  await deliveries.countWaiting(shop.id);
  await Promise.all([deliveries.countDead(shop.id, 0), deliveries.countDead(shop.id, 0, "webhook")]);
  await deliveries.retryDead(shop.id, 0, START);
  await deliveries.queueTest(shop, { topic: "order.charged", data: {} }, START);
  await deliveries.newestTest(shop.id);
  await searchLog(store, shop);
  await deliveries.prune(START + HOUR, 0);
}

async function receive(store: Store, shop: Shop): Promise<void> {
  const { inbox } = store;
  await inbox.receive([receipt(shop, "w1"), receipt(shop, null)], START);
  const [queue] = await inbox.dueQueues(START);
  const [item] = await inbox.due(queue ?? { shopId: shop.id, needsPlatform: true }, START, 5);
  const number = item?.number ?? 0;
  await inbox.bringForward({ first: START, further: START }, START);
  await inbox.waitingAbout({ shopId: shop.id, needsPlatform: true }, item?.subject ?? "", 5);
  await Promise.all([
    inbox.waitingSubjects(shop.id),
    inbox.read(shop.id, [number]),
    inbox.count(shop.id),
    inbox.lastReceivedAt(shop.id),
  ]);
  await inbox.postpone(shop.id, [number], "no", null);
  for (const filter of [{}, { status: "failed" }] as const) await inbox.list(shop.id, { limit: 5, ...filter });
  await inbox.retry(shop.id, number, START);
  await inbox.retryFailed(shop.id, START);
  await inbox.retryAbout(shop.id, item?.subject ?? "", START);
  await inbox.noteError(shop.id, item?.subject ?? "", "no");
  await inbox.merge(shop.id, { number, topic: "orders/updated", body: "{}", triggeredAt: START }, [number + 1]);
  await inbox.forgetReceipts(START + 1);
}

async function signIn(store: Store, shop: Shop): Promise<void> {
  const { sessions } = store;
  const [link, session] = [hashToken("link"), hashToken("session")];
  await sessions.addLink(shop.id, link, START + 1);
  await sessions.begin(link, session, signInAt(START), START + 1);
  await sessions.find(session, START);
  await sessions.renew(session, START + 2, 3);
  await sessions.put(session, shop.id, START, START + 1);
  await store.settingsPage.useForm(session, hashToken("form"));
  await store.settingsPage.putNotice(session, "/admin/keys", "notice", START + 1);
  await store.settingsPage.takeNotices(session, "/admin/keys", START);
  await store.settingsPage.countToken("192.0.2.1", START);
  await store.settingsPage.takeBackToken("192.0.2.1", START);
  await store.settingsPage.removeExpired(START, START);
  await sessions.end(session);
  await sessions.endAll(shop.id, START);
  await sessions.noteAddress("http://127.0.0.1:1");
  await sessions.address();
  await sessions.forgetAddress("http://127.0.0.1:1");
}

/** Searches the delivery log with every filter, and reads its statistics. */
async function searchLog({ deliveries }: Store, { id }: Shop): Promise<void> {
  const [newest] = await deliveries.list(id, { limit: 1 });
  const subjects = [{ subject: "1" }, { subject: "1", order: { gid: "gid://shopify/Order/1", cycle: 1 } }];
  const statuses = ["pending", "retrying", "delivered", "dead", undefined] as const;
  for (const after of [undefined, newest?.id ?? ""]) {
    for (const filter of [{}, { topic: "order.charged" }, { from: START - HOUR, to: START + HOUR }, { subjects }]) {
      for (const status of statuses)
        await deliveries.page(id, {
          limit: 5,
          ...filter,
          ...(status !== undefined && { status }),
          ...(after !== undefined && { after }),
        });
    }
  }
  await deliveries.countsByDay(id, START);
  await deliveries.lastOutcomes(id, "webhook");
  await deliveries.recentAttempts(id, "webhook", START);
  await deliveries.countDelivered(id, START, 9);
}

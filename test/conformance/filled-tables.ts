import { auditEntry } from "../../src/domain/audit.ts";
import { addField } from "../../src/domain/fields/definition.ts";
import { hashKey } from "../../src/domain/key.ts";
import { dataRequest } from "../../src/domain/people/data-request.ts";
import { NO_COUNTS } from "../../src/domain/platform/sync.ts";
import type { MirroredShop } from "../../src/domain/shop.ts";
import type { Store } from "../../src/store/port/store.ts";
import { OPERATOR, signInAt } from "../support/actors.ts";
import { START } from "../support/app.ts";
import { cancelFlow, fieldValue, gid, order, reward, subscription } from "../support/records.ts";
import { applySearched } from "../support/searched.ts";
import { claim, failed, record } from "./delivery-fixtures.ts";
import { apiKey, commit, receipt } from "./fixtures.ts";

/** The progress of an unfinished load. */
export const RUN = { startedAt: START, events: false, stage: "orders", cursor: null, counts: NO_COUNTS } as const;

/** Gives a shop a row or more in every table. */
export async function fillTables(store: Store, shop: MirroredShop): Promise<void> {
  const name = shop.domain;
  await store.keys.add(shop.id, apiKey(name), hashKey(name));
  await store.sessions.addLink(shop.id, hashKey(`link ${name}`), START + 1_000);
  await store.sessions.addLink(shop.id, hashKey(`used ${name}`), START + 1_000);
  await store.sessions.begin(hashKey(`used ${name}`), hashKey(`session ${name}`), signInAt(START), START + 1_000);
  await store.connections.warn(shop.id, "answers", "another version", START);
  await store.alerts.addAddress(shop.id, "a@example.com", START);
  await store.syncs.save(shop.id, "full", RUN);
  await store.fields.update(shop.id, (all) => addField(all, { key: "note", label: "Note", type: "text" }));
  await store.styles.set(shop.id, { source: "p{}", hash: "a" });
  await store.audit.add(shop.id, auditEntry(OPERATOR, START, "style.saved"));
  await store.inbox.receive([receipt(shop, "w1"), receipt(shop, "w2")], START);
  const stage = (await store.orderStages.begin(shop.id)) ?? 0;
  await store.orderStages.add(shop.id, stage, [{ gid: "o", json: "{}" }], [{ orderGid: "o", gid: "l", json: "{}" }]);
  await commit(store, shop, [subscription(1), order(1, 1), reward("r"), cancelFlow("c"), fieldValue(1, "note", "x")]);
  await applySearched(store.mirror, [{ shop, records: [subscription(2)], eventsSince: START + 1 }], START);
  const reads = [{ contract: gid.contract(1), beganAt: START, updatedAt: START, orders: new Map() }];
  const dataRequests = [dataRequest("1", gid.customer(1), START)];
  await store.mirror.applyRecords([{ shop, records: [], reads, dataRequests }], START, []);
  const [claimed] = await claim(store, shop, { share: 1 });
  if (claimed !== undefined) await record(store, [failed(claimed)]);
}

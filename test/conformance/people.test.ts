import { describe, expect, test } from "bun:test";
import { addField, archiveField } from "../../src/domain/fields/definition.ts";
import { customerId } from "../../src/domain/ids.ts";
import type { MirrorRecord } from "../../src/domain/records/platform-records.ts";
import { START } from "../support/app.ts";
import { cancelFlow, customer, fieldValue, gid, order, reward, subscription } from "../support/records.ts";
import { claim, failed, record, succeeded } from "./delivery-fixtures.ts";
import { engines, storeWithTwoShops } from "./engines.ts";
import { allRows, chooseAllEvents, commit, receipt } from "./fixtures.ts";

/** Makes a person with a contract, its orders, a reward and a cancellation flow. */
function recordsOf(n: number): MirrorRecord[] {
  return [
    customer(n, { email: `person${n}@example.com` }),
    subscription(n, { startedAt: "2026-02-01T00:00:00.000Z" }),
    order(n, 1),
    order(n, 2, { status: "FAILED" }),
    reward(`r${n}`, { customer: gid.customer(n) }),
    cancelFlow(`c${n}`, { subscription: gid.contract(n) }),
  ];
}

describe.each(engines())("$name: what is stored about a person", (engine) => {
  test("includes every text that names the person, and no text about another person", async () => {
    const { store, rows, shop, other } = await storeWithTwoShops(engine);
    const body = '{"customer":{"id":1,"email":"person1@example.com"}}';
    for (const each of [shop, other]) {
      await chooseAllEvents(store, each);
      await store.fields.update(each.id, (all) => addField(all, { key: "note", label: "Note", type: "text" }));
      for (const n of [1, 2, 11]) await commit(store, each, [...recordsOf(n), fieldValue(n, "note", `for ${n}`)]);
      await store.fields.update(each.id, (all) => archiveField(all, "note", START));
      const unnamed = receipt(each, null, { body: '{"customer":{"id":11},"count":12}' });
      await store.inbox.receive(
        [
          receipt(each, null, { topic: "orders/paid", body }),
          unnamed,
          receipt(each, null, { topic: "orders/create", body }),
        ],
        START,
      );
    }

    const first = await claim(store, shop);
    await record(
      store,
      first.map((each) => failed(each)),
    );
    const second = await claim(store, shop, { now: START + 1_000 });
    await record(
      store,
      second.map((each) => succeeded(each)),
    );

    const person = await store.people.export(shop, gid.customer(1));
    const id = customerId(shop.domain, gid.customer(1));
    const own = async (form: "customers" | "subscriptionsWithFields" | "orders") =>
      (await allRows(store, shop, form)).filter((row) => [row["id"], row["customerId"]].includes(id));
    const byId = (list: unknown[]) => (list as { id: string }[]).toSorted((a, b) => (a.id < b.id ? -1 : 1));
    expect(person?.customer).toMatchObject({ shopifyId: gid.customer(1), email: "person1@example.com" });
    expect([person?.customer]).toEqual(await own("customers"));
    const [contract] = await own("subscriptionsWithFields");
    expect(person?.subscriptions).toEqual([{ ...contract, customFields: { note: "for 1" } }]);
    expect(person?.orders).toEqual(byId(await own("orders")));
    expect(person?.orders).toHaveLength(2);
    expect(person?.rewards).toEqual([reward("r1")]);
    expect(person?.cancelFlows).toEqual([cancelFlow("c1")]);
    expect(person?.inbox).toEqual(
      ["orders/paid", "orders/create"].map((topic) => ({ topic, receivedAt: new Date(START).toISOString(), body })),
    );
    expect(person?.deliveries.map(({ topic }) => topic)).toEqual([
      "subscription.created",
      "subscription-created",
      "order.charged",
      "order.failed",
      "billing-attempt-failed",
      "loyalty.reward_earned",
      "streak-milestone-reached",
      "cancel_flow.completed",
    ]);
    const [queued] = await rows("deliveries");
    const sent = {
      id: queued?.["id"],
      kind: "webhook",
      topic: "subscription.created",
      createdAt: new Date(START).toISOString(),
    };
    expect(person?.deliveries[0]).toEqual({
      ...sent,
      body: JSON.parse(String(queued?.["body"])),
      answers: ["no", "ok"],
    } as never);
    expect(JSON.stringify(person)).not.toContain("person11");
  });

  test("is only the customer for a person without contracts, and nothing for an unknown person or another shop's person", async () => {
    const { store, shop, other } = await storeWithTwoShops(engine);
    await commit(store, shop, [customer(1)]);
    await commit(store, other, [customer(2)]);
    const nothing = { subscriptions: [], orders: [], rewards: [], cancelFlows: [], deliveries: [], inbox: [] };
    expect(await store.people.export(shop, gid.customer(1))).toEqual({
      customer: expect.objectContaining({ shopifyId: gid.customer(1) }),
      ...nothing,
    });
    expect(await store.people.export(shop, gid.customer(2))).toBeUndefined();
    expect(await store.people.export(other, gid.customer(1))).toBeUndefined();
    expect(await store.people.export({ ...shop, id: other.id }, gid.customer(1))).toBeUndefined();
  });
});

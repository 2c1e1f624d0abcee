import { describe, expect, test } from "bun:test";
import { dataRequest } from "../../src/domain/people/data-request.ts";
import { START } from "../support/app.ts";
import { gid, order } from "../support/records.ts";
import { engines, storeWithShop, storeWithTwoShops } from "./engines.ts";
import { receipt } from "./fixtures.ts";

const DAY = 86_400_000;
const [ADA, GRACE] = [gid.customer(1), gid.customer(2)];

describe.each(engines())("$name: a customer's request for data", (engine) => {
  test("is added once, by the commit that takes its webhook from the inbox, and not by a refused commit", async () => {
    const { store, reopen, shop } = await storeWithShop(engine);
    await store.inbox.receive([receipt(shop, "w1")], START);
    const [item] = await store.inbox.list(shop.id, { limit: 1 });
    const submission = { shop, inboxNumbers: [item?.number ?? 0], dataRequests: [dataRequest("7", ADA, START)] };
    await store.mirror.applyRecords([{ ...submission, records: [order(9, 1)] }], START, []);
    expect(await store.dataRequests.open(shop.id)).toEqual([]);
    expect(await store.inbox.count(shop.id)).toEqual({ waiting: 1, failed: 0 });
    for (let n = 0; n < 2; n += 1) await store.mirror.applyRecords([{ ...submission, records: [] }], START, []);
    const other = await reopen();
    const expected = [{ id: "7", customer: ADA, requestedAt: START, dueAt: START + 30 * DAY }];
    expect(await other.dataRequests.open(shop.id)).toEqual(expected);
    expect(await other.inbox.count(shop.id)).toEqual({ waiting: 0, failed: 0 });
  });

  test("is listed until it is answered, and then deleted", async () => {
    const { store, rows, shop, other } = await storeWithTwoShops(engine);
    const dataRequests = [
      dataRequest("2", ADA, START + DAY),
      dataRequest("3", GRACE, START + 2 * DAY),
      dataRequest(null, ADA, START),
    ];
    await store.mirror.applyRecords(
      [shop, other].map((each) => ({ shop: each, records: [], dataRequests })),
      START,
      [],
    );
    const ids = async ({ id }: { id: number }) => (await store.dataRequests.open(id)).map((each) => each.id);
    expect(await ids(shop)).toEqual([`${ADA} ${START}`, "2", "3"]);
    const due = await store.dataRequests.dueBefore(START + 31 * DAY + 1);
    expect(due.map(({ shop: { domain }, count, first }) => [domain, count, first.id])).toEqual(
      [shop, other].map(({ domain }) => [domain, 2, `${ADA} ${START}`]),
    );
    expect(await store.dataRequests.dueBefore(START + 30 * DAY)).toEqual([]);
    expect(await store.dataRequests.answer(shop.id, ADA, START + 5)).toBe(2);
    expect(await store.dataRequests.answer(shop.id, ADA, START + 6)).toBe(0);
    expect([await ids(shop), (await ids(other)).length]).toEqual([["3"], 3]);
    await store.dataRequests.forgetAnswered(START + 5);
    expect(await rows("data_requests")).toHaveLength(6);
    await store.dataRequests.forgetAnswered(START + 6);
    expect(await rows("data_requests")).toHaveLength(4);
  });
});

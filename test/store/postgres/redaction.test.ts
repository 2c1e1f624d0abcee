import { describe, expect, test } from "bun:test";
import { TOPIC_NAMES } from "../../../src/domain/events/event.ts";
import type { MirrorRecord } from "../../../src/domain/records/platform-records.ts";
import { recordResults } from "../../../src/store/postgres/delivery-results.ts";
import { claim, failed, WAITS } from "../../conformance/delivery-fixtures.ts";
import { engines } from "../../conformance/engines.ts";
import { addShop, chooseAllEvents, commit, URL } from "../../conformance/fixtures.ts";
import { randomBytes, START } from "../../support/app.ts";
import { eventually, LIMIT_MS } from "../../support/eventually.ts";
import { countLockWaits, NO_IDLE_LIMIT, openDatabase } from "../../support/postgres-connections.ts";
import { emptyDatabase } from "../../support/postgres-server.ts";
import { openStoreAt } from "../../support/postgres-store.ts";
import { customer, gid, subscription } from "../../support/records.ts";

const shared = engines().filter(({ name }) => name === "postgres");

describe.each(shared)("$name: a redaction", (engine) => {
  test("succeeds even if it takes longer than the idle timeout of other transactions", async () => {
    let asked = 0;
    let isSlow = false;
    // The random bytes for the id of each of the two deliveries take 600 ms. Meanwhile the transaction is idle.
    const random = (bytes: number) => {
      if (isSlow) Bun.sleepSync(600);
      if (isSlow) asked += 1;
      return randomBytes(bytes);
    };
    const { store } = await engine.open({ random });
    const shop = await addShop(store);
    await chooseAllEvents(store, shop);
    const redaction: MirrorRecord = { type: "redaction", shopifyId: gid.customer(1), asOf: START };
    await commit(store, shop, [customer(1, { firstName: "Ada" })]);
    isSlow = true;
    expect(await commit(store, shop, [redaction, subscription(2)])).toMatchObject({ events: 2 });
    expect(asked).toBe(2);
  });

  test("waits for an attempt that is being recorded, and removes its answer too", async () => {
    const url = await emptyDatabase();
    const store = await openStoreAt(url);
    const db = openDatabase(url, { deadlineMs: LIMIT_MS });
    const shop = await addShop(store);
    await store.webhooks.set(shop.id, { url: URL, topics: TOPIC_NAMES }, START);
    await commit(store, shop, [customer(1, { firstName: "Ada" }), subscription(1)]);
    const ended = (await claim(store, shop)).map((each) => failed(each));
    const redaction: MirrorRecord = { type: "redaction", shopifyId: gid.customer(1), asOf: START };
    let redacting: Promise<unknown> | undefined;
    await db.transaction(async (tx) => {
      await tx.run(NO_IDLE_LIMIT);
      expect(await recordResults(tx, ended, WAITS)).toEqual(ended);
      redacting = commit(store, shop, [redaction]);
      await eventually(async () => (await countLockWaits(db)) > 0);
    });
    await redacting;
    const [attempt] = (await store.deliveries.show(shop.id, ended[0]?.claim.id ?? "")).history;
    expect(attempt).toMatchObject({ number: 1, url: URL, answer: null });
  });
});

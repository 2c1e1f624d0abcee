import { describe, expect, test } from "bun:test";
import type { AttemptResult } from "../../src/store/port/deliveries.ts";
import { START } from "../support/app.ts";
import { customer } from "../support/records.ts";
import { claim, claimOne, dueShopIds, failed, LEASE, queueRewards, record, succeeded } from "./delivery-fixtures.ts";
import { engines, storeWithEvents, storeWithTwoShops } from "./engines.ts";
import { chooseAllEvents, commit, shopWithEvents, URL } from "./fixtures.ts";

describe.each(engines())("$name: an attempt that ended", (engine) => {
  test("is recorded: delivered, or retried after a wait from its start, and dead after the last wait", async () => {
    const { store, rows, shop } = await storeWithEvents(engine);
    await queueRewards(store, shop, [1]);
    const seen = [];
    for (const now of [START, START + 1_000, START + 11_000]) {
      await record(store, [failed(await claimOne(store, shop, { now }), now)]);
      const [row = {}] = await rows("deliveries");
      const columns = ["status", "next_attempt_at", "claimable_at", "ended_at", "lease", "round"];
      seen.push(columns.map((column) => row[column]));
    }
    expect(seen).toEqual([
      ["retrying", START + 1_000, START + 1_000, null, null, 1],
      ["retrying", START + 11_000, START + 11_000, null, null, 2],
      ["dead", null, null, START + 11_007, null, 3],
    ]);
    const [delivery] = await store.deliveries.list(shop.id, { limit: 1 });
    const error = "The endpoint responded with HTTP 500.";
    expect(delivery).toMatchObject({ status: "dead", attempts: 3, nextAttemptAt: null, lastStatusCode: 500, error });
    expect((await store.deliveries.show(shop.id, delivery?.id ?? "")).history).toEqual(
      [0, 1_000, 11_000].map((wait, index) => ({
        number: index + 1,
        startedAt: START + wait,
        duration: 7,
        statusCode: 500,
        error,
        url: URL,
        answer: "no",
      })),
    );
  });

  test("keeps its URL and answer, or null if it has no URL or answer", async () => {
    const { store, shop } = await storeWithEvents(engine);
    const answers = ["", "<b>ä€😀</b>", `{"a":["\\"]}`, `'a\r\n\t\u001b[2J\ufffd`, "NULL", "x".repeat(1024), undefined];
    await queueRewards(store, shop, [...answers.keys()]);
    const claims = (await claim(store, shop)).toSorted((a, b) => a.number - b.number);
    const ended = claims.map((each, index): AttemptResult => {
      const { url: _, answer: __, ...outcome } = failed(each).outcome;
      const answer = answers[index];
      return {
        ...failed(each),
        outcome: answer === undefined ? outcome : { ...outcome, url: `${URL}?${index}`, answer },
      };
    });
    expect(await record(store, ended)).toEqual(ended);
    const kept = await Promise.all(claims.map(({ id }) => store.deliveries.show(shop.id, id)));
    expect(kept.map(({ history }) => history.map(({ url, answer }) => [url, answer]))).toEqual(
      answers.map((answer, index) => [answer === undefined ? [null, null] : [`${URL}?${index}`, answer]]),
    );
  });

  test("with success clears the error of the attempt before", async () => {
    const { store, rows, shop } = await storeWithEvents(engine);
    await queueRewards(store, shop, [1]);
    const first = await claimOne(store, shop);
    const outcome = { statusCode: null, error: "Could not connect to the endpoint: refused." };
    const second = await claimOne(store, shop, { now: START + 1_000, ended: [{ ...failed(first), outcome }] });
    const listed = () => store.deliveries.list(shop.id, { limit: 1 });
    expect(await listed()).toMatchObject([{ lastStatusCode: null, error: outcome.error }]);
    await record(store, [succeeded(second, START + 1_000)]);
    expect(await listed()).toMatchObject([{ status: "delivered", attempts: 2, lastStatusCode: 200, error: null }]);
    expect(await rows("attempts")).toMatchObject([
      { shop_id: shop.id, number: 1, status_code: null, error: outcome.error },
      { shop_id: shop.id, number: 2, status_code: 200, error: null },
    ]);
    expect((await rows("deliveries"))[0]).toMatchObject({ ended_at: START + 1_005 });
  });

  test("is not recorded under a lease that another process took over", async () => {
    const { store, rows, shop } = await storeWithEvents(engine);
    await queueRewards(store, shop, [1]);
    const lost = await claimOne(store, shop);
    const kept = await claimOne(store, shop, { now: START + LEASE });
    const before = await rows("deliveries");
    expect(await record(store, [succeeded(lost)])).toEqual([]);
    expect(await rows("deliveries")).toEqual(before);
    expect(await rows("attempts")).toEqual([]);
    const result = failed(kept, START + LEASE);
    expect(await record(store, [result])).toEqual([result]);
    // Recording the result ends the lease, so a second record has no effect.
    await record(store, [succeeded(kept)]);
    expect(await store.deliveries.show(shop.id, kept.id)).toMatchObject({ status: "retrying", attempts: 1 });
  });

  test("changes only its own delivery", async () => {
    const { store, rows, shop: alpha, other: beta } = await storeWithTwoShops(engine);
    for (const shop of [alpha, beta]) {
      await chooseAllEvents(store, shop);
      await queueRewards(store, shop, [1, 2]);
    }
    const claimed = await claimOne(store, alpha);
    await claim(store, beta);
    const others = async () => (await rows("deliveries")).filter(({ id }) => id !== claimed.id);
    const before = await others();
    await record(store, [succeeded({ ...claimed, shopId: beta.id })]);
    expect(await store.deliveries.show(alpha.id, claimed.id)).toMatchObject({ status: "pending" });
    await record(store, [succeeded(claimed)]);
    expect(await others()).toEqual(before);
    expect(await commit(store, alpha, [customer(1)])).toMatchObject({ changed: 0 });
  });
});

describe.each(engines())("$name: deliveries planned after a given time", (engine) => {
  test("are due after they were brought forward, with their leases, and others stay unchanged", async () => {
    const { store, rows } = await engine.open();
    const [ahead, behind] = [await shopWithEvents(store, "ahead"), await shopWithEvents(store, "behind")];
    const hour = 3_600_000;
    await queueRewards(store, ahead, [1, 2], START + hour);
    await queueRewards(store, ahead, [3], START + 1_000);
    await queueRewards(store, behind, [4]);
    for (const claimed of await claim(store, behind)) await record(store, [failed(claimed)]);
    await claim(store, ahead, { now: START + hour, share: 1 });
    // This claim leases the third delivery until a minute after START + hour.
    expect(await store.deliveries.bringForward(START + 1_000, START)).toBe(3);
    expect(await dueShopIds(store, START)).toEqual([ahead.id]);
    expect((await rows("deliveries")).map((row) => [row["next_attempt_at"], row["claimable_at"]])).toEqual([
      [START, START],
      [START, START],
      [START, START],
      [START + 1_000, START + 1_000],
    ]);
    expect(await store.deliveries.bringForward(START + 1_000, START)).toBe(0);
  });

  test("are brought forward with never attempted ones after now, but not with leases or retries before that time", async () => {
    const { store, rows, shop } = await storeWithEvents(engine);
    const ids = [...Array(450).keys()];
    await queueRewards(store, shop, ids, START + 500);
    await queueRewards(store, shop, ["leased", "failed"]);
    await claimOne(store, shop);
    await record(store, [failed(await claimOne(store, shop))]);
    const before = (await rows("deliveries")).slice(ids.length);
    expect(before.map((row) => row["claimable_at"])).toEqual([START + LEASE, START + 1_000]);
    expect(await store.deliveries.bringForward(START + LEASE, START)).toBe(ids.length);
    const after = await rows("deliveries");
    expect(after.slice(ids.length)).toEqual(before);
    expect(new Set(after.slice(0, ids.length).map((row) => row["claimable_at"]))).toEqual(new Set([START]));
    expect(await store.deliveries.bringForward(START + LEASE, START)).toBe(0);
  });
});

describe.each(engines())("$name: the pace of an endpoint", (engine) => {
  test("is kept with the result of an attempt, until the URL changes", async () => {
    const { store, shop } = await storeWithEvents(engine);
    await queueRewards(store, shop, [1, 2, 3]);
    const claims = await claim(store, shop);
    const [first, second, third] = claims;
    if (first === undefined || second === undefined || third === undefined) throw new Error("too little was claimed");
    expect(await store.deliveries.listPaces()).toEqual([]);
    await record(store, [{ ...failed(first), pace: { pace: "slow", timedOutAt: START } }]);
    await record(store, [{ ...succeeded(second), pace: { pace: "quick", timedOutAt: null } }]);
    expect(await store.deliveries.listPaces()).toEqual([
      { shopId: shop.id, url: URL, pace: "quick", timedOutAt: START },
    ]);
    await store.webhooks.set(shop.id, { topics: [] }, START);
    expect(await store.deliveries.listPaces()).toHaveLength(1);
    await store.webhooks.set(shop.id, { url: `${URL}/new` }, START);
    expect(await store.deliveries.listPaces()).toEqual([]);
    await record(store, [{ ...failed(third), pace: { pace: "slow", timedOutAt: START } }]);
    expect(await store.deliveries.listPaces()).toEqual([]);
  });
});

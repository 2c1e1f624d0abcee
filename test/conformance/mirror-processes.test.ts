import { describe, expect, test } from "bun:test";
import type { MirrorRecord } from "../../src/domain/records/platform-records.ts";
import { nextTurn } from "../../src/lib/waits.ts";
import { START } from "../support/app.ts";
import { customer, gid, reward, subscription } from "../support/records.ts";
import { applySearched } from "../support/searched.ts";
import { engines } from "./engines.ts";
import { addShop, chooseAllEvents, commit, receipt, removeShop } from "./fixtures.ts";

const ADA = "ada@example.com";
const redaction: MirrorRecord = { type: "redaction", shopifyId: gid.customer(1), asOf: START };

describe.each(engines())("$name: several processes", (engine) => {
  test("commit change numbers in their order: a reader that saw a number has seen all lower ones", async () => {
    const opened = await engine.open();
    const stores = [opened.store, await opened.reopen(), await opened.reopen()];
    const shop = await addShop(opened.store);
    let isOver = false;
    const writing = Promise.all(
      stores.map(async (store, n) => {
        for (let round = 0; round < 20; round += 1)
          await commit(store, shop, [customer(1_000 * n + 2 * round + 1), customer(1_000 * n + 2 * round + 2)]);
      }),
    ).finally(() => {
      isOver = true;
    });
    for (let looks = 0; !isOver || looks === 0; looks += 1) {
      const numbers = (await opened.rows("customers")).map(({ change_number }) => Number(change_number));
      expect(numbers.sort((a, b) => a - b)).toEqual(numbers.map((_, index) => index + 1));
    }
    await writing;
    expect(await opened.rows("customers")).toHaveLength(120);
  });

  test("that commit for the same shops in different orders wait for each other, and none fails", async () => {
    const opened = await engine.open();
    const other = await opened.reopen();
    const [alpha, beta] = [await addShop(opened.store, "alpha"), await addShop(opened.store, "beta")];
    const records = (n: number): MirrorRecord[] => [subscription(n), { ...redaction, shopifyId: gid.customer(n) }];
    await Promise.all(
      Array.from({ length: 16 }, (_, n) => {
        const both = [
          { shop: alpha, records: records(n + 1) },
          { shop: beta, records: n % 4 < 2 ? records(n + 1) : [subscription(n + 1)] },
        ];
        const { mirror } = n % 2 === 0 ? opened.store : other;
        return applySearched(mirror, n % 3 === 0 ? both : both.toReversed(), START);
      }),
    );
    expect(await opened.rows("subscriptions")).toHaveLength(32);
  });

  test("store texts while a person is redacted: all texts stored before the redaction are redacted", async () => {
    const opened = await engine.open();
    const { store } = opened;
    const other = await opened.reopen();
    const shop = await addShop(store);
    await chooseAllEvents(store, shop);
    await commit(store, shop, [customer(1, { email: ADA })]);
    const stored: string[] = [];
    let isOver = false;
    const storing = Promise.all(
      [store, other].map(async (each, process) => {
        for (let n = 0; !isOver; n += 1) {
          const id = `r${process}-${n}`;
          await commit(each, shop, [reward(id, { contact: ADA })]);
          await each.inbox.receive([receipt(shop, id, { body: `{"of":"${id}","id":1,"email":"${ADA}"}` })], START);
          stored.push(id);
          await nextTurn();
        }
      }),
    );
    for (let round = 0; round < 5; round += 1) {
      while (stored.length < 4 * (round + 1)) await nextTurn();
      await commit(store, shop, [customer(1, { email: ADA })]);
      const search = await store.mirror.searchTexts(shop, new Set([gid.customer(1)]));
      const before = new Set(stored);
      await store.mirror.applyRecords([{ shop, records: [redaction] }], START, [search]);
      search.end();
      const texts = [
        ...(await opened.rows("occurrences")).map(({ json }) => String(json)),
        ...(await opened.rows("deliveries")).map(({ body }) => String(body)),
        ...(await opened.rows("inbox")).map(({ body }) => String(body)),
      ];
      const isBefore = (text: string) => before.has(/"(r\d-\d+)"/.exec(text)?.[1] ?? "");
      expect(texts.filter((text) => text.includes(ADA) && isBefore(text))).toEqual([]);
    }
    isOver = true;
    await storing;
  });

  test("either commit for a shop or find it removed, and leave no row behind", async () => {
    const opened = await engine.open();
    const other = await opened.reopen();
    const shop = await addShop(opened.store);
    let isOver = false;
    const results: unknown[] = [];
    const writing = (async () => {
      for (let n = 1; !isOver; n += 1) {
        results.push(...(await other.mirror.applyRecords([{ shop, records: [subscription(n)] }], START, [])));
        await nextTurn();
      }
    })();
    while (results.length < 5) await nextTurn();
    await removeShop(opened.store, shop.domain);
    isOver = true;
    await writing;
    for (const table of ["customers", "subscriptions"] as const) expect(await opened.rows(table)).toEqual([]);
    const [result] = await other.mirror.applyRecords([{ shop, records: [subscription(1)] }], START, []);
    expect(result).toMatchObject({ refused: { index: 0 } });
  });
});

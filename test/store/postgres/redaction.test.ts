import { describe, expect, test } from "bun:test";
import type { MirrorRecord } from "../../../src/domain/platform-records.ts";
import { type Engine, engines } from "../../conformance/engines.ts";
import { addShop, chooseAllEvents, commit } from "../../conformance/fixtures.ts";
import { randomBytes, START } from "../../support/app.ts";
import { customer, gid, subscription } from "../../support/records.ts";

const [postgres] = engines().filter(({ name }) => name === "postgres");

describe.if(postgres !== undefined)("a redaction on PostgreSQL", () => {
  test("succeeds although all that it redacts takes longer than other transactions may rest", async () => {
    let asked = 0;
    let isSlow = false;
    // It is asked for between the statements of a commit that queues deliveries.
    const random = (bytes: number) => {
      if (isSlow) Bun.sleepSync(600);
      if (isSlow) asked += 1;
      return randomBytes(bytes);
    };
    const { store } = await (postgres as Engine).open({ random });
    const shop = await addShop(store);
    await chooseAllEvents(store, shop);
    const redaction: MirrorRecord = { type: "redaction", shopifyId: gid.customer(1), asOf: START };
    await commit(store, shop, [customer(1, { firstName: "Ada" })]);
    isSlow = true;
    expect(await commit(store, shop, [redaction, subscription(2)])).toMatchObject({ events: 2 });
    expect(asked).toBe(2);
  });
});

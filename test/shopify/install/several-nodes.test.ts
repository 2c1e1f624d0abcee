import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { temporaryFolder } from "../../support/app.ts";
import { eventually } from "../../support/eventually.ts";
import { appBeside, Installing, installing, NEW_SHOP as NEW } from "../../support/installing.ts";
import { emptyDatabase, hasPostgres } from "../../support/postgres-server.ts";

async function oneNode() {
  const env = {
    SDS_DATABASE_URL: await emptyDatabase(),
    SDS_MASTER_KEY_FILE: join(temporaryFolder(), "master.key"),
  };
  return { all: await installing(env), env };
}

async function twoNodes() {
  const { all, env } = await oneNode();
  const other = new Installing(await appBeside(all.platform, env), all.platform);
  other.test.clock.ms = all.test.clock.ms;
  return { all, other };
}

/** From now on, counts how often a node begins no exchange because one is under way. */
function countRefusals(...nodes: Installing[]) {
  const counted = { refusals: 0 };
  for (const { connections } of nodes.map(({ store }) => store)) {
    const begin = connections.beginExchange;
    connections.beginExchange = async (...given) => {
      const begun = await begin(...given);
      if (!begun) counted.refusals += 1;
      return begun;
    };
  }
  return counted;
}

// On SQLite, a second node is refused.
describe.skipIf(!hasPostgres())("on several nodes", () => {
  test("20 views at once make one exchange", async () => {
    const { all, other } = await twoNodes();
    const counted = countRefusals(all, other);
    // The exchange lasts until the other node has tried to begin one.
    all.platform.fault = ({ operation }) => {
      const before = counted.refusals;
      return operation === "exchange" ? { until: eventually(() => counted.refusals > before) } : undefined;
    };
    const openAll = () => Promise.all(Array.from({ length: 10 }, () => [all.open(), other.open()]).flat());
    for (const opening of await openAll()) expect(opening).toMatchObject({ shop: { domain: NEW } });
    expect(all.platform.exchanges).toBe(1);
    const id = await other.shopId();
    await other.store.connections.setTrouble(id, "dead (HTTP 401)", other.test.clock.ms);
    for (const opening of await openAll()) expect(opening).toMatchObject({ shop: { id } });
    expect(all.platform.exchanges).toBe(2);
  });

  test("an exchange that outlasts its lease is not repeated by another node", async () => {
    const { all, other } = await twoNodes();
    const { connections } = all.store;
    const extend = connections.extendExchange;
    let leaseEnd = 0;
    connections.extendExchange = async (domain, process, until) => {
      await extend(domain, process, until);
      leaseEnd = until;
    };
    const { promise, resolve } = Promise.withResolvers<void>();
    all.platform.fault = ({ operation }) => (operation === "exchange" ? { until: promise } : undefined);
    const first = all.open();
    await eventually(() => all.platform.exchanges === 1);
    const second = other.open();
    for (let seconds = 1; seconds <= 9; seconds += 1) {
      all.test.clock.ms += 1_000;
      await eventually(() => leaseEnd === all.test.clock.ms + 4_000);
      other.test.clock.ms = all.test.clock.ms;
    }
    resolve();
    for (const opening of await Promise.all([first, second])) expect(opening).toMatchObject({ shop: { domain: NEW } });
    expect(all.platform.exchanges).toBe(1);
  });

  test("a shop whose node was killed in an exchange heals when the reservation ends", async () => {
    const { all } = await oneNode();
    const { clock } = all.test;
    await all.store.connections.beginExchange(NEW, "killed", clock.ms, clock.ms + 15_000);
    const counted = countRefusals(all);
    const opening = all.open();
    await eventually(() => counted.refusals >= 2);
    expect(all.platform.exchanges).toBe(0);
    clock.ms += 15_001;
    // This view may give up, because the clock has also moved past its timeout. In this case, the next view connects the
    // shop.
    await opening;
    expect(await all.open()).toHaveProperty("shop");
    expect(all.platform.exchanges).toBe(1);
  });
});

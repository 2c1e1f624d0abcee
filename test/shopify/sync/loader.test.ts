import { expect, test } from "bun:test";
import { createLog } from "../../../src/lib/log.ts";
import type { ContractPage, ContractRefresher } from "../../../src/shopify/contracts/refresher.ts";
import { loadContracts } from "../../../src/shopify/sync/loader.ts";
import { connected } from "../../support/connected.ts";

test("a contract without a part that it must have waits in the inbox, and the others of its page are loaded", async () => {
  const { shop, test: program } = await connected();
  const { inbox } = program.app.store;
  const gid = (n: number) => `gid://shopify/SubscriptionContract/${n}`;
  const loaded: string[] = [];
  const contracts = {
    async loadPage(_shop: unknown, { nodes }: ContractPage) {
      for (const { billingAttempts } of nodes) void billingAttempts.nodes;
      loaded.push(...nodes.map(({ id }) => id));
      return nodes.map(() => ({ status: "fulfilled", value: { changed: 1, events: 0, orders: 0 } }));
    },
  } as unknown as ContractRefresher;
  const logged: string[] = [];
  const log = createLog("warn", { write: (text) => logged.push(text) }, () => 0);
  const loader = { contracts, inbox, now: program.clock.now, log };
  const nodes = Array.from({ length: 7 }, (_, n) => ({
    id: gid(n),
    billingAttempts: n === 4 ? null : { nodes: [] },
  })) as unknown as ContractPage["nodes"];
  const counts = await loadContracts(loader, shop.shop, { nodes, requestedAt: 0 }, () => "none");
  expect(counts).toMatchObject({ subscriptions: 6, skipped: 1 });
  expect(loaded).toEqual([0, 1, 2, 3, 5, 6].map(gid));
  expect(logged.join("")).toContain("a part of the platform's data is missing");
  expect(await inbox.list(shop.shop.id, { limit: 10 })).toMatchObject([{ subject: gid(4) }]);
});

import { expect, test } from "bun:test";
import type { SyncRun } from "../../src/domain/platform/sync.ts";
import { eventually } from "../support/eventually.ts";
import { PlatformProcess } from "../support/platform-process.ts";
import { Program } from "../support/program.ts";

const DOMAIN = "alpha.myshopify.com";
const CONTRACTS = 2_600;

/** A state of the load in which the test kills the program. */
interface Kill {
  isThere: (run: SyncRun) => boolean;
  /** Makes the stand-in hold the load in this state, even if the test is slow. */
  hold: (platform: PlatformProcess) => Promise<unknown>;
  release: (platform: PlatformProcess) => Promise<unknown>;
}

const downloadsHeldAt = (holdAt: number) => ({
  hold: (platform: PlatformProcess) => platform.tell("setDownloads", { holdAt }),
  release: (platform: PlatformProcess) => platform.tell("setDownloads", { holdAt: null }),
});

const KILLS: Kill[] = [
  // While the platform prepares the files.
  {
    isThere: ({ bulk }) => bulk?.orders?.operation != null,
    hold: (platform) => platform.tell("setBulk", { bulk: { delayMs: null } }),
    async release(platform) {
      await platform.tell("setBulk", { bulk: { delayMs: 0 } });
      await platform.tell("finishBulkOperations");
    },
  },
  // While the load reads the file of customers.
  {
    isThere: ({ bulk }) => (bulk?.customers?.offset ?? 0) > 0,
    ...downloadsHeldAt(200_000),
  },
  // While the load reads the file of orders.
  {
    isThere: ({ bulk }) => (bulk?.orders?.offset ?? 0) > 0,
    ...downloadsHeldAt(1_000_000),
  },
  // While the load reads the pages of contracts.
  {
    isThere: ({ stage, cursor }) => stage === "subscriptions" && cursor !== null,
    // The load reads eight pages ahead. It applies no page before it has these pages.
    hold: (platform) => platform.tell("hold", { held: { operation: "AllContracts", after: 8 } }),
    release: (platform) => platform.tell("hold", { held: null }),
  },
];

/** The stored progress of the interrupted run. */
async function unfinished(program: Program): Promise<SyncRun | undefined> {
  const run = (await program.rows("syncs"))[0]?.["run"];
  return typeof run === "string" ? (JSON.parse(run) as SyncRun) : undefined;
}

test("a large shop is loaded from files despite kills, and then follows the platform", async () => {
  const platform = await new PlatformProcess().start("--maximum-available", "100000", "--restore-rate", "100000");
  await platform.tell("addShop");
  await platform.tell("seed", { contracts: CONTRACTS, renewals: 1, linesEach: 1 });
  const program = new Program(undefined, platform.env);
  await program.json(["shop", "connect", DOMAIN, "--client-credentials"]);

  for (const { isThere, hold, release } of KILLS) {
    await hold(platform);
    const { pid, exited } = await program.start(["sync"]);
    await eventually(async () => {
      const run = await unfinished(program);
      return run !== undefined && isThere(run);
    });
    process.kill(pid, "SIGKILL");
    await exited;
    await release(platform);
  }
  const counts = await program.json(["sync"]);
  expect(counts).toMatchObject({ customers: CONTRACTS, subscriptions: CONTRACTS, skipped: 0 });
  // If the kill came just after the load wrote a page, the next run reads this page again. It does not read the page's
  // charged orders again. Even so, the mirror must have all orders.
  expect(await program.rows("orders")).toHaveLength(2 * CONTRACTS);
  expect(await unfinished(program)).toBeUndefined();
  expect(await program.rows("staged_orders")).toEqual([]);
  const { operations } = await platform.spent();
  expect(operations).toMatchObject({ RunBulkQuery: 2 });
  expect(operations).not.toHaveProperty("AllCustomers");
  expect(operations).not.toHaveProperty("Nodes");

  const server = await program.serve();
  await platform.tell("webhooksTo", { url: `${server.url}/platform/webhooks` });
  const [contract = ""] = await platform.ids("contract");
  await platform.tell("pause", { id: contract });
  await eventually(async () =>
    (await program.rows("subscriptions")).some(
      ({ json }) => String(json).includes(contract) && String(json).includes('"PAUSED"'),
    ),
  );
  expect(await platform.invalid()).toEqual([]);
});

import { expect, test } from "bun:test";
import type { SyncRun } from "../../src/domain/platform/sync.ts";
import { eventually } from "../support/eventually.ts";
import { PlatformProcess } from "../support/platform-process.ts";
import { Program } from "../support/program.ts";

const DOMAIN = "alpha.myshopify.com";
const CONTRACTS = 2_600;

/** When the load is killed. */
const KILLS: [where: string, isThere: (run: SyncRun) => boolean][] = [
  ["while the platform prepares the files", ({ bulk }) => bulk?.orders?.operation != null],
  ["in the file of customers", ({ bulk }) => (bulk?.customers?.offset ?? 0) > 0],
  ["in the file of orders", ({ bulk }) => (bulk?.orders?.offset ?? 0) > 0],
  ["in the pages of contracts", ({ stage, cursor }) => stage === "subscriptions" && cursor !== null],
];

/** The stored progress of the interrupted run. */
async function unfinished(program: Program): Promise<SyncRun | undefined> {
  const run = (await program.rows("syncs"))[0]?.["run"];
  return typeof run === "string" ? (JSON.parse(run) as SyncRun) : undefined;
}

test("a large shop is loaded from files despite kills, and then follows the platform", async () => {
  const platform = await new PlatformProcess().start("--maximum-available", "100000", "--restore-rate", "100000");
  await platform.tell("addShop", { bulk: { delayMs: 400 } });
  await platform.tell("seed", { contracts: CONTRACTS, renewals: 1, linesEach: 1 });
  await platform.tell("setDownloads", { bytesPerSecond: 2_000_000 });
  const program = new Program(undefined, platform.env);
  await program.json(["shop", "connect", DOMAIN, "--client-credentials"]);

  for (const [, isThere] of KILLS) {
    const { pid, exited } = await program.start(["sync"]);
    await eventually(async () => {
      const run = await unfinished(program);
      return run !== undefined && isThere(run);
    });
    process.kill(pid, "SIGKILL");
    await exited;
  }
  const counts = await program.json(["sync"]);
  expect(counts).toMatchObject({ customers: CONTRACTS, subscriptions: CONTRACTS, skipped: 0 });
  // A load that was killed after it wrote a page reads the page again, but not the page's charged orders. Even so, the
  // mirror must have all orders.
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

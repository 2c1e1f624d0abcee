import { expect, test } from "bun:test";
import { hostname } from "node:os";
import { sampleEvent } from "../../src/domain/events/sample.ts";
import type { Shop } from "../../src/domain/shop.ts";
import { deadDelivery } from "../support/dead-delivery.ts";
import { eventually } from "../support/eventually.ts";
import { PlatformProcess } from "../support/platform-process.ts";
import { ENGINE, Program } from "../support/program.ts";

/** The output of `sds status` on each engine: before `serve` runs, while it runs, and after it was killed. */
const WORDS =
  ENGINE === "sqlite"
    ? { stopped: "`sds serve` does not run", name: "SQLite", killed: "does not answer", nodes: { kept: [] } }
    : {
        stopped: "no node is alive",
        name: "PostgreSQL",
        killed: "does not answer",
        nodes: { nodes: [], handOvers: 0 },
      };

test("sds status shows what waits in each shop, and tells whether serve runs", async () => {
  const program = await Program.withShop();
  const stopped = await program.run(["status", "--json"]);
  expect(stopped.status).toBe(1);
  expect(stopped.stderr).toBe(`sds: not serving: ${WORDS.stopped}\n`);
  const shop = {
    domain: "alpha.myshopify.com",
    pending: 0,
    retrying: 0,
    dead: 0,
    inboxWaiting: 0,
    inboxFailed: 0,
    load: null,
    reconciledAt: null,
    trouble: null,
    troubleSince: null,
    warnings: [],
    uninstalledAt: null,
  };
  expect(JSON.parse(stopped.stdout)).toEqual({
    serving: false,
    version: expect.any(String),
    engine: ENGINE,
    database: { bytes: expect.any(Number), walBytes: ENGINE === "sqlite" ? 0 : null, lastBackupAt: null },
    totals: {
      shops: 1,
      pending: 0,
      retrying: 0,
      dead: 0,
      inboxWaiting: 0,
      inboxFailed: 0,
      refusedShops: 0,
      oldestReconciledAt: null,
    },
    shops: [shop],
    ...WORDS.nodes,
  });

  const server = await program.serve();
  const serving = await program.json<{ nodes?: unknown }>(["status"]);
  expect(serving).toMatchObject({ serving: true, shops: [shop] });
  if (ENGINE === "postgres") {
    const place = { address: server.url, host: hostname(), process: expect.any(Number) };
    expect(serving.nodes).toMatchObject([{ ...place, alive: true, shops: 1 }]);
  }
  const text = await program.run(["status"]);
  expect(text.stdout).toContain(`on ${WORDS.name}: serving\n`);
  expect(text.stdout).toMatch(/^alpha\.myshopify\.com +0 +0 +0 +0 +0 +never$/m);

  // The address of a killed `serve` stays in the database. On PostgreSQL, the node of this `serve` is listed as alive
  // for some more seconds, although the node does not answer.
  await server.stop("SIGKILL");
  const killed = await eventually(async () => {
    const result = await program.run(["status"]);
    return result.status === 1 && result;
  });
  expect(killed.stderr).toContain(WORDS.killed);
});

test("sds status shows another version of the platform, and fails if it lacks a field that sds reads", async () => {
  const platform = await new PlatformProcess().start();
  await platform.tell("addShop", {});
  const program = await Program.withShop(platform.env);
  await program.serve();
  await platform.tell("setVersions", { answers: "2027-01" });
  await program.run(["shop", "connect", "alpha.myshopify.com", "--client-credentials"]);
  const version = "alpha.myshopify.com: the platform answers with its API version 2027-01";
  expect(await program.run(["status"])).toMatchObject({ status: 0, stdout: expect.stringContaining(version) });
  expect((await program.run(["shop", "show", "alpha.myshopify.com"])).stdout).toContain("API version 2027-01");

  await platform.tell("removeFields", { fields: ["SubscriptionContract.status"] });
  const field = "the platform no longer has SubscriptionContract.status, which this sds reads: update sds";
  expect((await program.run(["sync"])).stderr).toContain(field);
  const failed = await program.run(["status", "--json"]);
  expect(failed).toMatchObject({ status: 1, stderr: expect.stringContaining(`sds: ${field}`) });
  expect(JSON.parse(failed.stdout)).toMatchObject({ serving: true });
});

test("sds status shows the ten shops that need somebody most, and sums up all; --all shows each", async () => {
  const program = await Program.withShop();
  const store = await program.openStore();
  for (let n = 10; n < 22; n += 1)
    await store.shops.add({ domain: `shop-${n}.myshopify.com`, plan: "pro", currency: "USD" }, Date.now());
  const [waiting, dead] = await Promise.all(
    ["shop-21", "shop-20"].map((name) => store.shops.find(`${name}.myshopify.com`)),
  );
  await deadDelivery(store, dead as Shop);
  await store.webhooks.secret((waiting as Shop).id, Date.now());
  await store.deliveries.queueTest(waiting as Shop, sampleEvent("order.charged"), Date.now());
  await store.close();
  type Status = { shops: { domain: string }[]; totals: object };
  const shown = JSON.parse((await program.run(["status", "--json"])).stdout) as Status;
  expect(shown.shops.map(({ domain }) => domain).slice(0, 3)).toEqual([
    "shop-20.myshopify.com",
    "shop-21.myshopify.com",
    "alpha.myshopify.com",
  ]);
  expect(shown.shops).toHaveLength(10);
  expect(shown.totals).toMatchObject({ shops: 13, dead: 1, pending: 1 });
  const { stdout } = await program.run(["status"]);
  expect(stdout).toContain("all 13 shops (`sds status --all`): 1 pending, 0 retrying, 1 dead, inbox 0 waiting");
  const all = JSON.parse((await program.run(["status", "--all", "--json"])).stdout) as Status;
  expect(all.shops).toHaveLength(13);
});

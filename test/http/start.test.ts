import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import type { NodeStore } from "../../src/store/port/nodes.ts";
import { temporaryFolder, testApp } from "../support/app.ts";
import { emptyDatabase, hasPostgres } from "../support/postgres-server.ts";

describe.skipIf(!hasPostgres())("the start of a node", () => {
  async function setUp() {
    const url = await emptyDatabase();
    const { app, logged } = await testApp({
      SDS_DATABASE_URL: url,
      SDS_MASTER_KEY_FILE: join(temporaryFolder(), "master.key"),
    });
    return { app, logged, nodes: app.store.nodes as NodeStore };
  }

  test("asks for the balancer's address if there are several nodes, even if the next query fails", async () => {
    const { app, logged, nodes } = await setUp();
    const { beat } = nodes;
    nodes.beat = async () => [...(await beat()), { id: "node_other", url: null }];
    nodes.status = () => Promise.reject(new Error("the database did not answer"));
    await app.start();
    expect(logged.filter((line) => line.includes("several nodes serve this database"))).toHaveLength(1);
  });

  test("fails if it is stopped while it tells the other nodes", async () => {
    const { app, logged, nodes } = await setUp();
    const { beat } = nodes;
    let stopped: Promise<void> | undefined;
    nodes.beat = () => {
      stopped = app.stop();
      return beat();
    };
    const failed = await app.start().catch((thrown: unknown) => thrown);
    expect(failed).toMatchObject({ name: "SdsError", code: "failed", message: "it was stopped while it started" });
    await stopped;
    expect(logged.filter((line) => JSON.parse(line).level !== "info")).toEqual([]);
  });
});

import { existsSync } from "node:fs";
import { type FaultyProxy, openFaultyProxy } from "../../test/support/network-faults.ts";
import { freePort } from "../../test/support/postgres-process.ts";
import type { ClusterNode } from "./cluster-traffic.ts";
import { compiledProgram, type Server } from "./program.ts";

/** Offsets of the first nodes' clocks from the database's clock. Up to two seconds are allowed. */
const CLOCKS = ["+1.7s", "-1.7s"];
const FAKE_TIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1";

/** A node of the compiled program that can fail, with its proxy to the database. */
export interface FaultyNode extends ClusterNode {
  proxy: FaultyProxy;
  server: Server | undefined;
  start(): Promise<void>;
  kill(): Promise<void>;
  /** Whether the node should answer now. */
  isHealthy: boolean;
  /** Number of faults that the node has had. */
  faults: number;
}

/** Starts a node. @param index the first nodes get wrong clocks where libfaketime is installed */
export async function openNode(
  folder: string,
  databaseUrl: string,
  env: Record<string, string>,
  index: number,
): Promise<FaultyNode> {
  const proxy = await openFaultyProxy(Number(new URL(databaseUrl).port));
  const proxiedUrl = new URL(databaseUrl);
  proxiedUrl.port = String(proxy.port);
  const port = freePort();
  const clock = CLOCKS[index];
  const fakeTime = { LD_PRELOAD: FAKE_TIME, FAKETIME: clock ?? "", FAKETIME_DONT_FAKE_MONOTONIC: "1" };
  const program = compiledProgram(folder, {
    ...env,
    ...(clock !== undefined && existsSync(FAKE_TIME) && fakeTime),
    SDS_DATABASE_URL: proxiedUrl.href,
    SDS_NODE_URL: `http://127.0.0.1:${port}`,
  });
  const node: FaultyNode = {
    proxy,
    server: undefined,
    isHealthy: false,
    faults: 0,
    address: () => node.server?.url ?? "",
    async start() {
      node.server = await program.serve([], port);
      node.isHealthy = true;
    },
    async kill() {
      await node.server?.stop("SIGKILL");
    },
  };
  await node.start();
  return node;
}

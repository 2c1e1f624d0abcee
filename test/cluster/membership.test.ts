import { describe, expect, test } from "bun:test";
import { createMember, LEASE_MS, type Membership, partitionsFor, soleMember } from "../../src/cluster/membership.ts";
import { PARTITIONS, partitionOf } from "../../src/domain/shop.ts";
import { createLog } from "../../src/lib/log.ts";
import type { LeaseChange, NodeStore } from "../../src/store/port/nodes.ts";
import type { Store } from "../../src/store/port/store.ts";
import { type Engine, engines } from "../conformance/engines.ts";

const log = createLog("error", { write: () => true }, Date.now);
const shared = engines().filter(({ name }) => name === "postgres");

test("the only process on a database works for every shop", async () => {
  const member = soleMember();
  expect([member.mayBegin(1), member.isLeader, member.beginUnlessMoving(1) !== undefined]).toEqual([true, true, true]);
});

const NODES = ["node_a", "node_b", "node_c", "node_d"];

test("each partition has one node, and each node has about the same number", () => {
  const shares = NODES.map((node) => partitionsFor(node, NODES));
  expect(new Set(shares.flatMap((share) => [...share])).size).toBe(PARTITIONS);
  expect(shares.reduce((sum, { size }) => sum + size, 0)).toBe(PARTITIONS);
  for (const { size } of shares) expect(size).toBeWithin(PARTITIONS / 8, PARTITIONS / 2);
});

test("the order of the nodes does not matter", () => {
  for (const node of NODES) expect(partitionsFor(node, NODES.toReversed())).toEqual(partitionsFor(node, NODES));
});

test("when a node goes, the other nodes keep their partitions", () => {
  const left = NODES.slice(0, 3);
  for (const node of left) expect(partitionsFor(node, left).isSupersetOf(partitionsFor(node, NODES))).toBe(true);
});

test("the only node has all partitions, and a dead node has none", () => {
  expect(partitionsFor("node_a", ["node_a"]).size).toBe(PARTITIONS);
  expect(partitionsFor("node_x", NODES).size).toBe(0);
});

test("the weights never change, because nodes of two versions must agree", () => {
  expect([...partitionsFor("node_a", ["node_a", "node_b"])].slice(0, 8)).toEqual([1, 3, 4, 5, 6, 8, 9, 12]);
  expect(partitionOf(513)).toBe(1);
});

/** Opens up to three nodes on one database. The test moves their clock. */
async function openNodes(engine: Engine, count: number) {
  const { store, reopen } = await engine.open();
  const stores: Store[] = [store];
  while (stores.length < count) stores.push(await reopen());
  const clock = { ms: 0 };
  const gained: number[] = [];
  const nodes = stores.map(({ nodes }) => nodes as NodeStore);
  const members = nodes.map((each, index) =>
    createMember({ nodes: each, clock: () => clock.ms, log, onGained: () => gained.push(index) }),
  );
  const [a, b, c] = members as [Membership, Membership, Membership];
  return { stores, nodes, a, b, c, clock, gained };
}

/** Returns the partitions for which the node may begin work. Calls `mayBegin` for one shop of each partition. */
function owned(member: Membership): number[] {
  return Array.from({ length: PARTITIONS }, (_, shop) => shop).filter((shop) => member.mayBegin(shop));
}

describe.each(shared)("nodes on one database: $name", (engine) => {
  test("each node knows where the nodes of other shops are, if they say so", async () => {
    const { nodes, a, b } = await openNodes(engine, 2);
    const place = { address: "http://127.0.0.1:1", host: null, processId: null, version: "1" };
    nodes[0]?.describe({ ...place, url: "http://a.internal:8080" });
    nodes[1]?.describe({ ...place, url: null });
    for (let beat = 0; beat < 3; beat += 1) for (const each of [a, b]) await each.beat();
    const ofA = new Set(owned(a));
    for (let shop = 0; shop < PARTITIONS; shop += 1) {
      expect(a.ownerUrl(shop)).toBeUndefined();
      expect(b.ownerUrl(shop)).toBe(ofA.has(shop) ? "http://a.internal:8080" : undefined);
    }
    await a.leave();
    await b.beat();
    expect(b.ownerUrl([...ofA][0] ?? 0)).toBeUndefined();
    expect(soleMember().ownerUrl(1)).toBeUndefined();
  });

  test("the only node works for every shop after its first beat", async () => {
    const { a, gained } = await openNodes(engine, 1);
    expect([owned(a).length, a.isLeader]).toEqual([0, false]);
    await a.beat();
    expect([owned(a).length, a.isLeader, gained]).toEqual([PARTITIONS, true, [0]]);
  });

  test("several nodes divide the shops: each shop has one node, even while the nodes disagree", async () => {
    const { a, b, c, nodes } = await openNodes(engine, 3);
    await a.beat();
    await b.beat();
    // b knows a. But a does not know b yet, and keeps all partitions.
    expect([owned(a).length, owned(b).length]).toEqual([PARTITIONS, 0]);
    for (let beat = 0; beat < 3; beat += 1) {
      await Promise.all([a.beat(), b.beat(), c.beat()]);
      const all = [a, b, c].flatMap(owned);
      expect(new Set(all).size).toBe(all.length);
    }
    const ids = nodes.map(({ id }) => id);
    for (const [index, member] of [a, b, c].entries())
      expect(owned(member)).toEqual([...partitionsFor(ids[index] ?? "", ids)]);
    expect([a, b, c].filter(({ isLeader }) => isLeader).length).toBe(1);
  });

  test("a partition does not move before its work ends", async () => {
    const { a, b } = await openNodes(engine, 2);
    await a.beat();
    const ends = owned(a).map((shop) => a.beginUnlessMoving(shop));
    for (let beat = 0; beat < 3; beat += 1) {
      await b.beat();
      await a.beat();
    }
    expect(owned(b)).toEqual([]);
    // Until the partitions move, node `a` still makes deliveries. Several nodes may make deliveries of a shop at the
    // same time.
    expect(owned(a).length).toBe(PARTITIONS);
    const began = owned(a).filter((shop) => a.beginUnlessMoving(shop) !== undefined);
    expect(began.length).toBeWithin(1, PARTITIONS);
    for (const end of ends) end?.();
    await a.beat();
    await b.beat();
    expect(owned(a).length + owned(b).length).toBe(PARTITIONS);
    expect(owned(b).length).toBeGreaterThan(0);
  });

  test("work that ran while another node had the shop must end before the node takes the shop back", async () => {
    const { a, nodes, clock } = await openNodes(engine, 2);
    const [first, second] = nodes as [NodeStore, NodeStore];
    await a.beat();
    const end = a.beginUnlessMoving(7);
    // Node `a` is paused, and its leases expire. The second node takes both partitions. Then the second node's leases
    // expire too.
    await first.lease({ wanted: [7, 8], held: [], released: [] }, -1);
    await second.lease({ wanted: [7, 8], held: [], released: [] }, -1);
    clock.ms += 20_000;
    for (let beat = 0; beat < 2; beat += 1) await a.beat();
    expect([a.mayBegin(7), a.mayBegin(8)]).toEqual([false, true]);
    end?.();
    await a.beat();
    expect(a.mayBegin(7)).toBe(true);
  });

  test("work that goes on during a hand-over must end before the node takes the shop back", async () => {
    const { a, b } = await openNodes(engine, 2);
    await a.beat();
    const ends = owned(a).map((shop) => a.beginAlways(shop));
    for (let beat = 0; beat < 2; beat += 1) for (const member of [a, b]) await member.beat();
    const others = owned(b);
    expect(others.length).toBeGreaterThan(0);
    expect(owned(a).length + others.length).toBe(PARTITIONS);
    await b.leave();
    for (let beat = 0; beat < 2; beat += 1) await a.beat();
    expect(owned(a).filter((shop) => others.includes(shop))).toEqual([]);
    for (const end of ends) end();
    await a.beat();
    expect(owned(a).length).toBe(PARTITIONS);
  });

  test("partitions that were handed over no longer count as leased, even if the database's answer is lost", async () => {
    const { a, b, nodes } = await openNodes(engine, 2);
    const [first, second] = nodes as [NodeStore, NodeStore];
    await a.beat();
    await b.beat();
    const { lease, beat } = first;
    first.lease = async (...change) => {
      await lease(...change);
      throw new Error("no network");
    };
    await a.beat();
    await b.beat();
    const others = owned(b);
    expect(others.length).toBeGreaterThan(0);
    // Now the node sees no other node, and asks for all partitions.
    const asked = Promise.withResolvers<void>();
    first.beat = async () => (await beat()).filter(({ id }) => id !== second.id);
    first.lease = async () => {
      asked.resolve();
      return new Promise(() => undefined);
    };
    void a.beat();
    await asked.promise;
    expect(others.filter((shop) => a.mayBegin(shop))).toEqual([]);
  });

  test("a node that cannot reach the database stops before its leases end", async () => {
    const { a, nodes, clock } = await openNodes(engine, 1);
    await a.beat();
    const [node] = nodes as [NodeStore];
    node.beat = async () => {
      throw new Error("no network");
    };
    clock.ms += LEASE_MS - 3_000;
    await a.beat();
    expect(owned(a).length).toBe(PARTITIONS);
    clock.ms += 1_000;
    expect([owned(a).length, a.isLeader, a.beginUnlessMoving(1)]).toEqual([0, false, undefined]);
  });

  test("a node that leaves hands over all partitions at once", async () => {
    const { a, b } = await openNodes(engine, 2);
    await a.beat();
    await a.leave();
    await b.beat();
    expect([owned(a).length, owned(b).length]).toEqual([0, PARTITIONS]);
  });

  test("a partition gets another node only after its lease has ended", async () => {
    const { nodes } = await openNodes(engine, 2);
    const [a, b] = nodes as [NodeStore, NodeStore];
    const lease = (node: NodeStore, change: Partial<LeaseChange>, leaseMs = 60_000) =>
      node.lease({ wanted: [], held: [], released: [], ...change }, leaseMs);
    for (const node of [a, b]) await node.beat();
    expect(await lease(a, { wanted: [1, 2] })).toEqual([1, 2]);
    expect(await lease(b, { wanted: [2, 3] })).toEqual([3]);
    expect(await lease(a, { wanted: [2], released: [1] })).toEqual([2]);
    expect(await lease(b, { held: [2] })).toEqual([]);
    expect(await lease(b, { wanted: [1, 2] })).toEqual([1]);
    // With a negative lease time, every node counts as silent. So node b also gets node a's partition.
    expect(await lease(b, { wanted: [1, 2] }, -1)).toEqual([1, 2]);
    expect(await lease(b, { held: [1] })).toEqual([1]);
    const { handOvers } = await a.status();
    expect(handOvers).toBe(2);
  });

  test("operators see the nodes, and the number of shops of each node", async () => {
    const { a, b, stores, nodes } = await openNodes(engine, 2);
    for (const name of ["a", "b", "c"])
      await stores[0]?.shops.add({ domain: `${name}.myshopify.com`, plan: "pro", currency: "USD" }, 1);
    for (const [index, node] of nodes.entries()) {
      const place = index === 0 ? { host: "machine 0, rack", processId: 70 } : { host: null, processId: null };
      node.describe({ address: `http://node-${index}`, ...place, version: "1", url: null });
    }
    for (let beat = 0; beat < 3; beat += 1) for (const member of [a, b]) await member.beat();
    const { nodes: shown } = await (nodes[0] as NodeStore).status();
    expect(shown.map(({ address, host, processId, isAlive }) => [address, host, processId, isAlive])).toEqual([
      ["http://node-0", "machine 0, rack", 70, true],
      ["http://node-1", null, null, true],
    ]);
    expect(shown.reduce((sum, { shops }) => sum + shops, 0)).toBe(3);
  });
});

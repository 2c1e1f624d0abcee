import { expect, test } from "bun:test";
import { PARTITIONS, partitionOf, partitionsFor } from "../../src/domain/partition.ts";

const nodes = ["node_a", "node_b", "node_c", "node_d"];

test("each partition has exactly one node, and each node about as many as the others", () => {
  const shares = nodes.map((node) => partitionsFor(node, nodes));
  expect(new Set(shares.flatMap((share) => [...share])).size).toBe(PARTITIONS);
  expect(shares.reduce((sum, { size }) => sum + size, 0)).toBe(PARTITIONS);
  for (const { size } of shares) expect(size).toBeWithin(PARTITIONS / 8, PARTITIONS / 2);
});

test("the order in which the nodes are known does not matter", () => {
  for (const node of nodes) expect(partitionsFor(node, nodes.toReversed())).toEqual(partitionsFor(node, nodes));
});

test("a node that goes leaves the partitions of the others where they are", () => {
  const left = nodes.slice(0, 3);
  for (const node of left) expect(partitionsFor(node, left).isSupersetOf(partitionsFor(node, nodes))).toBe(true);
});

test("a node alone has all, and a node that is not alive has none", () => {
  expect(partitionsFor("node_a", ["node_a"]).size).toBe(PARTITIONS);
  expect(partitionsFor("node_x", nodes).size).toBe(0);
});

test("the weights stay the same in every version, because nodes of two versions must agree", () => {
  expect([...partitionsFor("node_a", ["node_a", "node_b"])].slice(0, 8)).toEqual([1, 3, 4, 5, 6, 8, 9, 12]);
  expect(partitionOf(513)).toBe(1);
});

/**
 * The shops are divided into so many partitions. Nodes share out partitions instead of shops, so what is stored about
 * it does not grow with the shops. The number must never change: nodes of two versions would disagree.
 */
export const PARTITIONS = 256;

export function partitionOf(shopId: number): number {
  return shopId % PARTITIONS;
}

/**
 * The partitions that a node should work for: of all nodes, it has the highest weight for them (rendezvous hashing). A
 * node that comes or goes moves only its own partitions.
 * @param own the id of the node
 * @param nodes the ids of all nodes that are alive
 */
export function partitionsFor(own: string, nodes: readonly string[]): Set<number> {
  const wanted = new Set<number>();
  for (let partition = 0; partition < PARTITIONS; partition += 1)
    if (preferredNode(partition, nodes) === own) wanted.add(partition);
  return wanted;
}

function preferredNode(partition: number, nodes: readonly string[]): string | undefined {
  let preferred: string | undefined;
  let highest = -1n;
  for (const node of nodes) {
    const weight = Bun.hash.xxHash64(`${partition} ${node}`);
    // Equal weights: all nodes have to decide alike, whatever their order.
    if (weight > highest || (weight === highest && node > (preferred ?? ""))) [preferred, highest] = [node, weight];
  }
  return preferred;
}

import { type ClusterNode, type ClusterShop, startRepeating, statusOfPage } from "./cluster-traffic.ts";

const PAUSE_MS = 1_000;

/** Makes and revokes API keys. No node may take a revoked key, not even once. */
export function startKeyRevocations(
  shop: ClusterShop,
  nodes: readonly ClusterNode[],
  run: (args: string[]) => Promise<string>,
) {
  const problems: string[] = [];
  let revoked = 0;

  async function makeAndRevoke(): Promise<void> {
    const made = await run(["key", "create", "--shop", shop.domain, "--label", "Revoked", "--json"]);
    const { id, key } = JSON.parse(made) as { id: string; key: string };
    const askAll = () => Promise.all(nodes.map((node) => statusOfPage(node.address(), key)));
    await askAll();
    await run(["key", "revoke", "--shop", shop.domain, id]);
    revoked += 1;
    for (const [index, status] of (await askAll()).entries())
      if (status === 200) problems.push(`node ${index} took the key ${id} after it was revoked`);
  }

  const revocations = startRepeating(makeAndRevoke, PAUSE_MS);
  return {
    async end(): Promise<string[]> {
      await revocations.end();
      return problems;
    },
    count: () => revoked,
  };
}

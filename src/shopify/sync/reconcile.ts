import { SdsError } from "../../domain/error.ts";
import type { Shop } from "../../domain/shop.ts";
import { NO_COUNTS, type SyncCounts, type SyncKind, type SyncRun } from "../../domain/sync.ts";
import { isoUtc } from "../../lib/time.ts";
import type { SyncStore } from "../../store/syncs.ts";
import type { GraphqlClient } from "../api/graphql-client.ts";
import { ATTEMPTS } from "../api/operations/billing.ts";
import { CONTRACTS } from "../api/operations/contracts.ts";
import { CUSTOMERS } from "../api/operations/customers.ts";
import { ORDERS } from "../api/operations/orders.ts";
import { readContractsOf } from "../contracts/orders.ts";
import type { Loader } from "./loader.ts";
import { readPages } from "./pages.ts";
import { addCounts, type OnProgress } from "./progress.ts";

interface Dependencies {
  client: GraphqlClient;
  loader: Loader;
  syncs: SyncStore;
  now: () => number;
}

/** A run begins this long before the last complete one: changes may have been under way then, and clocks differ. */
const OVERLAP_MS = 5 * 60_000;

/**
 * Brings what changed at the platform since a time into the mirror, and queues the events that were missed.
 * @param since epoch milliseconds; without it, since the last complete run
 * @throws PlatformError; SdsError `conflict` for a shop that was never loaded completely
 */
export async function reconcile(
  dependencies: Dependencies,
  shop: Shop,
  since: number | undefined,
  onProgress: OnProgress,
): Promise<SyncCounts> {
  const { syncs, now } = dependencies;
  const startedAt = now();
  const covered = await coveredUntil(syncs, shop);
  const from = since ?? (covered === undefined ? undefined : covered - OVERLAP_MS);
  if (from === undefined) {
    const message = `${shop.domain} was never loaded completely: run \`sds sync ${shop.domain}\` first`;
    throw new SdsError("conflict", message);
  }
  const counts = await reconcileSince(dependencies, shop, from, onProgress);
  // A run that begins after the last one leaves a gap between them. The next run has to begin before the gap.
  const leavesGap = covered === undefined || from > covered;
  await syncs.complete(shop.id, "changes", leavesGap ? undefined : startedAt, counts.changed, now());
  return counts;
}

/** The time up to which complete runs have seen everything. */
async function coveredUntil(syncs: SyncStore, shop: Shop): Promise<number | undefined> {
  const kinds: SyncKind[] = ["full", "changes"];
  const runs = await Promise.all(kinds.map((kind) => syncs.lastComplete(shop.id, kind)));
  const starts = runs.flatMap((run) => (run?.startedAt == null ? [] : [run.startedAt]));
  return starts.length === 0 ? undefined : Math.max(...starts);
}

async function reconcileSince(
  { client, loader }: Dependencies,
  shop: Shop,
  from: number,
  onProgress: OnProgress,
): Promise<SyncCounts> {
  const updated = { query: `updated_at:>='${isoUtc(from)}'` };
  const created = { query: `created_at:>='${isoUtc(from)}'` };
  const contractsRead = new Set<string>();
  let counts = NO_COUNTS;

  function add(stage: SyncRun["stage"], more: Partial<SyncCounts>): void {
    counts = addCounts(counts, more);
    onProgress({ counts, stage, done: undefined });
  }

  async function refresh(stage: SyncRun["stage"], contractGid: string, changedOrders: string[]): Promise<void> {
    contractsRead.add(contractGid);
    add(stage, await loader.refreshContract(shop, contractGid, changedOrders));
  }

  for await (const { nodes } of readPages(client, shop, CUSTOMERS, "customers", updated)) {
    add("customers", await loader.loadCustomers(shop, nodes));
  }
  for await (const { nodes } of readPages(client, shop, CONTRACTS, "subscriptionContracts", updated)) {
    for (const { id } of nodes) contractsRead.add(id);
    add("subscriptions", await loader.loadContracts(shop, nodes, () => "since_connected"));
  }
  for await (const { nodes } of readPages(client, shop, ORDERS, "orders", updated)) {
    for (const order of nodes) {
      for (const contract of await readContractsOf(client, shop, order)) await refresh("orders", contract, [order.id]);
    }
  }
  for await (const { nodes } of readPages(client, shop, ATTEMPTS, "subscriptionBillingAttempts", created)) {
    const contracts = new Set(nodes.map(({ subscriptionContract }) => subscriptionContract.id));
    for (const contract of contracts.difference(contractsRead)) await refresh("attempts", contract, []);
  }
  return counts;
}

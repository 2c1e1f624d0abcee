import { SdsError } from "../../domain/error.ts";
import { NO_COUNTS, type SyncCounts, type SyncKind, type SyncRun } from "../../domain/platform/sync.ts";
import type { Shop } from "../../domain/shop.ts";
import { isoUtc } from "../../lib/time.ts";
import type { SyncStore } from "../../store/port/syncs.ts";
import type { GraphqlClient } from "../api/graphql-client.ts";
import { ATTEMPTS, type ContractAttempt } from "../api/operations/attempts.ts";
import { CHANGED_CONTRACTS } from "../api/operations/contracts.ts";
import { CUSTOMERS } from "../api/operations/customers.ts";
import type { Operation, PageVariables } from "../api/operations/operation.ts";
import { CHANGED_ORDERS } from "../api/operations/orders.ts";
import type { Page } from "../api/paging.ts";
import type { ChangeHint } from "../contracts/mirror.ts";
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
 * Brings what changed at the platform since a time into the mirror, and queues the events that were missed. A run by
 * the hour that was interrupted continues at its last page.
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
  const covered = await coveredUntil(syncs, shop, now());
  const from = since ?? (covered === undefined ? undefined : covered - OVERLAP_MS);
  if (from === undefined) {
    const message = `${shop.domain} was never loaded completely: run \`sds sync ${shop.domain}\` first`;
    throw new SdsError("conflict", message);
  }
  const begun = since === undefined ? await syncs.unfinished(shop.id, "changes") : undefined;
  const run: SyncRun = begun ?? {
    startedAt: now(),
    from,
    events: true,
    stage: "customers",
    cursor: null,
    counts: NO_COUNTS,
  };
  // A run by hand is not continued.
  const save = since === undefined ? () => syncs.save(shop.id, "changes", run) : async () => {};
  await runStages(dependencies, shop, run, save, onProgress);
  // A run that begins after the last one leaves a gap between them. The next run has to begin before the gap.
  const leavesGap = covered === undefined || (run.from ?? from) > covered;
  await syncs.complete(shop.id, "changes", leavesGap ? undefined : run.startedAt, run.counts.changed, now());
  if (!leavesGap) await correctLoad(syncs, shop, run.startedAt, now());
  return run.counts;
}

/**
 * Gives a load by a clock that was ahead the start of the reconciliation that made up for it. Otherwise its own would
 * count once that time comes, and hide the gap since the last reconciliation.
 */
async function correctLoad(syncs: SyncStore, shop: Shop, startedAt: number, now: number): Promise<void> {
  const load = await syncs.lastComplete(shop.id, "full");
  if (load?.startedAt == null || load.startedAt <= now || startedAt > now) return;
  // It gets a new start when it is complete.
  if ((await syncs.unfinished(shop.id, "full")) !== undefined) return;
  await syncs.complete(shop.id, "full", startedAt, load.changed, Math.min(load.endedAt, now));
}

/**
 * The time up to which complete runs have seen everything. A time in the future was noted by a clock that was ahead,
 * and says nothing: without any other, everything is read.
 */
async function coveredUntil(syncs: SyncStore, shop: Shop, now: number): Promise<number | undefined> {
  const kinds: SyncKind[] = ["full", "changes"];
  const runs = await Promise.all(kinds.map((kind) => syncs.lastComplete(shop.id, kind)));
  const starts = runs.flatMap((run) => (run?.startedAt == null ? [] : [run.startedAt]));
  return starts.length === 0 ? undefined : Math.max(OVERLAP_MS, ...starts.filter((at) => at <= now));
}

/** Goes on with a run, from its stage and its page on. */
async function runStages(
  { client, loader, now }: Dependencies,
  shop: Shop,
  run: SyncRun,
  save: () => Promise<void>,
  onProgress: OnProgress,
): Promise<void> {
  const from = isoUtc(run.from ?? 0);
  const updated = `updated_at:>='${from}'`;
  const created = `created_at:>='${from}'`;
  const stages: SyncRun["stage"][] = ["customers", "subscriptions", "orders", "attempts"];

  /** Reads the pages of a stage that is not done yet, and saves the run after each page. */
  async function runStage<T, F extends string>(
    stage: SyncRun["stage"],
    operation: Operation<PageVariables, Record<F, Page<T>>>,
    field: F,
    query: string,
    read: (nodes: readonly T[]) => Promise<Partial<SyncCounts>>,
  ): Promise<void> {
    if (stages.indexOf(stage) < stages.indexOf(run.stage)) return;
    if (stage !== run.stage) Object.assign(run, { stage, cursor: null });
    const beginAnew = () => {
      run.counts = { ...run.counts, [stage]: 0 };
    };
    const pages = readPages(client, shop, operation, field, { query, after: run.cursor, beginAnew }, now);
    for await (const { nodes, endCursor } of pages) {
      run.counts = addCounts(run.counts, await read(nodes));
      run.cursor = endCursor;
      await save();
      onProgress({ counts: run.counts, stage, done: undefined });
    }
    if (stage === "customers") loader.endCustomers(shop, run.counts.skipped);
  }

  /** Reads the contracts that changed, all at the same time: then they share queries. */
  async function follow(changes: ReadonlyMap<string, ChangeHint>): Promise<SyncCounts> {
    const results = await allDone([...changes].map(([gid, hint]) => loader.followContract(shop, gid, hint)));
    return results.reduce<SyncCounts>(addCounts, NO_COUNTS);
  }

  await runStage("customers", CUSTOMERS, "customers", updated, (nodes) =>
    loader.loadCustomers(shop, nodes, run.counts.skipped),
  );
  await runStage("subscriptions", CHANGED_CONTRACTS, "subscriptionContracts", updated, async (nodes) => {
    const changes = nodes.map(({ id, updatedAt }): [string, ChangeHint] => [id, contractHint(updatedAt)]);
    return { ...(await follow(new Map(changes))), subscriptions: nodes.length };
  });
  await runStage("orders", CHANGED_ORDERS, "orders", updated, async (nodes) => {
    const changes = new Map<string, ChangeHint>();
    const found = await allDone(nodes.map(({ id }) => loader.contractsOfOrder(shop, id)));
    for (const [index, { id, updatedAt }] of nodes.entries()) {
      for (const contract of found[index]?.contracts ?? []) {
        const { orders, triggeredAt } = changes.get(contract) ?? { orders: [], triggeredAt: 0 };
        const latest = Math.max(triggeredAt, Date.parse(updatedAt));
        changes.set(contract, { of: "order", orders: [...orders, id], triggeredAt: latest });
      }
    }
    const counts = found.map((each) => each.counts).reduce<SyncCounts>(addCounts, NO_COUNTS);
    return addCounts(counts, await follow(changes));
  });
  await runStage("attempts", ATTEMPTS, "subscriptionBillingAttempts", created, (nodes) => follow(lastEnds(nodes)));
}

/** Waits for all readings, also if one fails: none may write to the mirror after its run has ended. */
async function allDone<T>(readings: readonly Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(readings);
  return Promise.all(readings);
}

/** The last end of an attempt of each contract. The attempt that began last may not be the last to end. */
function lastEnds(nodes: readonly ContractAttempt[]): Map<string, ChangeHint> {
  const changes = new Map<string, ChangeHint>();
  for (const { subscriptionContract, createdAt, completedAt } of nodes) {
    const hint = contractHint(completedAt ?? createdAt);
    const known = changes.get(subscriptionContract.id);
    if (known === undefined || known.triggeredAt < hint.triggeredAt) changes.set(subscriptionContract.id, hint);
  }
  return changes;
}

function contractHint(changedAt: string): ChangeHint {
  return { of: "contract", orders: [], triggeredAt: Date.parse(changedAt) };
}

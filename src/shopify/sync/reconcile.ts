import { SdsError } from "../../domain/error.ts";
import { NO_COUNTS, type SyncCounts, type SyncKind, type SyncRun } from "../../domain/platform/sync.ts";
import type { Shop } from "../../domain/shop.ts";
import { isoUtc } from "../../lib/time.ts";
import type { SyncStore } from "../../store/port/syncs.ts";
import { ATTEMPTS, type ContractAttempt } from "../api/operations/attempts.ts";
import { CHANGED_CONTRACTS } from "../api/operations/contracts.ts";
import { CUSTOMERS } from "../api/operations/customers.ts";
import type { ChangedNode, ListOperation } from "../api/operations/operation.ts";
import { CHANGED_ORDERS } from "../api/operations/orders.ts";
import { joinEvidence } from "../contracts/evidence.ts";
import type { ChangeHint } from "../contracts/refresher.ts";
import {
  allDone,
  contractsOfOrder,
  hintNow,
  type Loader,
  loadCustomers,
  logSkippedCustomers,
  lostCounts,
  refreshContract,
  refreshUnconverted,
  unlessWithoutApproval,
} from "./loader.ts";
import { type ReadPage, readPages } from "./pages.ts";
import { type ActiveRun, addCounts, type OnProgress } from "./progress.ts";

interface ReconcileServices extends Loader {
  syncs: SyncStore;
}

/** Overlap of a run with the previous run. Changes may have been under way then, and clocks differ. */
const OVERLAP_MS = 5 * 60_000;

/**
 * Brings the platform's changes since a time into the mirror, and queues the missed events. An interrupted hourly run
 * continues at its last page.
 * @param since epoch milliseconds; without it, since the last complete run
 * @throws PlatformError; SdsError `conflict` for a shop that was never loaded completely
 */
export async function reconcile(
  services: ReconcileServices,
  shop: Shop,
  since: number | undefined,
  onProgress: OnProgress,
): Promise<SyncCounts> {
  const { syncs, now } = services;
  const covered = await coveredUntil(syncs, shop.id, now());
  const from = since ?? (covered === undefined ? undefined : covered - OVERLAP_MS);
  if (from === undefined) {
    const message = `${shop.domain} was never loaded completely: run \`sds sync ${shop.domain}\` first`;
    throw new SdsError("conflict", message);
  }
  const isHourly = since === undefined;
  const begun = isHourly ? await syncs.unfinished(shop.id, "changes") : undefined;
  const startedAt = now();
  const run = begun ?? { startedAt, from, events: true, stage: "customers", cursor: null, counts: NO_COUNTS };
  await runStages(services, {
    shop,
    run,
    async save(change) {
      Object.assign(run, change);
      // A manual run is not continued, so it is not saved.
      if (isHourly) await syncs.save(shop.id, "changes", run);
    },
    onProgress,
  });
  // If this run's `from` is after `covered`, no run has read the changes in between. Then this run's start is not
  // stored, so that the next run reads these changes.
  const leavesGap = covered === undefined || (run.from ?? from) > covered;
  await syncs.complete(shop.id, "changes", leavesGap ? undefined : run.startedAt, run.counts.changed, now());
  return addCounts(run.counts, await refreshUnconverted(services, shop));
}

/**
 * Returns the time up to which complete runs have read all changes. A load does not read changes of charged orders. Its
 * time is used only if no reconciliation has a past time. A future time is ignored: it was stored before the clock was
 * set back. If only future times are known, everything is read.
 */
export async function coveredUntil(
  syncs: Pick<SyncStore, "lastComplete">,
  shopId: number,
  now: number,
): Promise<number | undefined> {
  const kinds: SyncKind[] = ["changes", "full"];
  const runs = await Promise.all(kinds.map((kind) => syncs.lastComplete(shopId, kind)));
  const starts = runs.flatMap((run) => (run?.startedAt == null ? [] : [run.startedAt]));
  return starts.length === 0 ? undefined : Math.max(OVERLAP_MS, starts.find((at) => at <= now) ?? 0);
}

const STAGES: SyncRun["stage"][] = ["customers", "subscriptions", "orders", "attempts"];

/** Continues a run at its stage and its page. */
async function runStages(services: ReconcileServices, active: ActiveRun): Promise<void> {
  const { shop, run } = active;
  const from = isoUtc(run.from ?? 0);
  const updated = `updated_at:>='${from}'`;
  const created = `created_at:>='${from}'`;
  await runStage(services, active, "customers", CUSTOMERS, updated, (page) =>
    loadCustomers(services, shop, page, run.counts.skipped),
  ).catch(unlessWithoutApproval);
  await runStage(services, active, "subscriptions", CHANGED_CONTRACTS, updated, async (page) => {
    const now = services.now();
    const changes = page.nodes.map(({ id, updatedAt, revisionId }): [string, ChangeHint] => {
      const hint = changeHint("contract", updatedAt);
      const evidence = { updatedAt: hint.triggeredAt, revision: revisionId };
      return [id, { ...hint, evidence, learnedAt: now }];
    });
    const unread = page.unread.map(({ gid }): [string, ChangeHint] => [gid, hintNow("contract", now)]);
    const counts = await refreshAll(services, shop, new Map([...changes, ...unread]));
    return { ...counts, subscriptions: changes.length + unread.length };
  });
  await runStage(services, active, "orders", CHANGED_ORDERS, updated, (page) =>
    refreshOrders(services, shop, page),
  ).catch(unlessWithoutApproval);
  await runStage(services, active, "attempts", ATTEMPTS, created, ({ nodes, unread }) => {
    const unseen = unread.map(({ gid }): [string, ChangeHint] => [gid, hintNow("contract", services.now())]);
    return refreshAll(services, shop, new Map([...hintsOf(nodes), ...unseen]));
  });
}

/** Reads the pages of a stage that is not done yet, and saves the run after each page. */
async function runStage<T extends object>(
  services: ReconcileServices,
  { shop, run, save, onProgress }: ActiveRun,
  stage: SyncRun["stage"],
  operation: ListOperation<T>,
  query: string,
  read: (page: ReadPage<T>) => Promise<Partial<SyncCounts>>,
): Promise<void> {
  if (STAGES.indexOf(stage) < STAGES.indexOf(run.stage)) return;
  if (stage !== run.stage) Object.assign(run, { stage, cursor: null, list: undefined });
  const onRestart = () => {
    run.counts = { ...run.counts, [stage]: 0 };
  };
  const start = { query, after: run.cursor, list: run.list, onRestart };
  for await (const page of readPages(services, shop, operation, start)) {
    const known = addCounts(run.counts, await read(page));
    const counts = addCounts(known, lostCounts(services, shop, stage, page.lost));
    await save({ counts, cursor: page.endCursor, list: page.list });
    onProgress({ counts, stage, done: undefined });
  }
  if (stage === "customers") logSkippedCustomers(services, shop, run.counts.skipped);
}

/** Reads changed contracts at the same time, so that they share queries. */
async function refreshAll(services: ReconcileServices, shop: Shop, changes: ReadonlyMap<string, ChangeHint>) {
  const results = await allDone([...changes].map(([gid, hint]) => refreshContract(services, shop, gid, hint)));
  return results.reduce<SyncCounts>(addCounts, NO_COUNTS);
}

/** Reads the contracts of changed orders. */
async function refreshOrders(services: ReconcileServices, shop: Shop, page: ReadPage<ChangedNode>) {
  const learnedAt = services.now();
  const hints = page.nodes.map(({ id, updatedAt }): ChangeHint => {
    const hint = changeHint("order", updatedAt);
    return { ...hint, orders: [id], evidence: { orders: { [id]: hint.triggeredAt } }, learnedAt };
  });
  for (const { gid } of page.unread) hints.push({ ...hintNow("order", learnedAt), orders: [gid] });
  const lookUps = await allDone(hints.map((hint) => contractsOfOrder(services, shop, hint)));
  const changes = new Map<string, ChangeHint>();
  for (const [index, hint] of hints.entries()) {
    for (const contract of lookUps[index]?.contracts ?? []) {
      const { orders, triggeredAt, evidence } = changes.get(contract) ?? { ...hint, orders: [] };
      changes.set(contract, {
        ...hint,
        orders: [...orders, ...hint.orders],
        triggeredAt: Math.max(triggeredAt, hint.triggeredAt),
        evidence: joinEvidence(evidence ?? {}, hint.evidence ?? {}),
      });
    }
  }
  const counts = lookUps.map((each) => each.counts).reduce<SyncCounts>(addCounts, NO_COUNTS);
  return addCounts(counts, await refreshAll(services, shop, changes));
}

/** States of attempts that change no order of the platform. So the stage of the orders does not find these attempts. */
const STATES_WITHOUT_ORDER: readonly ContractAttempt["state"]["__typename"][] = [
  "SubscriptionBillingAttemptFailedState",
  "SubscriptionBillingAttemptActionRequiredState",
];

/**
 * Returns a hint for each contract. The hint's time is the latest end of all attempts of the contract, because attempts
 * need not end in the order in which they began. The evidence has only attempts since the last charge: once the mirror
 * has that charge's order, readings may no longer show the attempts before it.
 */
function hintsOf(nodes: readonly ContractAttempt[]): Map<string, ChangeHint> {
  const changes = new Map<string, ChangeHint>();
  for (const { id, subscriptionContract, createdAt, completedAt, state } of nodes) {
    const hint = changeHint("contract", completedAt ?? createdAt);
    const { triggeredAt, evidence } = changes.get(subscriptionContract.id) ?? hint;
    const before = state.__typename === "SubscriptionBillingAttemptSuccessState" ? [] : (evidence?.attempts ?? []);
    const attempts = STATES_WITHOUT_ORDER.includes(state.__typename) ? [...before, id] : before;
    const latest = Math.max(triggeredAt, hint.triggeredAt);
    changes.set(subscriptionContract.id, { ...hint, triggeredAt: latest, evidence: { attempts } });
  }
  return changes;
}

function changeHint(of: ChangeHint["of"], changedAt: string): ChangeHint {
  return { of, orders: [], triggeredAt: Date.parse(changedAt) };
}

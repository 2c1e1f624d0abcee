import { isOlder } from "../../domain/decide/subscription.ts";
import type { StoredRead } from "../../store/port/mirror.ts";
import type { ContractNode } from "../api/operations/contracts.ts";
import type { OrderNode } from "../api/operations/orders.ts";
import type { MirroredOrders } from "./cycles.ts";
import { chargedOrders, orderOf } from "./orders.ts";
import type { ContractRecords } from "./reader.ts";

/**
 * Facts about a contract that a webhook or a list has shown. The platform answers from replicas, which can lag by
 * seconds. If a reading does not show all these facts, the reading is older than the change.
 */
export interface Evidence {
  revision?: string;
  /** When the contract changed last, epoch milliseconds. */
  updatedAt?: number;
  /** When orders changed last, by gid. */
  orders?: Record<string, number>;
  /** Gids of orders of successful attempts. */
  charges?: string[];
  /** Attempts that are no longer pending, by gid or idempotency key. */
  attempts?: string[];
  /** The state of cycles, by number. */
  cycles?: Record<string, CycleEvidence>;
}

interface CycleEvidence {
  skipped: boolean;
  /** Epoch milliseconds. */
  expectedAt: number;
}

/** Maximum lag of replicas. After this time, an object that the platform does not show is treated as gone. */
export const MAX_LAG_MS = 5 * 60_000;
/** Usual lag of replicas. Few replicas lag by more than this. */
const USUAL_LAG_MS = 60_000;

/** Merges earlier evidence with the evidence of a later webhook. */
export function joinEvidence(before: Evidence, after: Evidence): Evidence {
  const { revision = before.revision } = after;
  const isRevisionOlder = isOlder(revision, before.revision);
  const updatedAt = Math.max(before.updatedAt ?? 0, after.updatedAt ?? 0);
  const orders = { ...before.orders };
  for (const [gid, at] of Object.entries(after.orders ?? {})) orders[gid] = Math.max(orders[gid] ?? 0, at);
  const joined: Evidence = {
    orders,
    charges: [...new Set([...(before.charges ?? []), ...(after.charges ?? [])])],
    attempts: [...new Set([...(before.attempts ?? []), ...(after.attempts ?? [])])],
    cycles: { ...before.cycles, ...after.cycles },
  };
  if (revision !== undefined) joined.revision = (isRevisionOlder ? before.revision : revision) ?? revision;
  if (updatedAt > 0) joined.updatedAt = updatedAt;
  return joined;
}

/** Whether a reading is at least as new as the evidence. */
export function isShown(
  { orders = {}, charges = [], attempts = [], cycles = {}, ...contract }: Evidence,
  read: ContractRecords,
  now: number,
): boolean {
  if (read.node === undefined) return contract.revision === undefined && contract.updatedAt === undefined;
  if (isOlder(read.node.revisionId, contract.revision)) return false;
  if (Date.parse(read.node.updatedAt) < (contract.updatedAt ?? 0)) return false;
  const readAttempts = read.cycles.flatMap((cycle) => cycle.attempts);
  const ended = readAttempts.filter(({ state }) => state.__typename !== "SubscriptionBillingAttemptPendingState");
  const known = new Set(ended.flatMap(({ id, idempotencyKey }) => [id, idempotencyKey]));
  const charged = new Set([...ended.flatMap(orderOf), ...chargedOrders(read.mirrored).keys()]);
  const own = new Set([...charged, read.node.originOrder?.id]);
  return (
    hasNamedOrders(read, read.node, now) &&
    attempts.every((attempt) => known.has(attempt)) &&
    charges.every((gid) => charged.has(gid)) &&
    Object.entries(orders).every(([gid, at]) => isOrderShown(read.orders.get(gid), at, own.has(gid), now)) &&
    read.cycles.every(({ cycleIndex, skipped, billingAttemptExpectedDate }) => {
      const cycle = cycles[cycleIndex];
      if (cycle === undefined) return true;
      return skipped === cycle.skipped && Date.parse(billingAttemptExpectedDate) === cycle.expectedAt;
    })
  );
}

/**
 * Whether the reading has the new orders that the contract and its attempts name. An order can be missing if an older
 * replica answered the query for orders.
 */
function hasNamedOrders({ cycles, orders, mirrored }: ContractRecords, node: ContractNode, now: number): boolean {
  const isNew = (at: string) => now - Date.parse(at) < MAX_LAG_MS;
  const attempts = cycles.flatMap((cycle) => cycle.attempts);
  const named = attempts.filter(({ createdAt, completedAt }) => isNew(completedAt ?? createdAt)).flatMap(orderOf);
  if (node.originOrder != null && isNew(node.createdAt)) named.push(node.originOrder.id);
  const charged = chargedOrders(mirrored);
  return named.every((gid) => orders.has(gid) || charged.has(gid));
}

/** Whether a reading shows the change of an order. Old orders, such as imported ones, can be without a cycle. */
function isOrderShown(order: OrderNode | undefined, at: number, isOfCycle: boolean, now: number): boolean {
  if (order === undefined || Date.parse(order.updatedAt ?? "") < at) return false;
  return isOfCycle || now - Date.parse(order.createdAt) > MAX_LAG_MS;
}

/** The mirror's state of a contract. */
interface KnownState extends StoredRead {
  revision: string | null | undefined;
  mirrored: MirroredOrders;
  /** Time from the change to the start of the last reading. */
  waitedMs: number;
}

/** Whether earlier readings have shown what the evidence shows. */
export function isStored(
  { revision, updatedAt = 0, orders = {}, charges = [], attempts = [], cycles = {} }: Evidence,
  stored: KnownState,
): boolean {
  // Attempts and cycles are not stored. So the reading counts only if it began after the usual lag of replicas.
  if (attempts.length + Object.keys(cycles).length > 0 && stored.waitedMs < USUAL_LAG_MS) return false;
  const charged = chargedOrders(stored.mirrored);
  return (
    !isOlder(stored.revision ?? "0", revision) &&
    (stored.updatedAt ?? 0) >= updatedAt &&
    charges.every((gid) => charged.has(gid)) &&
    Object.entries(orders).every(([gid, at]) => (stored.orders[gid]?.updatedAt ?? 0) >= at)
  );
}

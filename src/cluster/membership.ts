import { partitionOf, partitionsFor } from "../domain/partition.ts";
import type { Log } from "../lib/log.ts";
import type { NodeStore } from "../store/port/nodes.ts";
import { failureFields } from "../store/port/store-error.ts";

/** Which background work this process does: all of it, or, of several nodes on one database, its part. */
export interface Membership {
  /**
   * Whether this node may begin work for a shop now: work that another node may do at the same moment, because the
   * database decides who is right.
   */
  mayBegin(shopId: number): boolean;
  /** Whether this node does what concerns no single shop. */
  readonly isLeader: boolean;
  /** How many nodes were alive at the last beat, this one included; 0 before the first one. */
  readonly nodes: number;
  /**
   * Begins work for a shop that no other node may do at the same time: its partition is not handed over before the end.
   * @returns what ends it; undefined if this node may not begin it
   */
  beginUnlessMoving(shopId: number): (() => void) | undefined;
  /**
   * Begins work for a shop that goes on while its partition is handed over, and whose commits are refused then. This
   * node does not take the partition again before the end, because the commits would be kept again.
   * @returns what ends it
   */
  beginAlways(shopId: number): () => void;
  /** Tells the other nodes that this one is alive, and takes and hands over partitions. Never rejects. */
  beat(): Promise<void>;
  /** Hands everything over. Work that is held must have ended. May be called twice. */
  leave(): Promise<void>;
}

/** The partition whose node leads. */
const LEADING_PARTITION = 0;
/** How long a partition stays with a node that says nothing. */
export const LEASE_MS = 8_000;
/** A node stops this long before its lease ends, because what it began by then takes a while. */
const MARGIN_MS = 2_000;

/** The membership of a process that has the database to itself. */
export function soleMember(): Membership {
  return {
    mayBegin: () => true,
    isLeader: true,
    nodes: 1,
    beginUnlessMoving: () => () => {},
    beginAlways: () => () => {},
    async beat() {},
    async leave() {},
  };
}

interface Dependencies {
  nodes: Pick<NodeStore, "id" | "beat" | "lease" | "leave">;
  /** Milliseconds of a clock that only goes forward. */
  clock: () => number;
  log: Log;
  /** Called when this node has got partitions: work may wait there. */
  onGained: () => void;
}

/**
 * One of several nodes on one database. Each beat, once a second, says which nodes are alive. From that, every node
 * computes who should work for which partition. A node works for a partition only under a lease that the database gave
 * it, so two never do, even while they disagree. A node that cannot reach the database stops before its leases end.
 */
export function createMember({ nodes, clock, log, onGained }: Dependencies): Membership {
  /** Partitions under a lease of ours. */
  let leased: ReadonlySet<number> = new Set();
  /** Those that we should have. The others of `leased` are handed over when their work has ended. */
  let wanted: ReadonlySet<number> = new Set();
  let validUntil = Number.NEGATIVE_INFINITY;
  const held = createRunning();
  const begun = createRunning();
  let isLeaving = false;
  let beating: Promise<void> = Promise.resolve();
  let alive: readonly string[] = [];

  const isOwn = (partition: number) => !isLeaving && leased.has(partition) && clock() < validUntil;

  async function exchange(): Promise<void> {
    const beganAt = clock();
    noteNodes((await nodes.beat()).toSorted());
    const busy = held.partitions();
    const released = leased.difference(wanted.union(busy));
    const before = leased;
    // If the answer is lost, they may have gone to another node.
    leased = leased.difference(released);
    // What runs since before another node had the partition has to end before this one takes it again.
    const renewed = busy.union(begun.partitions().intersection(wanted));
    const change = { wanted: [...wanted.difference(renewed)], held: [...renewed], released: [...released] };
    leased = new Set(await nodes.lease(change, LEASE_MS));
    validUntil = beganAt + LEASE_MS - MARGIN_MS;
    if (leased.difference(before).size > 0) onGained();
  }

  /** @param ids in order */
  function noteNodes(ids: readonly string[]): void {
    if (ids.length === alive.length && ids.every((id, index) => id === alive[index])) return;
    if (alive.length > 0) log.info("the nodes of this database changed", { nodes: ids.length });
    alive = ids;
    wanted = partitionsFor(nodes.id, ids);
  }

  return {
    mayBegin: (shopId) => isOwn(partitionOf(shopId)),
    get isLeader() {
      return isOwn(LEADING_PARTITION);
    },
    get nodes() {
      return alive.length;
    },
    beginUnlessMoving(shopId) {
      const partition = partitionOf(shopId);
      // What goes to another node soon gets no new work, or it would never go.
      return isOwn(partition) && wanted.has(partition) ? held.add(partition) : undefined;
    },
    beginAlways: (shopId) => begun.add(partitionOf(shopId)),
    async beat() {
      if (isLeaving) return;
      beating = exchange().catch((thrown: unknown) => {
        log.warn("cannot tell other nodes that this one is alive", failureFields(thrown));
      });
      await beating;
    },
    async leave() {
      isLeaving = true;
      // A beat that runs would note the node again.
      await beating;
      await nodes.leave().catch((thrown: unknown) => {
        log.warn("cannot hand over the work: other nodes take it in a few seconds", failureFields(thrown));
      });
    },
  };
}

/** Work that runs, by partition. */
function createRunning() {
  const counts = new Map<number, number>();
  return {
    /** @returns what ends it; it may be called twice */
    add(partition: number): () => void {
      counts.set(partition, (counts.get(partition) ?? 0) + 1);
      let isEnded = false;
      return () => {
        if (isEnded) return;
        isEnded = true;
        const left = (counts.get(partition) ?? 1) - 1;
        if (left > 0) counts.set(partition, left);
        else counts.delete(partition);
      };
    },
    partitions: (): ReadonlySet<number> => new Set(counts.keys()),
  };
}

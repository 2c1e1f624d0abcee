import { PARTITIONS, partitionOf } from "../domain/shop.ts";
import type { Log } from "../lib/log.ts";
import { addTo } from "../lib/slots.ts";
import type { LiveNode, NodeStore } from "../store/port/nodes.ts";
import { failureFields } from "../store/port/store-error.ts";

/** Decides which background work this process does. If several nodes share the database, each node does a part. */
export interface Membership {
  /** Whether this node may begin work for a shop now. Use it only for work that two nodes may do at the same moment. */
  mayBegin(shopId: number): boolean;
  /** Whether this node is the leader. Only the leader does the work that is not divided by shop. */
  readonly isLeader: boolean;
  /** Returns the URL of the node that should work for the shop; undefined for this node and nodes without a URL. */
  ownerUrl(shopId: number): string | undefined;
  /** The number of nodes that were alive at the last beat, including this node; 0 before the first beat. */
  readonly nodes: number;
  /**
   * Begins work that only one node may do for the shop. The shop's partition is not handed over before the work ends.
   * @returns a function that ends the work; undefined if this node may not begin the work
   */
  beginUnlessMoving(shopId: number): (() => void) | undefined;
  /**
   * Begins work that does not delay a hand-over of the shop's partition. After the hand-over, commits of the work are
   * refused. This node takes the partition back only after the work has ended. Otherwise commits of the old work would
   * be accepted again.
   * @returns a function that ends the work
   */
  beginAlways(shopId: number): () => void;
  /** Tells the other nodes that this node is alive. Leases partitions, and hands partitions over. Never rejects. */
  beat(): Promise<void>;
  /** Hands all partitions over. Call this after all work of `beginUnlessMoving` has ended. May be called twice. */
  leave(): Promise<void>;
}

/** The node that has leased this partition is the leader. */
const LEADING_PARTITION = 0;
/** How long a silent node keeps its partitions. */
export const LEASE_MS = 8_000;
/** A node begins no work if its lease expires within this time, because work takes a while. */
const MARGIN_MS = 2_000;

/** Returns the membership of a process that does not share its database. */
export function soleMember(): Membership {
  return {
    mayBegin: () => true,
    isLeader: true,
    ownerUrl: () => undefined,
    nodes: 1,
    beginUnlessMoving: () => () => {},
    beginAlways: () => () => {},
    async beat() {},
    async leave() {},
  };
}

interface MemberDependencies {
  nodes: Pick<NodeStore, "id" | "beat" | "lease" | "leave">;
  /** Milliseconds of a clock that only goes forward. */
  clock: () => number;
  log: Log;
  /** Called when this node gets partitions, because work can be waiting for their shops. */
  onGained: () => void;
}

/**
 * Creates the membership of one of several nodes on a database. Each beat, once a second, reads which nodes are alive.
 * From this list, every node computes which node should work for which partition. A node begins work only under a lease
 * from the database, so two nodes never begin work for a partition at the same time. If a node loses the database, it
 * stops before its leases end.
 */
export function createMember({ nodes, clock, log, onGained }: MemberDependencies): Membership {
  /** Partitions that this node has leased. */
  let leased: ReadonlySet<number> = new Set();
  /** Partitions that this node should have. A leased partition that is not wanted is handed over when its work ends. */
  let wanted: ReadonlySet<number> = new Set();
  let validUntil = Number.NEGATIVE_INFINITY;
  const held = createRunning();
  const begun = createRunning();
  let isLeaving = false;
  let beating: Promise<void> = Promise.resolve();
  let alive: readonly LiveNode[] = [];

  const isOwn = (partition: number) => !isLeaving && leased.has(partition) && clock() < validUntil;

  async function exchange(): Promise<void> {
    const beganAt = clock();
    noteNodes(await nodes.beat());
    const busy = held.partitions();
    const released = leased.difference(wanted.union(busy));
    const before = leased;
    // Forget released partitions before the request: if its answer is lost, another node may already have leased them.
    leased = leased.difference(released);
    // If a partition moved away and comes back, work from before the move must end before we lease the partition again.
    const renewed = busy.union(begun.partitions().intersection(wanted));
    const change = { wanted: [...wanted.difference(renewed)], held: [...renewed], released: [...released] };
    leased = new Set(await nodes.lease(change, LEASE_MS));
    validUntil = beganAt + LEASE_MS - MARGIN_MS;
    if (leased.difference(before).size > 0) onGained();
  }

  function noteNodes(live: readonly LiveNode[]): void {
    const [before, ids] = [idsOf(alive), idsOf(live)];
    alive = live;
    if (ids.join() === before.join()) return;
    if (before.length > 0) log.info("the nodes of this database changed", { nodes: ids.length });
    wanted = partitionsFor(nodes.id, ids);
  }

  return {
    mayBegin: (shopId) => isOwn(partitionOf(shopId)),
    get isLeader() {
      return isOwn(LEADING_PARTITION);
    },
    ownerUrl: (shopId) => (isLeaving ? undefined : urlOfOther(partitionOf(shopId), nodes.id, alive)),
    get nodes() {
      return alive.length;
    },
    beginUnlessMoving(shopId) {
      const partition = partitionOf(shopId);
      // A moving partition gets no new work, because it can move only when its work has ended.
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
      // Wait until a running beat ends. Otherwise the beat would register the node again.
      await beating;
      await nodes.leave().catch((thrown: unknown) => {
        log.warn("cannot hand over the work: other nodes take it in a few seconds", failureFields(thrown));
      });
    },
  };
}

function idsOf(nodes: readonly LiveNode[]): string[] {
  return nodes.map(({ id }) => id).sort();
}

/** Returns the URL of the node that should work for a partition; undefined for this node and nodes without a URL. */
function urlOfOther(partition: number, own: string, alive: readonly LiveNode[]): string | undefined {
  const owner = preferredNode(partition, idsOf(alive));
  return alive.find(({ id }) => id === owner && id !== own)?.url ?? undefined;
}

/** Counts running work by partition. */
function createRunning() {
  const counts = new Map<number, number>();
  return {
    /** @returns a function that ends the work; may be called twice */
    add(partition: number): () => void {
      addTo(counts, partition, 1);
      let isEnded = false;
      return () => {
        if (!isEnded) addTo(counts, partition, -1);
        isEnded = true;
      };
    },
    partitions: (): ReadonlySet<number> => new Set(counts.keys()),
  };
}

/**
 * Returns the partitions where the node has the highest weight of all nodes (rendezvous hashing). If a node joins or
 * leaves, only that node's partitions move.
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
    // With equal weights, the larger id wins, so that all nodes decide the same.
    if (weight > highest || (weight === highest && node > (preferred ?? ""))) [preferred, highest] = [node, weight];
  }
  return preferred;
}

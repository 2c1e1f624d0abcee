/** What a node says of itself, for operators. */
export interface NodeDescription {
  /** Where it listens. */
  address: string;
  /** The name of its machine, and its process there; null for a node of a version that did not tell them. */
  host: string | null;
  processId: number | null;
  version: string;
}

/** A node: a running `serve` on a database that several may share. */
export interface NodeStatus extends NodeDescription {
  id: string;
  /** Epoch milliseconds of the database's clock. */
  startedAt: number;
  heartbeatAt: number;
  isAlive: boolean;
  /** How many shops it works for. */
  shops: number;
}

/** Partitions whose leases change. */
export interface LeaseChange {
  /** Renewed, or taken where the lease of another node ended. */
  wanted: readonly number[];
  /** Renewed, and not taken where another node has had the lease since. */
  held: readonly number[];
  released: readonly number[];
}

/** Nodes and their work. Times are of the database's clock: the clocks of the nodes differ. */
export interface NodeStore {
  /** Of this process; another one at each start. */
  readonly id: string;
  describe(node: NodeDescription): void;
  /** Notes that this node is alive. @returns the ids of all nodes that are, this one included */
  beat(): Promise<string[]>;
  /** Changes the leases of this node. @returns the partitions that it has now */
  lease(change: LeaseChange, leaseMs: number): Promise<number[]>;
  /** Gives all leases back, and removes the node. */
  leave(): Promise<void>;
  /** All nodes, and how often partitions were handed over. */
  status(): Promise<{ nodes: NodeStatus[]; handOvers: number }>;
}

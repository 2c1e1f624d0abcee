/** How a node describes itself to operators. */
export interface NodeDescription {
  /** Address where the node listens. */
  address: string;
  /** The node's machine and process. null for a node of an older version that does not report them. */
  host: string | null;
  processId: number | null;
  version: string;
  /** URL at which other nodes reach this node; null if they cannot. */
  url: string | null;
}

export type LiveNode = Pick<NodeStatus, "id" | "url">;

/** A node: a `serve` process. Several nodes may share the database. */
export interface NodeStatus extends NodeDescription {
  id: string;
  /** Epoch milliseconds of the database's clock. */
  startedAt: number;
  heartbeatAt: number;
  isAlive: boolean;
  /** Number of shops that the node works for. */
  shops: number;
}

/** Partitions whose leases this node changes. */
export interface LeaseChange {
  /** Partitions to renew, or to take after another node's lease has expired. */
  wanted: readonly number[];
  /** Partitions whose leases are renewed. A lease that another node has taken is not taken back. */
  held: readonly number[];
  released: readonly number[];
}

/** Nodes and their leases. Times are of the database's clock, because the clocks of the nodes differ. */
export interface NodeStore {
  /** Id of this node. Each start of a process makes a new id. */
  readonly id: string;
  describe(node: NodeDescription): void;
  /** Notes that this node is alive. @returns all live nodes, this one included */
  beat(): Promise<LiveNode[]>;
  /** Changes the leases of this node. @returns the partitions that the node has now */
  lease(change: LeaseChange, leaseMs: number): Promise<number[]>;
  /** Releases all leases, and removes the node. */
  leave(): Promise<void>;
  /** Returns all nodes, and how often partitions were handed over. */
  status(): Promise<{ nodes: NodeStatus[]; handOvers: number }>;
}

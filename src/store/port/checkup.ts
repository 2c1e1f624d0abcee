import type { DatabaseFigures } from "./store.ts";

/** Shops with the same fault: how many, and the first few of them. */
export interface FaultyShops {
  count: number;
  shops: { domain: string; reason: string | null }[];
}

/** A set of scopes, and the number of shops that granted exactly these scopes. */
interface GrantedScopes {
  scopes: string[];
  count: number;
  /** The domain of one of these shops. */
  domain: string;
}

/** Finds faults of shops. Times in epoch milliseconds. */
export interface ShopCheckup {
  /** When the first shop was added; null without shops. */
  firstShopAt(): Promise<number | null>;
  /** Returns the domain of one shop whose connection the platform accepts; undefined without one. */
  connectedDomain(): Promise<string | undefined>;
  /** Shops whose connection the platform refuses. */
  refused(): Promise<FaultyShops>;
  /** Shops whose access token expired and cannot be renewed. */
  expired(now: number): Promise<FaultyShops>;
  grantedScopes(): Promise<GrantedScopes[]>;
  /**
   * Shops that the platform accepts, that were connected at `until` or before, and whose mirrors were not complete at
   * any time after `until`.
   */
  unreconciled(until: number, now: number): Promise<FaultyShops>;
  /** Shops with an unfinished move to or from this database. The reason is `arriving`, `leaving` or `stopped`. */
  moving(): Promise<FaultyShops>;
  /** Counts endpoints. Returns some of them, failing endpoints first, each with the domain of a shop that uses it. */
  endpoints(): Promise<{ count: number; endpoints: { url: string; domain: string }[] }>;
}

/** A running `serve` on this machine, as it is noted in the database. */
export interface NotedServe {
  address: string;
  processId: number | null;
}

/** A database that was opened read-only. Opening it made no file, upgraded nothing and left no lock. */
export interface Checkup {
  /** Version of the schema. `isCurrent` is true if this program can read all tables of this version. */
  schema: { version: number; isCurrent: boolean };
  /** Fingerprint of the master key that sealed the secrets; undefined without secrets. */
  sealedWith: string | undefined;
  /** Whether Litestream copies the database. */
  isReplicated: boolean;
  figures(): Promise<DatabaseFigures>;
  serves(): Promise<NotedServe[]>;
  /** The server's clock, epoch milliseconds; null for SQLite. */
  clock(): Promise<number | null>;
  /** Server settings with which a power cut can lose acknowledged commits. */
  unsafeSettings(): Promise<string[]>;
  shops: ShopCheckup;
  close(): Promise<void>;
}

/** Why a database cannot be opened. */
export type StoreProblem = "missing" | "newer" | "damaged" | "unfinished" | "unreachable" | "unusable";

export type OpenedCheckup = { checkup: Checkup } | { problem: StoreProblem; detail: string };

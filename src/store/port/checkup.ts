import type { DatabaseFigures } from "./store.ts";

/** Shops with the same fault: how many, and the first few of them. */
export interface FaultyShops {
  count: number;
  shops: { domain: string; reason: string | null }[];
}

/** How many shops have these scopes. */
interface GrantedScopes {
  scopes: string[];
  count: number;
  /** The domain of one of them. */
  domain: string;
}

/** What is wrong with shops. Times in epoch milliseconds. */
export interface ShopCheckup {
  /** When the first shop was added; null without shops. */
  firstShopAt(): Promise<number | null>;
  /** The domain of a connected shop that the platform accepts. */
  connectedDomain(): Promise<string | undefined>;
  /** Shops whose connection the platform refuses. */
  refused(): Promise<FaultyShops>;
  /** Shops whose access token expired and cannot be renewed. */
  expired(now: number): Promise<FaultyShops>;
  grantedScopes(): Promise<GrantedScopes[]>;
  /** Accepted shops whose mirror is complete only up to `until` or an earlier time. */
  unreconciled(until: number, now: number): Promise<FaultyShops>;
  /** Shops with an unfinished move to or from this database. The reason is `arriving`, `leaving` or `stopped`. */
  moving(): Promise<FaultyShops>;
  /** Counts endpoints, and returns some of them with the domain of a shop that has it. Failing endpoints come first. */
  endpoints(): Promise<{ count: number; endpoints: { url: string; domain: string }[] }>;
}

/** A running `serve` on this machine, as it noted itself. */
export interface NotedServe {
  address: string;
  processId: number | null;
}

/** A database that was opened read-only: opening it made no file, no upgrade and no lasting lock. */
export interface Checkup {
  /** Version of the schema, and whether this program can read all its tables. */
  schema: { version: number; isCurrent: boolean };
  /** Fingerprint of the key that sealed the secrets; undefined before the first. */
  sealedWith: string | undefined;
  /** Whether Litestream copies the database. */
  isReplicated: boolean;
  figures(): Promise<DatabaseFigures>;
  serves(): Promise<NotedServe[]>;
  /** The server's clock, epoch milliseconds; null for SQLite. */
  clock(): Promise<number | null>;
  /** Settings of the server that let a power cut lose acknowledged commits. */
  unsafeSettings(): Promise<string[]>;
  shops: ShopCheckup;
  close(): Promise<void>;
}

/** Why a database cannot be opened. */
export type StoreProblem = "missing" | "newer" | "damaged" | "unfinished" | "unreachable" | "unusable";

export type OpenedCheckup = { checkup: Checkup } | { problem: StoreProblem; detail: string };

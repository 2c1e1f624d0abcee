import type { AuditEntry } from "../../domain/audit.ts";
import { SdsError } from "../../domain/error.ts";
import type { CheckpointOrigin } from "../../domain/pages/checkpoint.ts";

/** Makes the error for a caller if another caller has taken over the move. */
export const overtaken = () => new SdsError("conflict", "another command moves this shop now: wait until it ends");

/** Makes the error for a command whose target differs from the target of the move in progress. */
export const movesElsewhere = (domain: string) =>
  new SdsError(
    "conflict",
    `a move of ${domain} to another database has begun: finish it, or give it up with the same --to and --cancel`,
  );

/** A value of a row on its way to another database. Bytes are hexadecimal digits. Secrets are not encrypted. */
export type MovedValue = number | string | boolean | null;

/**
 * A row of a moving shop. Its values have the order of the columns in `copy/moved-tables.ts`. Rows of both databases
 * have the same form: they keep the row numbers of the source, and have 0 as the number of the shop.
 */
export type MovedRow = readonly MovedValue[];

/** A moving shop in one database. */
export interface MovedShop {
  /** The number of the shop in this database. */
  id: number;
  /** Offset that this database adds to the numbers of each table. A table without an entry has the offset 0. */
  offsets: Readonly<Record<string, number>>;
}

/** A range of a moving shop's rows in a table, in key order. Excludes the row `after`, and includes the row `upTo`. */
export interface MovedRange {
  /** Only rows of this kind, for the table of deliveries. */
  kind?: string | undefined;
  after?: MovedRow | undefined;
  upTo?: MovedRow | undefined;
  /** Only rows that belong to these rows of another table, for example attempts of these deliveries. */
  owners?: readonly MovedRow[];
}

/** The first rows of a range. */
export interface MovedBatch {
  rows: MovedRow[];
  /** The row at which the batch ends; undefined if no further rows of the range follow. */
  upTo: MovedRow | undefined;
}

/**
 * For each numbered table: `low` is a lower limit of the numbers of the shop's rows. `high` is the highest number that
 * a row of any shop ever had.
 */
export type NumberSpans = Readonly<Record<string, { low: number; high: number }>>;

/** A shop that is about to leave. */
export interface Departure {
  /** Id of the move, the same in both databases. */
  move: string;
  shop: MovedShop;
  spans: NumberSpans;
  /** The row of the shop itself. */
  row: MovedRow;
}

/** The state of a shop's move in one database. */
export interface ShopMove {
  /** Id of the move, the same in both databases. */
  move: string;
  state: "leaving" | "arriving" | "moved";
  /** Name of the other database; null for an arriving shop. */
  target: string | null;
}

/**
 * The steps of a move of a shop to another database. Each step is one transaction, and can be repeated safely. The shop
 * belongs to the source until `activate` commits in the target, and then to the target.
 */
export interface ShopMoves {
  /**
   * Begins a move away from this database. If a move to the same target has begun, returns that move.
   * @param move a random id, for a new move
   * @param target name of the other database
   * @returns undefined for an unknown shop
   * @throws SdsError `conflict` if a move to another target has begun
   */
  begin(domain: string, move: string, target: string): Promise<Departure | undefined>;
  /**
   * Stops all writes and deliveries of a leaving shop. API keys can still read the shop.
   * @param stop a random id of the caller. A later call with another id replaces this id
   * @returns false if a process is renewing the shop's tokens: the shop was not stopped then
   * @throws SdsError `conflict` if the move was given up
   */
  stop(move: string, stop: string, now: number): Promise<boolean>;
  /** Counts the deliveries of a stopped shop that are being sent. */
  sending(move: string, now: number): Promise<number>;
  /** Resumes a stopped shop here, unless another caller has stopped it since. @returns whether it resumed the shop */
  goOn(move: string, stop: string): Promise<boolean>;
  /** Forgets the move of a shop that stays here. Ignored while the shop is stopped. */
  forget(move: string): Promise<void>;
  /** After a move away, marks the shop for removal. Posts for the shop still get 503. */
  leave(move: string): Promise<void>;

  /** Returns the state of a move to this database; undefined if the move has not begun, or was given up. */
  arrival(move: string): Promise<"arriving" | "arrived" | undefined>;
  /**
   * Adds an arriving shop, hidden until `activate`. If an earlier call of this move added the shop, returns that shop.
   * @throws SdsError `conflict` if this database has a shop of this domain, even one that arrives by another move
   */
  arrive(departure: Departure, now: number): Promise<MovedShop>;
  /**
   * Lets only this caller write the shop's rows and activate the shop. Otherwise a caller that was paused could
   * overwrite newer rows. @throws SdsError `conflict` if the move was given up
   */
  arm(move: string, stop: string): Promise<void>;
  /** Undoes `arm`. @returns true if the shop was not activated */
  disarm(move: string, stop: string): Promise<boolean>;
  /**
   * Begins to serve the shop here.
   * @param entry entry for the shop's audit list
   * @returns false if another caller has called `arm` since, or the move was given up
   */
  activate(move: string, stop: string, origin: CheckpointOrigin, entry: AuditEntry): Promise<boolean>;
  /** Gives up an arriving shop, and marks it for removal. @returns false if it was activated before */
  refuse(move: string): Promise<boolean>;
  /**
   * Changes rows of an arriving shop. First removes the rows with the keys of `removed`, then adds `added`.
   * @throws SdsError `conflict` if another caller has called `arm` since, or the move was given up
   */
  write(
    move: string,
    stop: string,
    table: string,
    removed: readonly MovedRow[],
    added: readonly MovedRow[],
  ): Promise<void>;

  read(shop: MovedShop, table: string, range: MovedRange): Promise<MovedRow[]>;
  /**
   * Reads the first rows of a range. The batch ends after `most.rows` rows, or after the row that brings it to
   * `most.bytes` bytes.
   */
  readBatch(
    shop: MovedShop,
    table: string,
    range: MovedRange,
    most: { rows: number; bytes: number },
  ): Promise<MovedBatch>;
  /** Finds the unfinished move of a shop. Without such a move, finds the move that took the shop away. */
  find(domain: string): Promise<ShopMove | undefined>;
  /** Whether a shop of this domain is stopped or hidden for a move, or has moved away. */
  isAway(domain: string): Promise<boolean>;
  /** Lists the databases that issued checkpoints of a shop before the shop moved here. */
  origins(shopId: number): Promise<CheckpointOrigin[]>;
}

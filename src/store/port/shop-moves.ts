import type { AuditEntry } from "../../domain/audit.ts";
import { SdsError } from "../../domain/error.ts";
import type { CheckpointOrigin } from "../../domain/pages/checkpoint.ts";

/** The error of a caller that another caller has overtaken. */
export const overtaken = () => new SdsError("conflict", "another command moves this shop now: wait until it ends");

/** The error of a command that names another target than the move that has begun. */
export const movesElsewhere = (domain: string) =>
  new SdsError(
    "conflict",
    `a move of ${domain} to another database has begun: finish it, or give it up with the same --to and --cancel`,
  );

/** A value of a row on its way to another database. Bytes are hexadecimal digits, secrets are in the clear. */
export type MovedValue = number | string | boolean | null;

/**
 * A row of a moving shop, with its values in the order of the columns of its table (`copy/moved-tables.ts`). Both
 * databases use the same form: the numbers of the source, and 0 for the number of the shop.
 */
export type MovedRow = readonly MovedValue[];

/** A moving shop in one database. */
export interface MovedShop {
  /** The number of the shop in this database. */
  id: number;
  /** What this database adds to the numbers of each table. A table without an entry keeps the numbers. */
  offsets: Readonly<Record<string, number>>;
}

/** A range of the rows of a moving shop in a table, in the order of the key. `after` and `upTo` are keys. */
export interface MovedRange {
  after?: MovedRow | undefined;
  upTo?: MovedRow | undefined;
  limit?: number;
  /** Only the rows of these deliveries, for the table of attempts. */
  deliveries?: readonly number[];
}

/** The lowest and the highest number of a table of the shop. */
export type NumberSpans = Readonly<Record<string, { low: number; high: number }>>;

/** A shop that is about to leave. */
export interface Departure {
  /** Names the move in both databases. */
  move: string;
  shop: MovedShop;
  spans: NumberSpans;
  /** The row of the shop itself. */
  row: MovedRow;
}

/** What a database knows of a move of a shop. */
export interface ShopMove {
  /** Names the move in both databases. */
  move: string;
  state: "leaving" | "arriving" | "moved";
  /** Names the other database, for a shop that leaves or has moved away. */
  target: string | null;
}

/**
 * The steps of a move of a shop to another database. Each step is one transaction, and may be repeated. The target
 * decides: the shop is in the source until `activate` commits, and in the target from then on.
 */
export interface ShopMoves {
  /**
   * Begins a move away from this database, or finds a move that has begun.
   * @param move a random id, for a new move
   * @param target names the other database
   * @returns undefined for an unknown shop
   * @throws SdsError `conflict` if a move to another target has begun
   */
  begin(domain: string, move: string, target: string): Promise<Departure | undefined>;
  /**
   * Stops all writes and deliveries of a leaving shop. API keys can still read it.
   * @param stop a random id of the caller. Only the last caller's id is valid
   * @returns false while the platform renews the tokens of the shop: nothing was stopped then
   * @throws SdsError `conflict` if the move was given up
   */
  stop(move: string, stop: string, now: number): Promise<boolean>;
  /** Counts the deliveries of a stopped shop that are being sent. */
  sending(move: string, now: number): Promise<number>;
  /** Lets a stopped shop go on here, unless another caller has stopped it since. @returns whether the shop goes on */
  goOn(move: string, stop: string): Promise<boolean>;
  /** Forgets the move of a shop that goes on here, after `goOn`. */
  forget(move: string): Promise<void>;
  /** Marks a shop that has moved away for removal. Posts for it get 503 from now on. */
  leave(move: string): Promise<void>;

  /** How far a move to this database is; undefined if it has not begun, or was given up. */
  arrival(move: string): Promise<"arriving" | "arrived" | undefined>;
  /**
   * Adds an arriving shop, hidden until `activate`. Finds the shop if this move has begun.
   * @throws SdsError `conflict` if this database has a shop of this domain, or another move of it
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
   * @param entry of the shop's audit list
   * @returns false if another caller was armed since, or the move was given up
   */
  activate(move: string, stop: string, origin: CheckpointOrigin, entry: AuditEntry): Promise<boolean>;
  /** Gives up an arriving shop, and marks it for removal. @returns false if it was activated before */
  refuse(move: string): Promise<boolean>;
  /**
   * Writes rows of an arriving shop, after removing those with the same keys.
   * @throws SdsError `conflict` if another caller was armed since, or the move was given up
   */
  write(
    move: string,
    stop: string,
    table: string,
    removed: readonly MovedRow[],
    added: readonly MovedRow[],
  ): Promise<void>;

  read(shop: MovedShop, table: string, range: MovedRange): Promise<MovedRow[]>;
  /** Finds the move of a shop: one that has not ended, otherwise the one that took the shop away. */
  find(domain: string): Promise<ShopMove | undefined>;
  /** Whether a shop of this domain moves right now, or has moved away. */
  isAway(domain: string): Promise<boolean>;
  /** Lists where the checkpoints of a shop were issued before it moved here. */
  origins(shopId: number): Promise<CheckpointOrigin[]>;
}

import type { Store } from "../../src/store/store.ts";
import { randomBytes, temporaryFolder } from "../support/app.ts";
import { afterTest } from "../support/cleanup.ts";
import { openStoreIn } from "../support/open-store.ts";
import { readRows } from "../support/rows.ts";
import type { Row, Table } from "../support/tables.ts";

interface OpenOptions {
  /** Random bytes for keys, secrets and delivery ids. Real randomness by default. */
  random?: (bytes: number) => Uint8Array;
}

/** An engine's store on a new, empty database. Both are closed and removed when the test ends. */
export interface TestStore {
  store: Store;
  /** Opens the same database once more, as a second process would. The first store stays open. */
  reopen(): Promise<Store>;
  /**
   * All rows of a table, in the order and form that tables.ts describes. Tests read rows this way and never open the
   * database themselves.
   */
  rows(table: Table): Promise<Row[]>;
}

export interface Engine {
  name: string;
  open(options?: OpenOptions): Promise<TestStore>;
}

/**
 * Every engine of the port. A test of this folder holds for all of them: `for (const engine of engines())
 * describe(engine.name, …)`.
 */
export function engines(): Engine[] {
  return [{ name: "sqlite", open: openSqlite }];
}

async function openSqlite({ random = randomBytes }: OpenOptions = {}): Promise<TestStore> {
  const folder = temporaryFolder();
  async function open(): Promise<Store> {
    const store = await openStoreIn(folder, random);
    afterTest(() => store.close());
    return store;
  }
  return {
    store: await open(),
    reopen: open,
    async rows(table) {
      return readRows(folder, table);
    },
  };
}

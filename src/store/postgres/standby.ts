import { messageOf, SdsError } from "../../domain/error.ts";
import type { Log } from "../../lib/log.ts";
import type { Awaitable } from "../../lib/waits.ts";
import { withoutArchivedFields } from "../engine/shown-fields.ts";
import type { ChangeState, PageStore, Snapshot } from "../port/pages.ts";
import { StoreError } from "../port/store-error.ts";
import { hiddenKeysReader } from "../quiet/fields.ts";
import { nameOf, type ServerAddress } from "./address.ts";
import { type Database, openConnections } from "./database.ts";
import { readMeta } from "./migrate.ts";
import { pageStore } from "./pages.ts";
import { quietDatabase } from "./quiet-database.ts";
import { checkServer } from "./server-check.ts";

/** A server from which pages are read. */
export interface Standby {
  /** See `Store.pagesFor`. */
  pagesFor(state: ChangeState): PageStore;
  close(): Promise<void>;
}

export interface StandbyOptions {
  address: ServerAddress;
  login: () => Pick<ServerAddress, "user" | "password">;
  log: Log;
  /** Milliseconds of a clock that only goes forward. */
  clock: () => number;
}

interface Dependencies {
  /** The primary. */
  db: Database;
  /** The pages of the primary. */
  pages: PageStore;
  epoch: Uint8Array;
  now: () => number;
  sleep: (ms: number) => Promise<void>;
}

const CONNECTIONS = 10;
const DEADLINE_MS = 2_000;
/** How long a read waits for a free connection. */
const WAIT_MS = 500;
/** Pauses before each check whether the standby has caught up with the primary. */
const PAUSES_MS = [2, 4, 8, 16, 32];
/** How long all reads go to the primary after the standby did not catch up (`LATE_MS`) or failed (`BROKEN_MS`). */
const LATE_MS = 1_000;
const BROKEN_MS = 5_000;

/**
 * Opens a standby for reads. Uses a page from the standby only if the shop's state there equals the state on the
 * primary. Otherwise the page is read from the primary. A standby that does not answer is tried again later.
 * @throws SdsError `failed` if the server is not a standby of the database
 */
export async function openStandby(options: StandbyOptions, dependencies: Dependencies): Promise<Standby> {
  const { pages: primary, sleep } = dependencies;
  const connection = keepOpen(options, dependencies);
  await connection.open().catch((thrown: unknown) => {
    if (thrown instanceof SdsError) throw thrown;
    connection.noteFailure(thrown);
  });

  /** Reads from the standby. @returns undefined if only the primary can answer */
  async function read<T extends Snapshot>(
    shopId: number,
    state: ChangeState,
    ask: (pages: PageStore) => Awaitable<T | undefined>,
  ): Promise<T | undefined> {
    if (connection.isResting()) return undefined;
    try {
      const { db, pages } = await connection.open();
      let found = await ask(pages);
      if (found !== undefined && found.changeCount < state.changeCount) {
        const isInTime = await catchesUp(db, shopId, state.changeCount, sleep);
        if (isInTime) found = await ask(pages);
        else connection.rest(LATE_MS);
      }
      connection.noteAnswer();
      const isSame = found?.changeCount === state.changeCount && found.branch === state.branch;
      return isSame ? found : undefined;
    } catch (thrown) {
      // Busy: all connections are in use, or the standby cancelled the query to continue the replication.
      const isBusy = thrown instanceof StoreError && thrown.reason === "busy";
      if (!isBusy) connection.noteFailure(thrown);
      return undefined;
    }
  }

  return {
    pagesFor: (state) => ({
      list: async (shopId, ...more) =>
        (await read(shopId, state, (pages) => pages.list(shopId, ...more))) ?? primary.list(shopId, ...more),
      listFiltered: async (shopId, ...more) =>
        (await read(shopId, state, (pages) => pages.listFiltered(shopId, ...more))) ??
        primary.listFiltered(shopId, ...more),
      changes: async (shopId, ...more) =>
        (await read(shopId, state, (pages) => pages.changes(shopId, ...more))) ?? primary.changes(shopId, ...more),
      find: async (shopId, ...more) =>
        (await read(shopId, state, (pages) => pages.find(shopId, ...more))) ?? primary.find(shopId, ...more),
      changeBefore: primary.changeBefore,
    }),
    close: connection.close,
  };
}

/** Waits until the standby has a change of a shop. @returns whether the change came in time */
async function catchesUp(
  standby: Database,
  shopId: number,
  changeCount: number,
  sleep: Dependencies["sleep"],
): Promise<boolean> {
  for (const pauseMs of PAUSES_MS) {
    await sleep(pauseMs);
    const reached = await standby.get<{ count: number }>(
      "SELECT change_count::float8 AS count FROM shop_changes WHERE shop_id = $1::bigint",
      [shopId],
    );
    if ((reached?.count ?? 0) >= changeCount) return true;
  }
  return false;
}

/** Keeps the connections to a standby open. After a failure, later calls of `open` open new connections. */
function keepOpen(options: StandbyOptions, dependencies: Dependencies) {
  const { address, log, clock } = options;
  let opened: Promise<OpenStandby> | undefined;
  let restsUntil = Number.NEGATIVE_INFINITY;
  let isBroken = false;

  async function close(): Promise<void> {
    const closing = opened;
    opened = undefined;
    await closing?.then(({ db }) => db.close()).catch(() => undefined);
  }

  function rest(ms: number): void {
    restsUntil = clock() + ms;
  }

  return {
    close,
    rest,
    isResting: () => clock() < restsUntil,

    open(): Promise<OpenStandby> {
      opened ??= openDatabase(options, dependencies);
      return opened;
    },

    noteAnswer() {
      if (isBroken) log.info("pages are read from the standby again");
      isBroken = false;
    },

    noteFailure(thrown: unknown) {
      rest(BROKEN_MS);
      void close();
      const fields = { standby: nameOf(address), error: messageOf(thrown) };
      if (!isBroken) log.warn("cannot read pages from the standby; the primary is asked", fields);
      isBroken = true;
    },
  };
}

interface OpenStandby {
  db: Database;
  pages: PageStore;
}

/**
 * Opens the database of a standby.
 * @throws SdsError `failed` for an unusable server or a different database; the driver's error if no connection is
 *   possible
 */
async function openDatabase(
  { address, login }: StandbyOptions,
  { db: primary, epoch, now, sleep }: Dependencies,
): Promise<OpenStandby> {
  const { isPooled } = await checkServer(address, DEADLINE_MS, now, { isStandby: true });
  const limits = { connections: CONNECTIONS, deadlineMs: DEADLINE_MS, waitMs: WAIT_MS };
  const db = openConnections({ address, login, isPooled, sleep, ...limits });
  try {
    if ((await readMeta(db, "epoch")) !== epoch.toHex()) throw noStandby(nameOf(address));
    // Reads the keys of archived fields after the page, and from the primary. So they are never older than the page.
    return { db, pages: withoutArchivedFields(pageStore(db), hiddenKeysReader(quietDatabase(primary))) };
  } catch (thrown) {
    await db.close();
    throw thrown;
  }
}

function noStandby(name: string): SdsError {
  return new SdsError(
    "failed",
    `${name} of SDS_DATABASE_READ_URL is not a standby of the database: name a server that replicates it`,
  );
}

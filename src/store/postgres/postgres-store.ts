import { existsSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { SdsError } from "../../domain/error.ts";
import { randomId } from "../../domain/ids.ts";
import { unfinishedCopy } from "../copy/copy.ts";
import { UNFINISHED_COPY } from "../copy/tables.ts";
import { withoutArchivedFields } from "../engine/shown-fields.ts";
import { makeFolder } from "../files/data-folder.ts";
import { openVaultOf, type Vault } from "../files/vault.ts";
import type { DatabaseFigures, SchemaUpgrade, Store } from "../port/store.ts";
import { hiddenKeysReader } from "../quiet/fields.ts";
import { auditedStores, quietStores } from "../quiet/quiet-stores.ts";
import { nameOf, type ServerAddress } from "./address.ts";
import { type Database, openConnections, type Queries } from "./database.ts";
import { deliveryQueue } from "./deliveries.ts";
import { checkEpochStays, type Epochs, openEpoch } from "./epoch.ts";
import { inboxQueues } from "./inbox.ts";
import { applyLeftOverBodies } from "./left-over-bodies.ts";
import { checkVersion, checkVersionStays, readMeta } from "./migrate.ts";
import { MIGRATIONS } from "./migrations.ts";
import { mirrorStore } from "./mirror.ts";
import { checkKeyStays, nodeStore } from "./nodes.ts";
import { pageStore } from "./pages.ts";
import { quietDatabase } from "./quiet-database.ts";
import { checkServer } from "./server-check.ts";
import { openStandby, type StandbyOptions } from "./standby.ts";
import { startError } from "./start-errors.ts";
import { migrate } from "./upgrade.ts";

export interface PostgresOptions {
  address: ServerAddress;
  /** See `ConnectionOptions`. */
  login?: () => Pick<ServerAddress, "user" | "password">;
  /** The data folder. It is made only if a new master key goes there. */
  folder?: string;
  masterKeyFile: string;
  random: (bytes: number) => Uint8Array;
  /** Returns epoch milliseconds. The server's clock must be near this clock. */
  now: () => number;
  sleep: (ms: number) => Promise<void>;
  /** How long the server may be silent. */
  deadlineMs?: number;
  /** A server from which pages are read. */
  standby?: StandbyOptions | undefined;
  /** Whether to refuse a database without data. Otherwise the tables are made. */
  mustExist?: boolean;
  /** The process id of `serve`; undefined for a command. */
  serveProcess?: number;
  /** Called after an upgrade of the schema. */
  onUpgrade?: (upgrade: SchemaUpgrade) => void;
  /** Called with the progress of an upgrade by this program or another program. */
  onUpgradeStep?: ((text: string) => void) | undefined;
  /** How long to wait while another program upgrades the database. Default: until the upgrade has ended. */
  upgradeWaitMs?: number | undefined;
}

const CONNECTIONS = 10;
/** Default of `deadlineMs`. */
export const DEADLINE_MS = 10_000;
/**
 * Deadline of a heartbeat. If the server does not answer, a node must be able to try again before its leases end
 * (src/cluster/membership.ts).
 */
const BEAT_DEADLINE_MS = 2_000;
const WAIT_MS = 5_000;
/** How long a check waits for the database. Callers of a check, such as a load balancer, do not wait for a failover. */
const CHECK_WAIT_MS = 1_000;
const SLOW_DEADLINE_MS = 600_000;
/** Time limit of one statement in an upgrade, such as the build of an index. */
export const UPGRADE_DEADLINE_MS = 86_400_000;

/**
 * Opens the engine for several machines: a PostgreSQL server, 15 or later.
 * @throws SdsError `failed` if the server, the database or the master key cannot be used; `not_found` if the database
 *   must have data but is empty
 */
export async function openPostgresStore(options: PostgresOptions): Promise<Store> {
  try {
    return await openUsable(options);
  } catch (thrown) {
    throw startError(thrown, options.address);
  }
}

async function openUsable(options: PostgresOptions): Promise<Store> {
  const { address, login, random, now, sleep, deadlineMs = DEADLINE_MS, mustExist = false } = options;
  const name = nameOf(address);
  const { isPooled } = await checkServer(address, deadlineMs, now);
  const node = randomId("node_", random);
  const isCommand = options.serveProcess === undefined;
  const shared = { address, login, isPooled, isPatient: isCommand, waitMs: WAIT_MS, sleep, name: node };
  const db = openConnections({ ...shared, connections: CONNECTIONS, deadlineMs });
  try {
    const version = await checkVersion(db, name);
    if (mustExist && version === 0) throw noData(name);
    if (version > 0 && (await readMeta(db, UNFINISHED_COPY)) !== undefined) throw unfinishedCopy(name);
    if (version < MIGRATIONS.length) {
      const upgrade = openConnections({
        ...shared,
        connections: 2,
        name: `${node} upgrade`,
        deadlineMs: UPGRADE_DEADLINE_MS,
      });
      const { upgradeWaitMs: waitMs, onUpgradeStep: onStep } = options;
      await migrate(upgrade, name, { sleep, waitMs, onStep }).finally(() => upgrade.close());
      if (version > 0) options.onUpgrade?.({ from: version, to: MIGRATIONS.length });
    }
    // If the schema is newer, a newer program has applied the left-over bodies. The newer schema may lack their tables.
    if (version <= MIGRATIONS.length) await applyLeftOverBodies(db, options);
    // Heartbeats have their own connection. Otherwise a node whose connections are all busy would count as dead.
    const beatDeadlineMs = Math.min(deadlineMs, BEAT_DEADLINE_MS);
    const one = (name: string) => ({ ...shared, connections: 1, name: `${node} ${name}`, deadlineMs: beatDeadlineMs });
    const beats = openConnections(one("beats"));
    const checks = openConnections({ ...one("checks"), waitMs: CHECK_WAIT_MS });
    // Exports use this connection, because they search all rows of a shop for data about a person.
    const slow = openConnections({ ...one("exports"), deadlineMs: SLOW_DEADLINE_MS });
    const vault = await openOwnVault(db, options);
    const epochs = await openEpoch(db, random);
    const store = storeOf({ db, beats, checks, slow }, vault, epochs, { random, node });
    if (options.standby === undefined) return store;
    const standby = await openStandby(options.standby, { ...options, ...store, db });
    const close = async () => void (await Promise.all([store.close(), standby.close()]));
    return { ...store, pagesFor: standby.pagesFor, close };
  } catch (thrown) {
    await db.close();
    throw thrown;
  }
}

export function noData(name: string): SdsError {
  return new SdsError(
    "not_found",
    `there is no data in ${name}: name another database, or add a shop with \`sds shop add alpha.myshopify.com\``,
  );
}

async function openOwnVault(db: Database, { folder, masterKeyFile: file, random }: PostgresOptions): Promise<Vault> {
  const read = () => readMeta(db, "master_key");
  // Makes the data folder for a new key. Does not make any other folder, because the path of the key may be wrong.
  const isWithin = folder !== undefined && dirname(file) === resolve(folder);
  if (isWithin && !existsSync(file) && (await read()) === undefined) makeFolder(folder);
  const add = (fingerprint: string) =>
    db.run("INSERT INTO meta (name, value) VALUES ('master_key', $1::text) ON CONFLICT DO NOTHING", [fingerprint]);
  return openVaultOf({ read, add }, file, random);
}

function storeOf(
  { db, beats, checks, slow }: Record<"db" | "beats" | "checks" | "slow", Database>,
  vault: Vault,
  epochs: Epochs,
  { random, node }: Pick<PostgresOptions, "random"> & { node: string },
): Store {
  const resources = { db: quietDatabase(db), slow: quietDatabase(slow), vault, random };
  const { deliveryLog, inboxItems, ...stores } = quietStores(resources);
  const pages = withoutArchivedFields(pageStore(db), hiddenKeysReader(quietDatabase(db)));
  return {
    ...stores,
    mirror: mirrorStore(db, random, node),
    deliveries: { ...deliveryQueue(db, random), ...deliveryLog },
    pages,
    pagesFor: () => pages,
    inbox: { ...inboxQueues(db), ...inboxItems },
    audited: (shopId, entry) => auditedStores(resources, shopId, entry),
    nodes: nodeStore({ beats, db }, { id: node, fingerprint: vault.fingerprint }),
    ...epochs,
    figures: () => figuresOf(db),
    async check() {
      await checkVersionStays(checks);
      await checkEpochStays(checks, epochs.epoch);
      await checkKeyStays(checks, vault.fingerprint);
      await checkWrites(checks);
    },
    async checkpoint() {
      // A PostgreSQL server truncates its log itself.
    },
    async close() {
      await Promise.all([db, beats, checks, slow].map((each) => each.close()));
    },
  };
}

/** Reads the figures of the database. Clients cannot see the server's log and backups. */
export async function figuresOf(queries: Queries): Promise<DatabaseFigures> {
  const size = await queries.get<{ bytes: number }>("SELECT pg_database_size(current_database())::float8 AS bytes");
  return { bytes: size?.bytes ?? 0, walBytes: null, lastBackupAt: null };
}

/**
 * Checks that the server can write. On a full disk, an update of one row may succeed, because it needs no new space. So
 * this also makes more rows than fit into `work_mem`, and the server writes these rows to a temporary file.
 */
async function checkWrites(checks: Database): Promise<void> {
  await checks.transaction(async (tx) => {
    await tx.run("SELECT set_config('work_mem', '64kB', true), set_config('temp_tablespaces', '', true)");
    await tx.run("SELECT count(*) FROM unnest(array_fill(repeat('x', 8000), ARRAY[12]))");
    await tx.run(
      `INSERT INTO meta (name, value) VALUES ('write_check', '0')
       ON CONFLICT (name) DO UPDATE SET value = CASE meta.value WHEN '0' THEN '1' ELSE '0' END`,
    );
  });
}

import { hostname } from "node:os";
import { SdsError } from "../../domain/error.ts";
import { UNFINISHED_COPY } from "../copy/tables.ts";
import type { NotedServe, OpenedCheckup, StoreProblem } from "../port/checkup.ts";
import { shopCheckup } from "../quiet/shop-checkup.ts";
import { nameOf, type ServerAddress } from "./address.ts";
import { type Database, openConnections, type Queries } from "./database.ts";
import { checkVersion, readMeta } from "./migrate.ts";
import { MIGRATIONS } from "./migrations.ts";
import { listLocations } from "./nodes.ts";
import { figuresOf, noData } from "./postgres-store.ts";
import { quietDatabase } from "./quiet-database.ts";
import { READ_CLOCK } from "./server-check.ts";
import { startError } from "./start-errors.ts";

const CONNECTIONS = 2;
const DEADLINE_MS = 4_000;
const WAIT_MS = 3_000;

/** Opens a database for reading only. The checkup runs only SELECT. */
export async function openPostgresCheckup(
  address: ServerAddress,
  sleep: (ms: number) => Promise<void>,
): Promise<OpenedCheckup> {
  const name = nameOf(address);
  // It is unknown whether there is a pooler. Connections with `isPooled` work in both cases.
  const options = {
    address,
    deadlineMs: DEADLINE_MS,
    isPooled: true,
    connections: CONNECTIONS,
    waitMs: WAIT_MS,
    sleep,
  };
  const db = openConnections(options);
  try {
    await db.get("SELECT 1");
  } catch (thrown) {
    await db.close();
    return { problem: "unreachable", detail: detailOf(startError(thrown, address)) };
  }
  try {
    const version = await checkVersion(db, name);
    if (version === 0) return await refused(db, "missing", noData(name).message);
    if ((await readMeta(db, UNFINISHED_COPY)) !== undefined)
      return await refused(db, "unfinished", `${name} has an unfinished copy`);
    return await checkupOf(db, version);
  } catch (thrown) {
    const version = Number(await readMeta(db, "schema").catch(() => 0));
    return refused(db, version > MIGRATIONS.length ? "newer" : "unusable", detailOf(startError(thrown, address)));
  }
}

async function refused(db: Database, problem: StoreProblem, detail: string): Promise<OpenedCheckup> {
  await db.close();
  return { problem, detail };
}

function detailOf(thrown: unknown): string {
  return thrown instanceof SdsError ? thrown.message : "the database cannot be read";
}

async function checkupOf(db: Database, version: number): Promise<OpenedCheckup> {
  const isCurrent = version >= MIGRATIONS.length;
  return {
    checkup: {
      schema: { version, isCurrent },
      sealedWith: await readMeta(db, "master_key"),
      isReplicated: false,
      figures: () => figuresOf(db),
      serves: () => servesHere(db),
      clock: async () => (await db.get<{ time: number }>(READ_CLOCK))?.time ?? null,
      unsafeSettings: async () => {
        const unsafe = await db.get("SELECT FROM pg_settings WHERE name = 'synchronous_commit' AND setting = 'off'");
        return unsafe === undefined ? [] : ["synchronous_commit=off"];
      },
      shops: shopCheckup(quietDatabase(db)),
      close: () => db.close(),
    },
  };
}

/** Lists the nodes on this machine. */
async function servesHere(db: Queries): Promise<NotedServe[]> {
  const nodes = await listLocations(db);
  return nodes.filter(({ host }) => host === hostname()).map(({ address, processId }) => ({ address, processId }));
}

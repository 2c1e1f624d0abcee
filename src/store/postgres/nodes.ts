import { SdsError } from "../../domain/error.ts";
import { PARTITIONS, partitionOf } from "../../domain/shop.ts";
import type { LiveNode, NodeDescription, NodeStatus, NodeStore } from "../port/nodes.ts";
import { StoreError } from "../port/store-error.ts";
import type { Database, Queries } from "./database.ts";
import { readMeta } from "./migrate.ts";

/** SQL of the database's clock in epoch milliseconds. */
const DATABASE_NOW = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
/** A node without a heartbeat for this long counts as dead. */
const ALIVE_MS = 5_000;
const ALIVE_NODES = `SELECT id, url FROM nodes WHERE heartbeat_at > ${DATABASE_NOW} - ${ALIVE_MS}`;
/** How long a dead node stays listed. */
const REMEMBERED_MS = 24 * 3_600_000;

/** Whether a `serve` uses the database, or was killed within the last seconds. */
export async function isSomeNodeAlive({ all }: Pick<Queries, "all">): Promise<boolean> {
  const alive = await all<{ id: string }>(`${ALIVE_NODES} LIMIT 1`);
  return alive.length > 0;
}

/** Refuses a node's commit for shops whose lease it lost to another node. @throws StoreError `conflict` */
export async function checkLeases(tx: Queries, node: string, shopIds: readonly number[]): Promise<void> {
  if (shopIds.length === 0) return;
  const partitions = [...new Set(shopIds.map(partitionOf))];
  // A lease that has expired is accepted: while the lease names this node, no other node has begun to work.
  const leased = await tx.get<{ n: number }>(
    "SELECT count(*)::float8 AS n FROM work_leases WHERE partition = ANY($1::bigint[]) AND node = $2::text",
    [partitions, node],
  );
  if (leased?.n !== partitions.length)
    throw new StoreError("conflict", new Error("another node has taken over the work for the shop"));
}

type NodeLocation = Pick<NodeDescription, "address" | "host" | "processId">;

/** Formats address, host and process for one column, because nodes of older versions know only this column. */
function formatLocation({ address, host, processId }: NodeLocation): string {
  return host === null ? address : `${address} on ${host}, process ${processId}`;
}

function parseLocation(text: string): NodeLocation {
  const [, address = text, host = null, processId] = /^(\S+) on (.+), process (\d+)$/.exec(text) ?? [];
  return { address, host, processId: processId === undefined ? null : Number(processId) };
}

/** Lists where live nodes listen. */
export async function listLocations({ all }: Pick<Queries, "all">): Promise<NodeLocation[]> {
  const live = await all<{ address: string }>(
    `SELECT address FROM nodes WHERE heartbeat_at > ${DATABASE_NOW} - ${ALIVE_MS}`,
  );
  return live.map(({ address }) => parseLocation(address));
}

/**
 * Refuses a node whose master key is not the database's. The node could not open secrets, and would seal new secrets
 * with a key that other nodes do not have.
 * @throws SdsError `unavailable`
 */
export async function checkKeyStays(queries: Queries, fingerprint: string): Promise<void> {
  if ((await readMeta(queries, "master_key")) === fingerprint) return;
  throw new SdsError("unavailable", "The master key was changed: give this node the new file, and start it again.");
}

interface OwnNode {
  id: string;
  /** Fingerprint of this node's master key. */
  fingerprint: string;
}

/** @param beats connections for heartbeats and leases only, so that these never wait for other work */
export function nodeStore({ beats, db }: Record<"beats" | "db", Database>, { id, fingerprint }: OwnNode): NodeStore {
  let described: Pick<NodeDescription, "version" | "url"> & { location: string } = {
    ...{ location: "", version: "", url: null },
  };

  return {
    id,

    describe({ version, url, ...location }) {
      described = { location: formatLocation(location), version, url };
    },

    async beat() {
      // A separate statement: one statement that locks both `meta` and `nodes` could deadlock with an upgrade.
      await checkKeyStays(beats, fingerprint);
      const alive = await beats.all<LiveNode>(
        `WITH own AS (
           INSERT INTO nodes (id, address, version, url, started_at, heartbeat_at)
           VALUES ($1::text, $2::text, $3::text, $5::text, ${DATABASE_NOW}, ${DATABASE_NOW})
           ON CONFLICT (id) DO UPDATE SET heartbeat_at = excluded.heartbeat_at, address = excluded.address,
             version = excluded.version, url = excluded.url
         ), old AS (DELETE FROM nodes WHERE heartbeat_at < ${DATABASE_NOW} - $4::bigint)
         ${ALIVE_NODES} AND id <> $1::text`,
        [id, described.location, described.version, REMEMBERED_MS, described.url],
      );
      // The statement does not see its own insert, so this node is added here.
      return [{ id, url: described.url }, ...alive];
    },

    async lease({ wanted, held, released }, leaseMs) {
      if (released.length > 0)
        await beats.run("UPDATE work_leases SET until = 0 WHERE node = $1::text AND partition = ANY($2::bigint[])", [
          id,
          released,
        ]);
      const own = await beats.all<{ partition: number }>(
        "SELECT partition::float8 AS partition FROM work_leases WHERE node = $1::text AND until <> 0",
        [id],
      );
      const asked = new Set([...wanted, ...held]);
      const leased = own.map(({ partition }) => partition).filter((partition) => asked.has(partition));
      const lacking = wanted.filter((partition) => !leased.includes(partition));
      return lacking.length === 0 ? leased : [...leased, ...(await take(beats, id, lacking, leaseMs))];
    },

    async leave() {
      await beats.run("UPDATE work_leases SET until = 0 WHERE node = $1::text", [id]);
      await beats.run("DELETE FROM nodes WHERE id = $1::text", [id]);
    },

    async status() {
      const nodes = await db.all<Omit<NodeStatus, keyof NodeLocation> & { location: string }>(
        `SELECT nodes.id, address AS location, version, url,
           started_at::float8 AS "startedAt", heartbeat_at::float8 AS "heartbeatAt",
           heartbeat_at > ${DATABASE_NOW} - $1::bigint AS "isAlive",
           (SELECT count(*) FROM shops JOIN work_leases ON partition = shops.id % $2::bigint
            WHERE node = nodes.id AND until <> 0 AND removal_started_at IS NULL)::float8 AS shops
         FROM nodes ORDER BY started_at, nodes.id`,
        [ALIVE_MS, PARTITIONS],
      );
      const total = await db.get<{ n: number }>("SELECT coalesce(sum(hand_overs), 0)::float8 AS n FROM work_leases");
      const handOvers = total?.n ?? 0;
      return { nodes: nodes.map(({ location, ...node }) => ({ ...node, ...parseLocation(location) })), handOvers };
    },
  };
}

/**
 * Takes the partitions that are free: never leased, released, or leased by a node that sent no heartbeat for `leaseMs`.
 * A heartbeat renews all leases of its node. `until` is 0 for a released lease. Nodes of older versions renew `until`,
 * and take a partition when this time has passed.
 * @returns the partitions that this node has taken
 */
async function take(db: Database, id: string, partitions: readonly number[], leaseMs: number): Promise<number[]> {
  const taken = await db.all<{ partition: number }>(
    `INSERT INTO work_leases AS lease (partition, node, until)
     SELECT lacking, $1::text, ${DATABASE_NOW} + $3::bigint FROM unnest($2::bigint[]) AS lacking ORDER BY lacking
     ON CONFLICT (partition) DO UPDATE SET node = excluded.node, until = excluded.until,
       hand_overs = lease.hand_overs + CASE WHEN lease.node = excluded.node THEN 0 ELSE 1 END
     WHERE lease.until = 0 OR NOT EXISTS (
       SELECT FROM nodes WHERE nodes.id = lease.node AND heartbeat_at >= ${DATABASE_NOW} - $3::bigint)
     RETURNING partition::float8 AS partition`,
    [id, partitions, leaseMs],
  );
  return taken.map(({ partition }) => partition);
}

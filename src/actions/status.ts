import { messageOf } from "../domain/error.ts";
import { createSlots } from "../lib/slots.ts";
import type { NodeStatus } from "../store/port/nodes.ts";
import type { Store } from "../store/port/store.ts";

/** What waits for a shop, and what went wrong. */
export interface ShopWork {
  domain: string;
  /** Deliveries that were not attempted yet, that wait for another attempt, and that were given up. */
  pending: number;
  retrying: number;
  dead: number;
  /** Platform webhooks that wait, and that could not be processed. */
  inboxWaiting: number;
  inboxFailed: number;
  /** When the mirror was last compared with the platform, epoch milliseconds; null if never. */
  reconciledAt: number | null;
}

export interface ServiceStatus {
  /** Why no `serve` answers; null if one does. */
  reason: string | null;
  shops: ShopWork[];
  /** null for a database that only one machine can use. */
  cluster: { nodes: NodeStatus[]; handOvers: number } | null;
}

interface Dependencies {
  store: Store;
  fetch: typeof fetch;
}

const HEALTH_TIMEOUT_MS = 2_000;
/** How many shops are looked at at once. */
const SHOPS_AT_ONCE = 10;

/** Shows whether the service runs, and the work of each shop. */
export async function serviceStatus({ store, fetch }: Dependencies): Promise<ServiceStatus> {
  const cluster = (await store.nodes?.status()) ?? null;
  const reason =
    cluster === null
      ? await whyNotServing(await store.sessions.address(), fetch)
      : cluster.nodes.some(({ isAlive }) => isAlive)
        ? null
        : "no node is alive";
  const slots = createSlots(SHOPS_AT_ONCE);
  const listed = await store.shops.list();
  const shops = await Promise.all(listed.map((shop) => slots.run(() => workOf(store, shop))));
  return { reason, shops, cluster };
}

async function whyNotServing(address: string | undefined, fetch: Dependencies["fetch"]): Promise<string | null> {
  if (address === undefined) return "`sds serve` does not run";
  try {
    const signal = AbortSignal.timeout(HEALTH_TIMEOUT_MS);
    const { ok, status } = await fetch(`${address}/healthz`, { signal, proxy: false } as RequestInit);
    return ok ? null : `${address} answers with ${status}`;
  } catch (thrown) {
    return `${address} does not answer: ${messageOf(thrown)}`;
  }
}

async function workOf(
  { deliveries, inbox, syncs }: Store,
  { id, domain }: { id: number; domain: string },
): Promise<ShopWork> {
  const [waiting, dead, items, reconciliation] = await Promise.all([
    deliveries.countWaiting(id),
    deliveries.countDead(id, 0),
    inbox.count(id),
    syncs.lastComplete(id, "changes"),
  ]);
  return {
    domain,
    ...waiting,
    dead,
    inboxWaiting: items.waiting,
    inboxFailed: items.failed,
    reconciledAt: reconciliation?.endedAt ?? null,
  };
}

import { SdsError } from "../../domain/error.ts";
import type { ContractRead } from "../../domain/platform/contract-read.ts";
import type { MirrorRecord } from "../../domain/records/platform-records.ts";
import type { Shop } from "../../domain/shop.ts";
import type { KeyedMutex } from "../../lib/keyed-mutex.ts";
import type { RecordWriter } from "../../mirror/record-writer.ts";
import type { ConnectionStore } from "../../store/port/connections.ts";
import type { MirrorStore } from "../../store/port/mirror.ts";
import type { ContractNode, ContractWithAttempts } from "../api/operations/contracts.ts";
import type { PlatformClock } from "../api/platform-clock.ts";
import { PlatformError } from "../api/platform-error.ts";
import { type Evidence, isShown, isStored, MAX_LAG_MS } from "./evidence.ts";
import { readContractsOf } from "./orders.ts";
import { type PageCycles, readContractPage, readPageCycles } from "./page-reader.ts";
import { type ContractSource, readContract } from "./reader.ts";
import { dateFrom } from "./values.ts";

/** How many rows changed, and how many events were queued. */
interface ChangeCounts {
  changed: number;
  events: number;
}

/** The changes for which events are queued: all changes, no changes, or changes since the shop was connected. */
export type EventScope = "all" | "none" | "since_connected";

interface SubmitOptions {
  events?: EventScope;
  /** Inbox numbers of the platform webhooks that caused the records. The same commit removes these webhooks. */
  inboxNumbers?: readonly number[];
  reads?: readonly ContractRead[];
}

/** A hint that a contract or one of its orders changed, at `triggeredAt` or before. */
export interface ChangeHint {
  /** What changed: the contract, or one of its orders. */
  of: "contract" | "order";
  /** Gids of the orders that the webhooks name. They are read again even if the mirror has them as charged. */
  orders: readonly string[];
  /** When the newest webhook was triggered, epoch milliseconds. */
  triggeredAt: number;
  /** The facts that a reading must show. */
  evidence?: Evidence;
  /** When we learned of the change, epoch milliseconds. By default, `triggeredAt`. */
  learnedAt?: number;
}

/** Contracts of one page of the platform. */
export interface ContractPage {
  nodes: readonly ContractWithAttempts[];
  /** When the page was requested, epoch milliseconds. */
  requestedAt: number;
  /** The result of `pageCycles`, if the cycles were read in advance. */
  cycles?: PageCycles;
}

/** Brings contracts of the platform into the mirror. A contract is read by one caller at a time. */
export interface ContractRefresher {
  /**
   * Reads and submits a contract, unless an earlier reading has shown the change.
   * @throws PlatformError `outdated` if the reading does not show the change yet. The webhooks stay in the inbox then.
   */
  refreshUnlessKnown(
    shop: Shop,
    contractGid: string,
    hint: ChangeHint,
    inboxNumbers?: readonly number[],
  ): Promise<ChangeCounts>;
  /** Reads the cycles of a page of contracts before `loadPage` needs them. @throws PlatformError */
  pageCycles(shop: Shop, nodes: readonly ContractWithAttempts[]): Promise<PageCycles>;
  /** Loads a page into the mirror. @returns each contract's changes and orders, or its error @throws PlatformError */
  loadPage(
    shop: Shop,
    page: ContractPage,
    eventsOf: (node: ContractNode) => EventScope,
  ): Promise<PromiseSettledResult<ChangeCounts & { orders: number }>[]>;
  /** Returns the contracts of a changed order. Most orders of a shop belong to no contract. @throws PlatformError */
  contractsOfOrder(shop: Shop, orderGid: string, hint: ChangeHint): Promise<string[]>;
  /** See `MirrorStore`. */
  contractsWithoutRate: MirrorStore["contractsWithoutRate"];
  newestRate: MirrorStore["newestRate"];
  /** Submits records to the mirror. @throws SdsError `bad_record` for records that are not valid */
  submit(shop: Shop, records: readonly MirrorRecord[], options?: SubmitOptions): Promise<ChangeCounts>;
}

interface Dependencies {
  source: ContractSource;
  /** Shared by all readers of contracts, so that a contract is read by one caller at a time. */
  mutex: KeyedMutex;
  recordWriter: Pick<RecordWriter, "submit">;
  connections: Pick<ConnectionStore, "find">;
  mirror: Pick<
    MirrorStore,
    "contractOf" | "contractReads" | "contractsOfOrder" | "ordersOf" | "contractsWithoutRate" | "newestRate"
  >;
  platformClock: Pick<PlatformClock, "now" | "mark">;
}

/** Tolerance for times of the platform: they are whole seconds, and its clock may differ a little. */
export const CLOCK_SLACK_MS = 2_000;

export function createContractRefresher(dependencies: Dependencies): ContractRefresher {
  const { source, mutex, mirror } = dependencies;
  const keyOf = (shop: Shop, contractGid: string) => `${shop.id} ${contractGid}`;
  return {
    refreshUnlessKnown: (shop, contractGid, hint, inboxNumbers = []) =>
      mutex.run([keyOf(shop, contractGid)], async () =>
        (await alreadyHas(dependencies, shop, contractGid, hint))
          ? submit(dependencies, shop, [], { inboxNumbers })
          : refresh(dependencies, shop, contractGid, hint, inboxNumbers),
      ),
    loadPage(shop, page, eventsOf) {
      const keys = page.nodes.map(({ id }) => keyOf(shop, id));
      return mutex.run(keys, () => loadPage(dependencies, shop, page, eventsOf));
    },
    pageCycles: (shop, nodes) => readPageCycles(source, shop, nodes),
    async contractsOfOrder(shop, orderGid, hint) {
      const known = await mirror.contractsOfOrder(shop, orderGid);
      if (known.length > 0) return known;
      const read = await readContractsOf(source, shop, orderGid);
      const isExpected = hint.evidence?.orders?.[orderGid] !== undefined;
      if (read === undefined && isExpected && mayBeLate(dependencies, hint)) throw outdated("an order");
      return read ?? [];
    },
    contractsWithoutRate: mirror.contractsWithoutRate,
    newestRate: mirror.newestRate,
    submit: (shop, records, options) => submit(dependencies, shop, records, options),
  };
}

async function refresh(
  dependencies: Dependencies,
  shop: Shop,
  contractGid: string,
  hint: ChangeHint,
  inboxNumbers: readonly number[],
): Promise<ChangeCounts> {
  const { source, platformClock } = dependencies;
  const mark = platformClock.mark();
  const read = await readContract(source, shop, contractGid, hint.orders);
  const isNew = isShown(hint.evidence ?? {}, read, platformClock.now());
  const reads: ContractRead[] = [];
  if (read.node !== undefined) {
    const updatedAt = Date.parse(dateFrom(read.node.updatedAt));
    const orders = new Map(hint.orders.map((gid): [string, number | null] => [gid, null]));
    for (const [gid, order] of read.orders) orders.set(gid, Date.parse(order.updatedAt ?? "") || null);
    // An outdated reading shows the contract's changes up to `updatedAt`, but may lack changes of its orders.
    const shown = isNew ? { beganAt: mark(), orders } : { beganAt: updatedAt, orders: new Map<string, null>() };
    const { renewals, renewalsBefore, currency } = read;
    reads.push({ contract: contractGid, updatedAt, ...shown, renewals, renewalsBefore, currency });
  }
  if (isNew || !mayBeLate(dependencies, hint)) return submit(dependencies, shop, read.records, { inboxNumbers, reads });
  await submit(dependencies, shop, read.records, { reads });
  throw outdated("a contract");
}

/** Whether a replica may still lag. After its maximum lag, an object that is not shown is treated as gone. */
function mayBeLate({ platformClock }: Dependencies, { triggeredAt, learnedAt = triggeredAt }: ChangeHint): boolean {
  return platformClock.now() - learnedAt < MAX_LAG_MS;
}

function outdated(what: string): PlatformError {
  return new PlatformError("outdated", `the platform does not show the last change of ${what} yet`);
}

/** Whether a stored reading began after the change, and so has shown the change. */
async function alreadyHas(
  { mirror, platformClock }: Dependencies,
  shop: Shop,
  contractGid: string,
  { of, orders, triggeredAt, evidence = {} }: ChangeHint,
): Promise<boolean> {
  const stored = (await mirror.contractReads(shop, [contractGid])).get(contractGid);
  // For a hint about a contract, `isStored` checks the orders that have evidence. For every other order, the order's
  // own stored reading must have begun after the change.
  const shown = of === "order" ? [] : [...Object.keys(evidence.orders ?? {}), ...(evidence.charges ?? [])];
  const readings = orders.flatMap((gid) => (shown.includes(gid) ? [] : [stored?.orders[gid]]));
  const times = [...(of === "contract" ? [stored] : []), ...readings].map((reading) => reading?.beganAt);
  // A time in the future was stored before the clock was set back, so it is ignored.
  const isLater = times.every(
    (at) => at !== undefined && at <= platformClock.now() && triggeredAt < at - CLOCK_SLACK_MS,
  );
  if (stored === undefined || !isLater) return false;
  const [contract, mirrored] = await Promise.all([
    evidence.revision === undefined ? undefined : mirror.contractOf(shop, contractGid),
    evidence.charges === undefined ? new Map() : mirror.ordersOf(shop, contractGid),
  ]);
  const has = { ...stored, revision: contract?.revision, mirrored, waitedMs: stored.beganAt - triggeredAt };
  return isStored(evidence, has);
}

async function loadPage(
  dependencies: Dependencies,
  shop: Shop,
  { nodes, requestedAt, cycles }: ContractPage,
  eventsOf: (node: ContractNode) => EventScope,
): Promise<PromiseSettledResult<ChangeCounts & { orders: number }>[]> {
  const results = await readContractPage(dependencies.source, shop, nodes, cycles);
  return Promise.allSettled(
    nodes.map(async (node, index) => {
      const result = results[index];
      if (result?.status !== "fulfilled") throw result?.reason;
      const { records, renewals, renewalsBefore, currency } = result.value;
      const orders = records.filter(({ type }) => type === "billing_cycle").length;
      // The page's time is valid only for the contract. The stage may supply older orders of the contract.
      const updatedAt = Date.parse(node.updatedAt);
      const read = { contract: node.id, beganAt: requestedAt, updatedAt, orders: new Map() };
      const reads = [{ ...read, renewals, renewalsBefore, currency }];
      const changes = await submit(dependencies, shop, records, { events: eventsOf(node), reads });
      if (!isShown({}, result.value, dependencies.platformClock.now())) throw outdated("a contract");
      return { orders, ...changes };
    }),
  );
}

async function submit(
  dependencies: Dependencies,
  shop: Shop,
  records: readonly MirrorRecord[],
  { events = "since_connected", inboxNumbers = [], reads = [] }: SubmitOptions = {},
): Promise<ChangeCounts> {
  const eventsSince = await eventsSinceOf(dependencies, shop, events);
  const result = await dependencies.recordWriter.submit({ shop, records, inboxNumbers, reads, eventsSince });
  if ("refused" in result) {
    const { index, reason } = result.refused;
    throw new SdsError("bad_record", `the platform's ${records[index]?.type ?? "record"} ${reason}`);
  }
  return { changed: result.changed, events: result.events };
}

/** See `Submission.eventsSince`. */
async function eventsSinceOf({ connections }: Dependencies, shop: Shop, events: EventScope): Promise<number> {
  if (events === "none") return Number.POSITIVE_INFINITY;
  const connection = events === "all" ? undefined : await connections.find(shop.id);
  return connection === undefined ? 0 : connection.eventsSince - CLOCK_SLACK_MS;
}

import { messageOf, SdsError } from "../domain/error.ts";
import type { MirrorRecord } from "../domain/platform-records.ts";
import type { Shop } from "../domain/shop.ts";
import { NO_COUNTS, type SyncCounts, type SyncKind, type SyncRun } from "../domain/sync.ts";
import { isoUtc } from "../domain/time.ts";
import type { Log } from "../log.ts";
import type { Door } from "../mirror/door.ts";
import type { SyncStore } from "../store/syncs.ts";
import type { AdminApi } from "./admin-api.ts";
import type { ContractReader } from "./contract-reader.ts";
import type { Lanes } from "./lanes.ts";
import {
  ALL_CONTRACTS,
  ALL_CUSTOMERS,
  ATTEMPTS,
  CONTRACTS,
  type ContractNode,
  CUSTOMERS,
  CUSTOMERS_COUNT,
  type CustomerNode,
  NEWEST_CONTRACT,
  type Operation,
  ORDER_LINES,
  ORDERS,
  type OrderOfContracts,
} from "./operations.ts";
import { nextCursor, type Page, restOf } from "./paging.ts";
import { PlatformError } from "./platform-error.ts";
import { customerRecord } from "./translate.ts";

export interface SyncProgress {
  counts: SyncCounts;
  stage: SyncRun["stage"];
  /** Of the stage, 0 to 1; undefined where nobody can tell. */
  done: number | undefined;
}

export interface SyncParts {
  api: AdminApi;
  reader: ContractReader;
  lanes: Lanes;
  door: Door;
  syncs: SyncStore;
  now: () => number;
  log: Log;
}

/**
 * How far back before the last complete run a run of changes begins: what was being written then, and clocks that differ. Milliseconds.
 */
const OVERLAP = 5 * 60_000;

/** Loads a shop whole, or repairs what changed, through the one door. */
export class Synchronizer {
  private readonly parts: SyncParts;

  constructor(parts: SyncParts) {
    this.parts = parts;
  }

  /**
   * Loads everything there is. A run that was cut off goes on at the page that it had reached. Nothing is queued for what it loads unless `events` says so; what began
   * after the run did is news all the same.
   * @throws PlatformError where the platform cannot be asked; the run can be taken up again
   */
  async full(shop: Shop, options: { events: boolean }, onProgress: (progress: SyncProgress) => void = () => {}): Promise<SyncCounts> {
    const { syncs, now } = this.parts;
    const begun = await syncs.unfinished(shop.id, "full");
    const run = begun ?? { startedAt: now(), since: null, events: options.events, stage: "customers" as const, cursor: null, counts: NO_COUNTS };
    const save = (next: Partial<SyncRun>) => {
      Object.assign(run, next);
      return syncs.save(shop.id, "full", run);
    };
    await save({ events: options.events });
    if (run.stage === "customers") {
      const total = (await this.parts.api.ask(shop, CUSTOMERS_COUNT, {})).customersCount?.count;
      for await (const { nodes, endCursor } of this.pages(shop, ALL_CUSTOMERS, ({ customers }) => customers, run.cursor, null)) {
        await save({ cursor: endCursor, counts: add(run.counts, await this.loadCustomers(shop, nodes, !run.events)) });
        onProgress({ counts: run.counts, stage: run.stage, done: total ? run.counts.customers / total : undefined });
      }
      await save({ stage: "subscriptions", cursor: null });
    }
    const newest = (await this.parts.api.ask(shop, NEWEST_CONTRACT, {})).subscriptionContracts.nodes[0]?.createdAt;
    let oldest: number | undefined;
    for await (const { nodes, endCursor } of this.pages(shop, ALL_CONTRACTS, ({ subscriptionContracts }) => subscriptionContracts, run.cursor, null)) {
      const applied = await Promise.all(nodes.map((node) => this.load(shop, node, run)));
      await save({ cursor: endCursor, counts: applied.reduce(add, run.counts) });
      const at = Date.parse(nodes.at(-1)?.createdAt ?? "");
      oldest ??= Date.parse(nodes[0]?.createdAt ?? "");
      onProgress({ counts: run.counts, stage: run.stage, done: newest === undefined ? undefined : (at - oldest) / (Date.parse(newest) - oldest) });
    }
    await syncs.complete(shop.id, "full", run, now());
    return run.counts;
  }

  /**
   * Repairs what changed since a time, or since the last run that came to its end, and queues the events that were missed.
   * @throws PlatformError; SdsError `conflict` for a shop that was never loaded
   */
  async changes(shop: Shop, since: number | undefined, onProgress: (progress: SyncProgress) => void = () => {}): Promise<SyncCounts> {
    const { syncs, now } = this.parts;
    const from = since ?? (await this.lastStart(shop)) - OVERLAP;
    const run: SyncRun = { startedAt: now(), since: from, events: true, stage: "customers", cursor: null, counts: NO_COUNTS };
    const updated = `updated_at:>='${isoUtc(from)}'`;
    const read = new Set<string>();
    const note = (counts: Partial<SyncCounts>) => {
      run.counts = add(run.counts, counts);
      onProgress({ counts: run.counts, stage: run.stage, done: undefined });
    };

    for await (const { nodes } of this.pages(shop, CUSTOMERS, ({ customers }) => customers, null, updated)) {
      note(await this.loadCustomers(shop, nodes, false));
    }
    run.stage = "subscriptions";
    for await (const { nodes } of this.pages(shop, CONTRACTS, ({ subscriptionContracts }) => subscriptionContracts, null, updated)) {
      const applied = await Promise.all(nodes.map((node) => this.load(shop, node, run)));
      for (const [index, { id }] of nodes.entries()) {
        read.add(id);
        note(applied[index] ?? {});
      }
    }
    run.stage = "orders";
    for await (const { nodes } of this.pages(shop, ORDERS, ({ orders }) => orders, null, updated)) {
      for (const order of nodes) {
        for (const contract of await this.contractsOf(shop, order)) note(await this.orSkip(shop, contract, () => this.refresh(shop, contract, [order.id])));
      }
    }
    run.stage = "attempts";
    for await (const { nodes } of this.pages(
      shop,
      ATTEMPTS,
      ({ subscriptionBillingAttempts }) => subscriptionBillingAttempts,
      null,
      `created_at:>='${isoUtc(from)}'`,
    )) {
      const contracts = new Set(nodes.map(({ subscriptionContract }) => subscriptionContract.id));
      for (const contract of contracts.difference(read)) {
        read.add(contract);
        note(await this.orSkip(shop, contract, () => this.refresh(shop, contract, [])));
      }
    }
    await syncs.complete(shop.id, "changes", run, now());
    return run.counts;
  }

  /** Reads a contract whole and applies it. @param orders gids of orders that changed */
  async refresh(shop: Shop, contract: string, orders: readonly string[], settles: readonly number[] = []): Promise<Partial<SyncCounts>> {
    const { lanes, reader } = this.parts;
    return lanes.run(`${shop.id} ${contract}`, async () => this.submit(shop, await reader.read(shop, contract, orders), false, settles));
  }

  private async loadCustomers(shop: Shop, nodes: CustomerNode[], quiet: boolean): Promise<Partial<SyncCounts>> {
    const records: MirrorRecord[] = [];
    let skipped = 0;
    for (const node of nodes) {
      const read = await this.orSkip(shop, node.id, async () => {
        records.push(customerRecord(node));
        return {};
      });
      skipped += read.skipped ?? 0;
    }
    return { customers: records.length, skipped, ...(await this.submit(shop, records, quiet)) };
  }

  /** One thing that makes no sense must not keep all the others out for ever. */
  private async orSkip(shop: Shop, gid: string, work: () => Promise<Partial<SyncCounts>>): Promise<Partial<SyncCounts>> {
    try {
      return await work();
    } catch (thrown) {
      if (!isSenseless(thrown)) throw thrown;
      this.parts.log.warn("the platform has something that cannot be mirrored", { shop: shop.domain, id: gid, error: messageOf(thrown) });
      return { skipped: 1 };
    }
  }

  private load(shop: Shop, node: ContractNode, run: SyncRun): Promise<Partial<SyncCounts>> {
    return this.orSkip(shop, node.id, () => this.loadContract(shop, node, run));
  }

  private async loadContract(shop: Shop, node: ContractNode, run: SyncRun): Promise<Partial<SyncCounts>> {
    const { lanes, reader } = this.parts;
    return lanes.run(`${shop.id} ${node.id}`, async () => {
      const records = await reader.readFrom(shop, node);
      const quiet = !run.events && Date.parse(node.createdAt) < run.startedAt;
      const orders = records.filter((record) => record.type === "billing_cycle").length;
      return { subscriptions: 1, orders, ...(await this.submit(shop, records, quiet)) };
    });
  }

  private async submit(shop: Shop, records: MirrorRecord[], quiet: boolean, settles: readonly number[] = []): Promise<{ changed: number; events: number }> {
    const applied = await this.parts.door.submit({ shop, records, quiet, settles });
    if ("refused" in applied) throw new SdsError("bad_record", `the platform's ${records[applied.refused.index]?.type ?? "record"} ${applied.refused.reason}`);
    return { changed: applied.changed, events: applied.events };
  }

  private async lastStart(shop: Shop): Promise<number> {
    const kinds: SyncKind[] = ["full", "changes"];
    const runs = await Promise.all(kinds.map((kind) => this.parts.syncs.lastComplete(shop.id, kind)));
    const starts = runs.flatMap((run) => (run === undefined ? [] : [run.startedAt]));
    if (starts.length === 0) throw new SdsError("conflict", `${shop.domain} was never loaded whole: run \`sds sync ${shop.domain}\` first`);
    return Math.max(...starts);
  }

  async contractsOf(shop: Shop, order: OrderOfContracts): Promise<Set<string>> {
    const more = await restOf<{ contract: { id: string } | null }>(order.lineItems, async (after) => {
      const answer = await this.parts.api.ask(shop, ORDER_LINES, { id: order.id, after });
      return answer.order?.lineItems;
    });
    const contracts = [...order.lineItems.nodes, ...more].map(({ contract }) => contract);
    return new Set(contracts.flatMap((contract) => (contract === null ? [] : [contract.id])));
  }

  /** Page by page; the next one is asked for while the caller works on this one. */
  private async *pages<A, T>(
    shop: Shop,
    operation: Operation<{ after: string | null; query: string | null }, A>,
    pageIn: (answer: A) => Page<T>,
    cursor: string | null,
    query: string | null,
  ): AsyncGenerator<{ nodes: T[]; endCursor: string | null }> {
    const ask = async (after: string | null) => pageIn(await this.parts.api.ask(shop, operation, { after, query }));
    let next: Promise<Page<T>> | undefined = ask(cursor);
    for (let after = cursor; next !== undefined; ) {
      const page: Page<T> = await next;
      const behind = nextCursor(page, after);
      next = behind === undefined ? undefined : ask(behind);
      // It is awaited in its turn; if the caller's work fails before, nobody else looks at it.
      next?.catch(() => undefined);
      yield { nodes: page.nodes, endCursor: page.pageInfo.endCursor };
      after = behind ?? null;
    }
  }
}

/** Whether the fault is in what one thing says, a part missing that the platform promises for instance, and not in the asking or the keeping. */
function isSenseless(thrown: unknown): boolean {
  if (thrown instanceof SdsError) return thrown.code === "bad_record";
  return thrown instanceof TypeError || (thrown instanceof PlatformError && thrown.reason === "refused");
}

function add(counts: SyncCounts, more: Partial<SyncCounts>): SyncCounts {
  const { customers = 0, subscriptions = 0, orders = 0, changed = 0, events = 0, skipped = 0 } = more;
  return {
    customers: counts.customers + customers,
    subscriptions: counts.subscriptions + subscriptions,
    orders: counts.orders + orders,
    changed: counts.changed + changed,
    events: counts.events + events,
    skipped: counts.skipped + skipped,
  };
}

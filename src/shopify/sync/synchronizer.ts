import { messageOf, SdsError } from "../../domain/error.ts";
import type { CustomerRecord } from "../../domain/records.ts";
import type { Shop } from "../../domain/shop.ts";
import { NO_COUNTS, type SyncCounts, type SyncKind, type SyncRun } from "../../domain/sync.ts";
import { isoUtc } from "../../lib/time.ts";
import type { Log } from "../../log.ts";
import type { InboxStore } from "../../store/inbox.ts";
import type { SyncStore } from "../../store/syncs.ts";
import type { GraphqlClient } from "../api/graphql-client.ts";
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
  ORDERS,
} from "../api/operations.ts";
import { nextCursor, type Page } from "../api/paging.ts";
import { PlatformError } from "../api/platform-error.ts";
import type { ContractMirror } from "../contracts/contract-mirror.ts";
import { customerRecord } from "../contracts/translate.ts";
import { contractWebhook } from "../inbox/payload.ts";

export interface SyncProgress {
  counts: SyncCounts;
  stage: SyncRun["stage"];
  /** Of the stage, 0 to 1; undefined where nobody can tell. */
  done: number | undefined;
}

interface SyncParts {
  client: GraphqlClient;
  contracts: ContractMirror;
  syncs: SyncStore;
  inbox: InboxStore;
  now: () => number;
  log: Log;
}

/** How far back before the last complete run a run of changes begins: what was being written then, and clocks that differ. Milliseconds. */
const OVERLAP = 5 * 60_000;

/** Loads a shop whole, or repairs what changed. */
export class Synchronizer {
  private readonly parts: SyncParts;

  constructor(parts: SyncParts) {
    this.parts = parts;
  }

  /**
   * Loads everything there is. A run that was cut off goes on at the page that it had reached. Nothing is queued for what it loads unless `events` says so; what happens while it
   * runs, or has a webhook waiting, is news all the same.
   * @throws PlatformError where the platform cannot be asked; the run can be taken up again
   */
  async full(shop: Shop, options: { events: boolean }, onProgress: (progress: SyncProgress) => void = () => {}): Promise<SyncCounts> {
    const { client, syncs, inbox, now } = this.parts;
    const begun = await syncs.unfinished(shop.id, "full");
    const run = begun ?? { startedAt: now(), events: options.events, stage: "customers" as const, cursor: null, counts: NO_COUNTS };
    const save = (next: Partial<SyncRun>) => {
      Object.assign(run, next);
      return syncs.save(shop.id, "full", run);
    };
    await save({ events: options.events });
    if (run.stage === "customers") {
      const total = (await client.query(shop, CUSTOMERS_COUNT, {})).customersCount?.count;
      for await (const { nodes, endCursor } of this.pages(shop, ALL_CUSTOMERS, ({ customers }) => customers, run.cursor, null)) {
        await save({ cursor: endCursor, counts: add(run.counts, await this.loadCustomers(shop, nodes)) });
        onProgress({ counts: run.counts, stage: run.stage, done: total ? run.counts.customers / total : undefined });
      }
      await save({ stage: "subscriptions", cursor: null });
    }
    const waiting = await inbox.waitingSubjects(shop.id);
    const isLive = ({ id, updatedAt }: ContractNode) => Date.parse(updatedAt) >= run.startedAt || waiting.has(id);
    const newest = (await client.query(shop, NEWEST_CONTRACT, {})).subscriptionContracts.nodes[0]?.createdAt;
    let oldest: number | undefined;
    for await (const { nodes, endCursor } of this.pages(shop, ALL_CONTRACTS, ({ subscriptionContracts }) => subscriptionContracts, run.cursor, null)) {
      const newsOf = (node: ContractNode) => (run.events ? "all" : isLive(node) ? "new" : "none");
      await save({ cursor: endCursor, counts: add(run.counts, await this.loadContracts(shop, nodes, newsOf)) });
      const at = Date.parse(nodes.at(-1)?.createdAt ?? "");
      oldest ??= Date.parse(nodes[0]?.createdAt ?? "");
      onProgress({ counts: run.counts, stage: run.stage, done: newest === undefined ? undefined : (at - oldest) / (Date.parse(newest) - oldest) });
    }
    await syncs.complete(shop.id, "full", run.startedAt, run.counts.changed, now());
    return run.counts;
  }

  /**
   * Repairs what changed since a time, or since the last run that came to its end, and queues the events that were missed.
   * @throws PlatformError; SdsError `conflict` for a shop that was never loaded
   */
  async changes(shop: Shop, since: number | undefined, onProgress: (progress: SyncProgress) => void = () => {}): Promise<SyncCounts> {
    const { contracts: mirror, syncs, now } = this.parts;
    const startedAt = now();
    const covered = await this.coveredUntil(shop);
    if (since === undefined && covered === undefined) {
      throw new SdsError("conflict", `${shop.domain} was never loaded whole: run \`sds sync ${shop.domain}\` first`);
    }
    const from = since ?? (covered ?? 0) - OVERLAP;
    const updated = `updated_at:>='${isoUtc(from)}'`;
    const read = new Set<string>();
    let counts = NO_COUNTS;
    const note = (stage: SyncRun["stage"], more: Partial<SyncCounts>) => {
      counts = add(counts, more);
      onProgress({ counts, stage, done: undefined });
    };
    const refresh = async (stage: SyncRun["stage"], contract: string, orders: string[]) => {
      read.add(contract);
      note(stage, await this.orLeave(shop, contract, () => mirror.refresh(shop, contract, orders)));
    };

    for await (const { nodes } of this.pages(shop, CUSTOMERS, ({ customers }) => customers, null, updated)) {
      note("customers", await this.loadCustomers(shop, nodes));
    }
    for await (const { nodes } of this.pages(shop, CONTRACTS, ({ subscriptionContracts }) => subscriptionContracts, null, updated)) {
      for (const { id } of nodes) read.add(id);
      note("subscriptions", await this.loadContracts(shop, nodes, () => "new"));
    }
    for await (const { nodes } of this.pages(shop, ORDERS, ({ orders }) => orders, null, updated)) {
      for (const order of nodes) {
        for (const contract of await mirror.contractsOf(shop, order)) await refresh("orders", contract, [order.id]);
      }
    }
    const created = `created_at:>='${isoUtc(from)}'`;
    for await (const { nodes } of this.pages(shop, ATTEMPTS, ({ subscriptionBillingAttempts }) => subscriptionBillingAttempts, null, created)) {
      const contracts = new Set(nodes.map(({ subscriptionContract }) => subscriptionContract.id));
      for (const contract of contracts.difference(read)) await refresh("attempts", contract, []);
    }
    // A run that began later than the last one ended leaves a gap: the next one has to begin before it.
    const closesGap = covered !== undefined && from <= covered;
    await syncs.complete(shop.id, "changes", closesGap ? startedAt : undefined, counts.changed, now());
    return counts;
  }

  private async loadCustomers(shop: Shop, nodes: CustomerNode[]): Promise<Partial<SyncCounts>> {
    const records: CustomerRecord[] = [];
    let skipped = 0;
    for (const node of nodes) {
      try {
        records.push(customerRecord(node));
      } catch (thrown) {
        if (!isSenseless(thrown)) throw thrown;
        skipped += 1;
        this.parts.log.warn("a customer of the platform cannot be mirrored", { shop: shop.domain, id: node.id, error: messageOf(thrown) });
      }
    }
    return { customers: records.length, skipped, ...(await this.parts.contracts.submit(shop, records)) };
  }

  /** @throws PlatformError if none of several can be read: then it is not they who make no sense */
  private async loadContracts(shop: Shop, nodes: ContractNode[], newsOf: (node: ContractNode) => "all" | "none" | "new"): Promise<Partial<SyncCounts>> {
    const { contracts } = this.parts;
    const load = async (node: ContractNode) => ({ subscriptions: 1, ...(await contracts.load(shop, node, newsOf(node))) });
    const loaded = await Promise.allSettled(nodes.map(load));
    const failures = loaded.flatMap((each) => (each.status === "rejected" ? [each.reason as unknown] : []));
    const whole = failures.find((thrown) => !isSenseless(thrown) || (thrown instanceof PlatformError && nodes.length > 1 && failures.length === nodes.length));
    if (whole !== undefined) throw whole;
    const counts = await Promise.all(
      loaded.map(async (each, index) => (each.status === "fulfilled" ? each.value : this.leave(shop, nodes[index]?.id ?? "", each.reason as unknown))),
    );
    return counts.reduce<SyncCounts>(add, NO_COUNTS);
  }

  /** One thing that makes no sense must not keep all the others out for ever. */
  private async orLeave(shop: Shop, contract: string, work: () => Promise<Partial<SyncCounts>>): Promise<Partial<SyncCounts>> {
    try {
      return await work();
    } catch (thrown) {
      if (!isSenseless(thrown)) throw thrown;
      return this.leave(shop, contract, thrown);
    }
  }

  /** Leaves a contract to the inbox, where it is tried again, counted and listed. */
  private async leave(shop: Shop, contract: string, thrown: unknown): Promise<Partial<SyncCounts>> {
    const { inbox, log, now } = this.parts;
    log.warn("a contract of the platform cannot be mirrored now; it is left to the inbox", { shop: shop.domain, id: contract, error: messageOf(thrown) });
    await inbox.receive(
      [{ shopId: shop.id, webhookId: null, subject: contract, needsPlatform: true, triggeredAt: now(), ...contractWebhook(contract) }],
      now(),
    );
    return { skipped: 1 };
  }

  /** Up to when complete runs saw everything. */
  private async coveredUntil(shop: Shop): Promise<number | undefined> {
    const kinds: SyncKind[] = ["full", "changes"];
    const runs = await Promise.all(kinds.map((kind) => this.parts.syncs.lastComplete(shop.id, kind)));
    const starts = runs.flatMap((run) => (run?.startedAt == null ? [] : [run.startedAt]));
    return starts.length === 0 ? undefined : Math.max(...starts);
  }

  /** Page by page; the next one is asked for while the caller works on this one. */
  private async *pages<A, T>(
    shop: Shop,
    operation: Operation<{ after: string | null; query: string | null }, A>,
    pageIn: (answer: A) => Page<T>,
    cursor: string | null,
    query: string | null,
  ): AsyncGenerator<{ nodes: T[]; endCursor: string | null }> {
    const ask = async (after: string | null) => pageIn(await this.parts.client.query(shop, operation, { after, query }));
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

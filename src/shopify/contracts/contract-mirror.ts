import { SdsError } from "../../domain/error.ts";
import type { MirrorRecord } from "../../domain/platform-records.ts";
import type { Shop } from "../../domain/shop.ts";
import type { KeyedMutex } from "../../lib/keyed-mutex.ts";
import type { RecordWriter } from "../../mirror/record-writer.ts";
import type { ConnectionStore } from "../../store/connections.ts";
import type { GraphqlClient } from "../api/graphql-client.ts";
import { type ContractNode, ORDER_LINES, type OrderOfContracts } from "../api/operations.ts";
import { restOf } from "../api/paging.ts";
import type { ContractReader } from "./contract-reader.ts";

/** What came of records. */
export interface ChangeCounts {
  changed: number;
  events: number;
}

/** The platform keeps time in whole seconds. Milliseconds. */
const CLOCK_SLACK = 2_000;

/**
 * Brings contracts of the platform through the one way, one reading of a contract after another. What happened before the shop was connected is no news, whoever
 * brings it: webhook, first sync or reconciling run.
 */
export class ContractMirror {
  private readonly client: GraphqlClient;
  private readonly reader: ContractReader;
  private readonly mutex: KeyedMutex;
  private readonly recordWriter: RecordWriter;
  private readonly connections: ConnectionStore;

  constructor(client: GraphqlClient, reader: ContractReader, mutex: KeyedMutex, recordWriter: RecordWriter, connections: ConnectionStore) {
    this.client = client;
    this.reader = reader;
    this.mutex = mutex;
    this.recordWriter = recordWriter;
    this.connections = connections;
  }

  /**
   * Reads a contract whole and applies it.
   * @param orders gids of orders that changed
   * @param inboxNumbers see Submission
   */
  refresh(shop: Shop, contract: string, orders: readonly string[], inboxNumbers: readonly number[] = []): Promise<ChangeCounts> {
    return this.mutex.run(`${shop.id} ${contract}`, async () => this.submit(shop, await this.reader.read(shop, contract, orders), { inboxNumbers }));
  }

  /** The same for a contract that a page brought. @returns how many orders it has, too */
  load(shop: Shop, node: ContractNode, news: "all" | "none" | "new"): Promise<ChangeCounts & { orders: number }> {
    return this.mutex.run(`${shop.id} ${node.id}`, async () => {
      const records = await this.reader.readFrom(shop, node);
      const orders = records.filter(({ type }) => type === "billing_cycle").length;
      return { orders, ...(await this.submit(shop, records, { news })) };
    });
  }

  /**
   * @param news what is told of: what happened since the shop was connected, all of it, or nothing
   * @throws SdsError `bad_record` for what makes no sense
   */
  async submit(
    shop: Shop,
    records: readonly MirrorRecord[],
    { news = "new", inboxNumbers = [] }: { news?: "all" | "none" | "new"; inboxNumbers?: readonly number[] } = {},
  ): Promise<ChangeCounts> {
    const eventsSince = await this.eventsSince(shop, news);
    const applied = await this.recordWriter.submit({ shop, records, inboxNumbers, eventsSince });
    if ("refused" in applied) throw new SdsError("bad_record", `the platform's ${records[applied.refused.index]?.type ?? "record"} ${applied.refused.reason}`);
    return { changed: applied.changed, events: applied.events };
  }

  /** Epoch milliseconds, see Submission. */
  private async eventsSince(shop: Shop, news: "all" | "none" | "new"): Promise<number> {
    if (news === "none") return Number.POSITIVE_INFINITY;
    const since = news === "new" ? (await this.connections.find(shop.id))?.eventsSince : undefined;
    return since === undefined ? 0 : since - CLOCK_SLACK;
  }

  /** The contracts that an order is of; most orders of a shop are of none. */
  async contractsOf(shop: Shop, order: OrderOfContracts): Promise<Set<string>> {
    const more = await restOf<{ contract: { id: string } | null }>(order.lineItems, async (after) => {
      const answer = await this.client.query(shop, ORDER_LINES, { id: order.id, after });
      return answer.order?.lineItems;
    });
    const contracts = [...order.lineItems.nodes, ...more].map(({ contract }) => contract);
    return new Set(contracts.flatMap((contract) => (contract === null ? [] : [contract.id])));
  }
}

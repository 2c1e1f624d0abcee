import { SdsError } from "../domain/error.ts";
import type { MirrorRecord } from "../domain/platform-records.ts";
import type { Shop } from "../domain/shop.ts";
import type { Door } from "../mirror/door.ts";
import type { ConnectionStore } from "../store/connections.ts";
import type { Asker } from "./admin-api.ts";
import type { ContractReader } from "./contract-reader.ts";
import type { Lanes } from "./lanes.ts";
import { type ContractNode, ORDER_LINES, type OrderOfContracts } from "./operations.ts";
import { restOf } from "./paging.ts";

/** What came of records. */
export interface Taken {
  changed: number;
  events: number;
}

/** The platform keeps time in whole seconds. Milliseconds. */
const CLOCK_SLACK = 2_000;

/**
 * Brings contracts of the platform through the one door, one reading of a contract after another. What happened before the shop was connected is no news, whoever
 * brings it: webhook, first sync or reconciling run.
 */
export class ContractMirror {
  private readonly asker: Asker;
  private readonly reader: ContractReader;
  private readonly lanes: Lanes;
  private readonly door: Door;
  private readonly connections: ConnectionStore;

  constructor(asker: Asker, reader: ContractReader, lanes: Lanes, door: Door, connections: ConnectionStore) {
    this.asker = asker;
    this.reader = reader;
    this.lanes = lanes;
    this.door = door;
    this.connections = connections;
  }

  /**
   * Reads a contract whole and applies it.
   * @param orders gids of orders that changed
   * @param settles see Submission
   */
  refresh(shop: Shop, contract: string, orders: readonly string[], settles: readonly number[] = []): Promise<Taken> {
    return this.lanes.run(`${shop.id} ${contract}`, async () => this.submit(shop, await this.reader.read(shop, contract, orders), { settles }));
  }

  /** The same for a contract that a page brought. @returns how many orders it has, too */
  load(shop: Shop, node: ContractNode, news: "all" | "none" | "new"): Promise<Taken & { orders: number }> {
    return this.lanes.run(`${shop.id} ${node.id}`, async () => {
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
    { news = "new", settles = [] }: { news?: "all" | "none" | "new"; settles?: readonly number[] } = {},
  ): Promise<Taken> {
    const since = news === "new" ? (await this.connections.find(shop.id))?.newsSince : undefined;
    const newsSince = since === undefined ? {} : { newsSince: since - CLOCK_SLACK };
    const applied = await this.door.submit({ shop, records, settles, quiet: news === "none", ...newsSince });
    if ("refused" in applied) throw new SdsError("bad_record", `the platform's ${records[applied.refused.index]?.type ?? "record"} ${applied.refused.reason}`);
    return { changed: applied.changed, events: applied.events };
  }

  /** The contracts that an order is of; most orders of a shop are of none. */
  async contractsOf(shop: Shop, order: OrderOfContracts): Promise<Set<string>> {
    const more = await restOf<{ contract: { id: string } | null }>(order.lineItems, async (after) => {
      const answer = await this.asker.ask(shop, ORDER_LINES, { id: order.id, after });
      return answer.order?.lineItems;
    });
    const contracts = [...order.lineItems.nodes, ...more].map(({ contract }) => contract);
    return new Set(contracts.flatMap((contract) => (contract === null ? [] : [contract.id])));
  }
}

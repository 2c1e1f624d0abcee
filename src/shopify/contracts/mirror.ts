import { SdsError } from "../../domain/error.ts";
import type { MirrorRecord } from "../../domain/platform-records.ts";
import type { Shop } from "../../domain/shop.ts";
import type { KeyedMutex } from "../../lib/keyed-mutex.ts";
import type { RecordWriter } from "../../mirror/record-writer.ts";
import type { ConnectionStore } from "../../store/connections.ts";
import type { GraphqlClient } from "../api/graphql-client.ts";
import type { ContractNode, ContractWithAttempts } from "../api/operations/contracts.ts";
import type { NodeLoader } from "./node-loader.ts";
import { readContractsOf } from "./orders.ts";
import type { ContractPageReader } from "./page-reader.ts";
import type { ContractReader } from "./reader.ts";

/** How many rows changed, and how many events were queued. */
interface ChangeCounts {
  changed: number;
  events: number;
}

/** Which changes queue events: all of them, none, or those that happened since the shop was connected. */
export type EventScope = "all" | "none" | "since_connected";

interface SubmitOptions {
  events?: EventScope;
  /** The platform webhooks that brought the records, as numbers of the inbox. They leave it in the same commit. */
  inboxNumbers?: readonly number[];
}

/** Brings contracts of the platform into the mirror. A contract is read by one caller at a time. */
export interface ContractMirror {
  /**
   * Reads a contract and everything that belongs to it, and submits it.
   * @param changedOrders gids of orders to read again even if the mirror has them as charged
   */
  refresh(
    shop: Shop,
    contractGid: string,
    changedOrders?: readonly string[],
    inboxNumbers?: readonly number[],
  ): Promise<ChangeCounts>;
  /**
   * The same for a page of contracts.
   * @returns for each what changed and how many orders it has, or why it cannot be mirrored
   * @throws PlatformError
   */
  loadPage(
    shop: Shop,
    nodes: readonly ContractWithAttempts[],
    eventsOf: (node: ContractNode) => EventScope,
  ): Promise<PromiseSettledResult<ChangeCounts & { orders: number }>[]>;
  /** Those contracts whose last whole reading began after they changed. @param changes epoch milliseconds by gid */
  readSince(shop: Shop, changes: ReadonlyMap<string, number>): Promise<Set<string>>;
  /** The contracts that orders belong to, by the order's gid. Most orders of a shop belong to none. */
  contractsOfOrders(shop: Shop, orderGids: readonly string[]): Promise<Map<string, string[]>>;
  /** @throws SdsError `bad_record` for records that are not valid */
  submit(shop: Shop, records: readonly MirrorRecord[], options?: SubmitOptions): Promise<ChangeCounts>;
}

interface Dependencies {
  client: GraphqlClient;
  loader: NodeLoader;
  reader: Pick<ContractReader, "read">;
  pageReader: ContractPageReader;
  /** Shared by everything that reads contracts. */
  mutex: KeyedMutex;
  recordWriter: Pick<RecordWriter, "submit">;
  connections: Pick<ConnectionStore, "find">;
}

/** The platform keeps time in whole seconds, and its clock may differ a little. */
const CLOCK_SLACK_MS = 2_000;

export function createContractMirror({
  client,
  loader,
  reader,
  pageReader,
  mutex,
  recordWriter,
  connections,
}: Dependencies): ContractMirror {
  /** See `Submission.eventsSince`. */
  async function eventsSinceOf(shop: Shop, events: SubmitOptions["events"]): Promise<number> {
    if (events === "none") return Number.POSITIVE_INFINITY;
    const connection = events === "all" ? undefined : await connections.find(shop.id);
    return connection === undefined ? 0 : connection.eventsSince - CLOCK_SLACK_MS;
  }

  async function submit(
    shop: Shop,
    records: readonly MirrorRecord[],
    { events = "since_connected", inboxNumbers = [] }: SubmitOptions = {},
  ): Promise<ChangeCounts> {
    const result = await recordWriter.submit({
      shop,
      records,
      inboxNumbers,
      eventsSince: await eventsSinceOf(shop, events),
    });
    if ("refused" in result) {
      const { index, reason } = result.refused;
      throw new SdsError("bad_record", `the platform's ${records[index]?.type ?? "record"} ${reason}`);
    }
    return { changed: result.changed, events: result.events };
  }

  return {
    refresh: (shop, contractGid, changedOrders = [], inboxNumbers = []) =>
      mutex.run(`${shop.id} ${contractGid}`, async () => {
        const records = await reader.read(shop, contractGid, changedOrders);
        return submit(shop, records, { inboxNumbers });
      }),
    loadPage: (shop, nodes, eventsOf) =>
      mutex.runAll(
        nodes.map(({ id }) => `${shop.id} ${id}`),
        async () => {
          const results = await pageReader.read(shop, nodes);
          return Promise.allSettled(
            nodes.map(async (node, index) => {
              const result = results[index];
              if (result?.status !== "fulfilled") throw result?.reason;
              const orders = result.value.filter(({ type }) => type === "billing_cycle").length;
              return { orders, ...(await submit(shop, result.value, { events: eventsOf(node) })) };
            }),
          );
        },
      ),
    async readSince() {
      return new Set();
    },
    async contractsOfOrders(shop, orderGids) {
      const contracts = orderGids.map(async (gid): Promise<[string, string[]]> => {
        return [gid, [...(await readContractsOf(client, loader, shop, gid))]];
      });
      return new Map(await Promise.all(contracts));
    },
    submit,
  };
}

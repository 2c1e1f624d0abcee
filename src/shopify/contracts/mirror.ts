import { SdsError } from "../../domain/error.ts";
import type { MirrorRecord } from "../../domain/platform-records.ts";
import type { Shop } from "../../domain/shop.ts";
import type { KeyedMutex } from "../../lib/keyed-mutex.ts";
import type { RecordWriter } from "../../mirror/record-writer.ts";
import type { ConnectionStore } from "../../store/connections.ts";
import type { ContractNode } from "../api/operations/contracts.ts";
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
  /** The same for a contract that is read already. @returns also the number of its orders */
  load(shop: Shop, node: ContractNode, events: EventScope): Promise<ChangeCounts & { orders: number }>;
  /** @throws SdsError `bad_record` for records that are not valid */
  submit(shop: Shop, records: readonly MirrorRecord[], options?: SubmitOptions): Promise<ChangeCounts>;
}

interface Dependencies {
  reader: ContractReader;
  /** Shared by everything that reads contracts. */
  mutex: KeyedMutex;
  recordWriter: Pick<RecordWriter, "submit">;
  connections: Pick<ConnectionStore, "find">;
}

/** The platform keeps time in whole seconds, and its clock may differ a little. */
const CLOCK_SLACK_MS = 2_000;

export function createContractMirror({ reader, mutex, recordWriter, connections }: Dependencies): ContractMirror {
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
    load: (shop, node, events) =>
      mutex.run(`${shop.id} ${node.id}`, async () => {
        const records = await reader.readFrom(shop, node);
        const orders = records.filter(({ type }) => type === "billing_cycle").length;
        return { orders, ...(await submit(shop, records, { events })) };
      }),
    submit,
  };
}

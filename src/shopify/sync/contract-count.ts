import type { SyncRun } from "../../domain/platform/sync.ts";
import { CONTRACT_IDS } from "../api/operations/contracts.ts";
import { type PageSource, readPages } from "./pages.ts";
import type { ActiveRun } from "./progress.ts";

/** Fewer contracts are not counted, because they are loaded in seconds. */
const MIN_CONTRACTS = 1_000;
/** Counting more contracts would take minutes, so their number is estimated. */
const MAX_CONTRACTS = 100_000;

/** Counts a shop's contracts, to show the progress of a load. The platform offers no such count. */
export interface ContractCount {
  /** Called after each page. Starts the count when many contracts were read. */
  begin(): void;
  stop(): void;
}

export function createContractCount(source: PageSource, { shop, run }: ActiveRun): ContractCount {
  let isBegun = run.contractTotal !== undefined;
  let isStopped = false;

  /** Counts the contracts. A page of 250 ids costs 13 points, about 2 % of the points for reading these contracts. */
  async function count({ counts, cursor, list }: SyncRun): Promise<void> {
    let total = counts.subscriptions;
    for await (const { nodes, unread, lost } of readPages(source, shop, CONTRACT_IDS, { after: cursor, list })) {
      total += nodes.length + unread.length + lost.length;
      if (isStopped || total > MAX_CONTRACTS) return;
    }
    run.contractTotal = total;
  }

  return {
    begin() {
      if (isBegun || run.counts.subscriptions < MIN_CONTRACTS) return;
      isBegun = true;
      // A failure is ignored, because the load then shows an estimate. If the failure lasts, the load fails too.
      count({ ...run }).catch(() => undefined);
    },
    stop() {
      isStopped = true;
    },
  };
}

import { messageOf, SdsError } from "../../domain/error.ts";
import type { CustomerRecord } from "../../domain/record-schemas.ts";
import type { Shop } from "../../domain/shop.ts";
import { NO_COUNTS, type SyncCounts } from "../../domain/sync.ts";
import type { Log } from "../../log.ts";
import type { InboxStore } from "../../store/inbox.ts";
import type { ContractNode } from "../api/operations/contracts.ts";
import type { CustomerNode } from "../api/operations/customers.ts";
import { isPlatformError } from "../api/platform-error.ts";
import type { ChangeHint, ContractMirror, ContractPage, EventScope } from "../contracts/mirror.ts";
import { customerRecord } from "../contracts/translate.ts";
import { changeWebhook } from "../inbox/payload.ts";
import { addCounts } from "./progress.ts";

/** Writes pages of a sync to the mirror. Data that cannot be mirrored is skipped, and does not stop the sync. */
export interface Loader {
  loadCustomers(shop: Shop, nodes: readonly CustomerNode[]): Promise<Partial<SyncCounts>>;
  /** @throws PlatformError if the platform refuses all of several contracts: then the contracts are not the cause */
  loadContracts(
    shop: Shop,
    page: ContractPage,
    eventsOf: (node: ContractNode) => EventScope,
  ): Promise<Partial<SyncCounts>>;
  /** Reads a contract that changed again, unless a reading has shown the change already. */
  followContract(shop: Shop, contractGid: string, hint: ChangeHint): Promise<Partial<SyncCounts>>;
  /** The contracts that an order belongs to. */
  contractsOfOrder(shop: Shop, orderGid: string): Promise<{ contracts: string[]; counts: Partial<SyncCounts> }>;
}

interface Dependencies {
  contracts: ContractMirror;
  inbox: Pick<InboxStore, "receive">;
  now: () => number;
  log: Log;
}

export function createLoader({ contracts, inbox, now, log }: Dependencies): Loader {
  /** Puts a contract or an order into the inbox, where it is retried, counted and listed. */
  async function skip(shop: Shop, of: ChangeHint["of"], gid: string, thrown: unknown): Promise<Partial<SyncCounts>> {
    const fields = { shop: shop.domain, id: gid, error: messageOf(thrown) };
    const what = of === "contract" ? "a contract" : "an order";
    log.warn(`${what} of the platform cannot be mirrored now; the inbox will retry it`, fields);
    const webhook = { ...changeWebhook(of, gid), webhookId: null, triggeredAt: now() };
    await inbox.receive([{ shopId: shop.id, subject: gid, needsPlatform: true, ...webhook }], now());
    return { skipped: 1 };
  }

  return {
    async loadCustomers(shop, nodes) {
      const records: CustomerRecord[] = [];
      for (const node of nodes) {
        try {
          records.push(customerRecord(node));
        } catch (thrown) {
          const fields = { shop: shop.domain, id: node.id, error: messageOf(thrown) };
          log.warn("a customer of the platform cannot be mirrored", fields);
        }
      }
      const counts = { customers: records.length, skipped: nodes.length - records.length };
      return { ...counts, ...(await contracts.submit(shop, records)) };
    },

    async loadContracts(shop, page, eventsOf) {
      const results = await contracts.loadPage(shop, page, eventsOf);
      const { nodes } = page;
      const failures = results.flatMap((each) => (each.status === "rejected" ? [each.reason as unknown] : []));
      const allFailed = nodes.length > 1 && failures.length === nodes.length;
      const fatal = failures.find((thrown) => !isBadData(thrown) || (allFailed && isPlatformError(thrown, "refused")));
      if (fatal !== undefined) throw fatal;
      let counts = NO_COUNTS;
      for (const [index, result] of results.entries()) {
        const id = nodes[index]?.id ?? "";
        const isLoaded = result.status === "fulfilled";
        const more = isLoaded ? { subscriptions: 1, ...result.value } : await skip(shop, "contract", id, result.reason);
        counts = addCounts(counts, more);
      }
      return counts;
    },

    async followContract(shop, contractGid, hint) {
      try {
        return await contracts.follow(shop, contractGid, hint);
      } catch (thrown) {
        if (!isBadData(thrown)) throw thrown;
        return skip(shop, "contract", contractGid, thrown);
      }
    },

    async contractsOfOrder(shop, orderGid) {
      try {
        return { contracts: await contracts.contractsOfOrder(shop, orderGid), counts: {} };
      } catch (thrown) {
        if (!isBadData(thrown)) throw thrown;
        return { contracts: [], counts: await skip(shop, "order", orderGid, thrown) };
      }
    },
  };
}

/** Whether the cause is the data of one item, such as a missing part, and not the request or the database. */
function isBadData(thrown: unknown): boolean {
  if (thrown instanceof SdsError) return thrown.code === "bad_record";
  return thrown instanceof TypeError || isPlatformError(thrown, "refused");
}

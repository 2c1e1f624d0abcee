import { messageOf } from "../../domain/error.ts";
import { NO_COUNTS, type SyncCounts } from "../../domain/platform/sync.ts";
import type { CustomerRecord } from "../../domain/records/record-schemas.ts";
import type { Shop } from "../../domain/shop.ts";
import type { Log } from "../../lib/log.ts";
import type { InboxStore } from "../../store/port/inbox.ts";
import { MAX_FAILURES_IN_A_ROW } from "../api/batches.ts";
import type { ContractNode } from "../api/operations/contracts.ts";
import type { CustomerNode } from "../api/operations/customers.ts";
import { isPlatformError, lacksApproval } from "../api/platform-error.ts";
import type { ChangeHint, ContractPage, ContractRefresher, EventScope } from "../contracts/refresher.ts";
import { customerRecord } from "../contracts/translate.ts";
import { isBadData } from "../contracts/values.ts";
import { changeWebhook, mergedWebhook } from "../inbox/payload.ts";
import type { PageSource, UnreadObject } from "./pages.ts";
import { addCounts } from "./progress.ts";

/** Returns undefined if the app has no approval for a list. The list is then left out. @throws any other error */
export function unlessWithoutApproval(thrown: unknown): undefined {
  if (!lacksApproval(thrown)) throw thrown;
}

/** Writes pages of a sync to the mirror. Data that cannot be mirrored is skipped, and the sync goes on. */
export interface Loader extends PageSource {
  contracts: ContractRefresher;
  inbox: RunInbox;
  log: Log;
  /** Gids of the objects that the run has skipped. Several lists may have the same object. */
  skipped: Set<string>;
}

/** The part of the inbox that a run uses. */
export type RunInbox = Pick<InboxStore, "receive" | "retryAbout" | "waitingAbout" | "noteError">;

/** Maximum number of skipped customers that a run logs one by one. One cause can affect all customers of a shop. */
const MAX_CUSTOMER_WARNINGS = 5;

/** Writes customers to the mirror. @param skipped how many customers the run has skipped before */
export async function loadCustomers(
  loader: Loader,
  shop: Shop,
  { nodes, unread = [] }: { nodes: readonly CustomerNode[]; unread?: readonly UnreadObject[] },
  skipped: number,
): Promise<Partial<SyncCounts>> {
  const { contracts, log } = loader;
  const records: CustomerRecord[] = [];
  let badCount = 0;
  for (const node of nodes) {
    try {
      records.push(customerRecord(node));
    } catch (thrown) {
      const fields = { shop: shop.domain, id: node.id, error: reasonOf(thrown) };
      badCount += 1;
      if (skipped + badCount > MAX_CUSTOMER_WARNINGS) continue;
      log.warn("a customer of the platform cannot be mirrored", fields);
    }
  }
  for (const { gid, error } of unread) await skip(loader, shop, "customer", gid, error);
  const counts = { customers: records.length, skipped: badCount + unread.length };
  return { ...counts, ...(await contracts.submit(shop, records)) };
}

/** Logs objects without a gid, which the inbox cannot retry. @returns their number */
export function lostCounts({ log }: Loader, shop: Shop, list: string, lost: readonly Error[]): Partial<SyncCounts> {
  const message = "an object of the platform cannot be read, not even its id, and is left out";
  for (const error of lost) log.warn(message, { shop: shop.domain, list, error: error.message });
  return { skipped: lost.length };
}

/** Logs the number of skipped customers that have no log line of their own. */
export function logSkippedCustomers({ log }: Loader, shop: Shop, skipped: number): void {
  const more = skipped - MAX_CUSTOMER_WARNINGS;
  if (more > 0) log.warn("more customers of the platform cannot be mirrored", { shop: shop.domain, more });
}

/**
 * Writes a page of contracts to the mirror, and skips contracts with bad data.
 * @throws PlatformError if the platform refuses several contracts and accepts none: no single contract is the cause
 */
export async function loadContracts(
  loader: Loader,
  shop: Shop,
  page: ContractPage & { unread: readonly UnreadObject[] },
  eventsOf: (node: ContractNode) => EventScope,
): Promise<SyncCounts> {
  const results = await loader.contracts.loadPage(shop, page, eventsOf);
  const { nodes } = page;
  const failures = results.flatMap((each) => (each.status === "rejected" ? [each.reason as unknown] : []));
  const allFailed = nodes.length > 1 && failures.length === nodes.length;
  const isOutage = allFailed && nodes.length > MAX_FAILURES_IN_A_ROW;
  const fatal = failures.find(
    (thrown) =>
      (!isBadData(thrown) && !isPlatformError(thrown, "outdated")) ||
      (allFailed && isPlatformError(thrown, "refused")) ||
      (isOutage && isPlatformError(thrown, "incomplete")),
  );
  if (fatal !== undefined) throw fatal;
  let counts = NO_COUNTS;
  for (const [index, result] of results.entries()) {
    const id = nodes[index]?.id ?? "";
    const more = result.status === "fulfilled" ? result.value : await skip(loader, shop, "contract", id, result.reason);
    const subscriptions = "skipped" in more ? 1 - more.skipped : 1;
    counts = addCounts(counts, { subscriptions, ...more });
  }
  for (const { gid } of page.unread) {
    // This query may work: it asks only for the contract's last cycles, but the page's query asks for all attempts.
    const more = await refreshContract(loader, shop, gid, hintNow("contract", loader.now()));
    counts = addCounts(counts, { subscriptions: more.skipped === undefined ? 1 : 0, ...more });
  }
  return counts;
}

/** Returns a hint that a contract or its orders may have changed at any time before `now`. */
export function hintNow(of: ChangeHint["of"], now: number): ChangeHint {
  return { of, orders: [], triggeredAt: now };
}

/** Reads a changed contract again, unless an earlier reading has shown the change. */
export async function refreshContract(
  loader: Loader,
  shop: Shop,
  contractGid: string,
  hint: ChangeHint,
): Promise<Partial<SyncCounts>> {
  try {
    return await loader.contracts.refreshUnlessKnown(shop, contractGid, hint);
  } catch (thrown) {
    return skip(loader, shop, "contract", contractGid, thrown, hint);
  }
}

/** Number of contracts that are read at the same time. They share queries. */
const CONTRACTS_AT_ONCE = 100;

/** Reads contracts again if their currency had no rate at the last reading, but has a rate now. */
export async function refreshUnconverted(loader: Loader, shop: Shop): Promise<SyncCounts> {
  const { contracts, now } = loader;
  let counts = NO_COUNTS;
  let after: string | undefined = "";
  while (after !== undefined) {
    const found = await contracts.contractsWithoutRate(shop, after, CONTRACTS_AT_ONCE);
    const pairs = [...new Set(found.map(({ pair }) => pair))];
    const rates = await Promise.all(pairs.map((pair) => contracts.newestRate(shop, pair)));
    const rated = found.filter(({ pair }) => rates[pairs.indexOf(pair)] !== undefined);
    const hint = hintNow("contract", now());
    const results = await allDone(rated.map(({ contract }) => refreshContract(loader, shop, contract, hint)));
    counts = results.reduce<SyncCounts>(addCounts, counts);
    after = found.at(-1)?.contract;
  }
  return counts;
}

/** Waits for all readings, even if one fails. A reading must not write to the mirror after its run has ended. */
export async function allDone<T>(readings: readonly Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(readings);
  return Promise.all(readings);
}

/** Returns the contracts of an order. An order with bad data is skipped. */
export async function contractsOfOrder(
  loader: Loader,
  shop: Shop,
  hint: ChangeHint,
): Promise<{ contracts: string[]; counts: Partial<SyncCounts> }> {
  const [orderGid = ""] = hint.orders;
  try {
    return { contracts: await loader.contracts.contractsOfOrder(shop, orderGid, hint), counts: {} };
  } catch (thrown) {
    return { contracts: [], counts: await skip(loader, shop, "order", orderGid, thrown, hint) };
  }
}

/** The wait before an object that does not show its change yet is read again. */
const OUTDATED_WAIT_MS = 5_000;

/** Maximum number of waiting items that a webhook is compared with. */
const MAX_COMPARED = 100;

const NAMES = { contract: "a contract", order: "an order", customer: "a customer" };

/**
 * Puts an object into the inbox, to be retried, if it has bad data or does not show its change yet.
 * @throws errors with another cause
 */
async function skip(
  { inbox, now, log, skipped }: Loader,
  shop: Shop,
  of: keyof typeof NAMES,
  gid: string,
  thrown: unknown,
  { orders = [], evidence = {} }: Partial<ChangeHint> = {},
): Promise<{ skipped: number }> {
  const isOutdated = isPlatformError(thrown, "outdated");
  if (!isOutdated && !isBadData(thrown)) throw thrown;
  const error = reasonOf(thrown);
  const fields = { shop: shop.domain, id: gid, error };
  const isFirst = !isOutdated && !skipped.has(gid);
  if (isOutdated)
    log.debug(`${NAMES[of]} of the platform does not show its change yet; the inbox reads it again`, fields);
  else if (isFirst) log.warn(`${NAMES[of]} of the platform cannot be mirrored now; the inbox will retry it`, fields);
  if (isFirst) skipped.add(gid);
  const webhook = changeWebhook(of, gid, { orders, evidence });
  const { subject } = webhook;
  // An object that always fails must not get an inbox item in each run. A further item is added only if it adds
  // information, for example the gids of further orders. The inbox merges the items when it retries them.
  const isKnown = await inbox.retryAbout(shop.id, subject, now());
  const mayAdd = !isKnown || orders.length > 0 || isOutdated;
  if (mayAdd && (await saysMore(inbox, shop, webhook))) {
    const own = { webhookId: null, triggeredAt: now(), waitMs: isOutdated ? OUTDATED_WAIT_MS : 0, error };
    await inbox.receive([{ shopId: shop.id, needsPlatform: true, ...own, ...webhook }], now());
  }
  await inbox.noteError(shop.id, subject, error);
  return { skipped: Number(isFirst) };
}

/** Whether a webhook adds information to the waiting items about its subject. */
async function saysMore(inbox: RunInbox, shop: Shop, webhook: ReturnType<typeof changeWebhook>): Promise<boolean> {
  const queue = { shopId: shop.id, needsPlatform: true };
  const waiting = await inbox.waitingAbout(queue, webhook.subject, MAX_COMPARED);
  return waiting.length === 0 || mergedWebhook(waiting)?.body !== mergedWebhook([...waiting, webhook])?.body;
}

/** Explains why data cannot be mirrored. `thrown` is a TypeError if the data lacks a part that no check covers. */
function reasonOf(thrown: unknown): string {
  const message = messageOf(thrown);
  return thrown instanceof TypeError
    ? `a part of the platform's data is missing or of another kind (${message})`
    : message;
}

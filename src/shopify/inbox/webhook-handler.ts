import { SdsError } from "../../domain/error.ts";
import { type DataRequest, dataRequest } from "../../domain/people/data-request.ts";
import type { MirrorRecord } from "../../domain/records/platform-records.ts";
import type { Shop } from "../../domain/shop.ts";
import type { Log } from "../../lib/log.ts";
import { isoUtc } from "../../lib/time.ts";
import type { RecordWriter } from "../../mirror/record-writer.ts";
import type { ConnectionStore } from "../../store/port/connections.ts";
import type { InboxItem, InboxStore } from "../../store/port/inbox.ts";
import type { ShopStore } from "../../store/port/shops.ts";
import type { GraphqlClient } from "../api/graphql-client.ts";
import { CUSTOMER_BY_ID } from "../api/operations/customers.ts";
import { PlatformError } from "../api/platform-error.ts";
import { LONGEST_BURST_MS, priorityOf, type WebhookPriority } from "../api/topics.ts";
import { mayPass } from "../api/trouble.ts";
import { joinEvidence } from "../contracts/evidence.ts";
import type { ChangeHint, ContractRefresher } from "../contracts/refresher.ts";
import { customerRecord } from "../contracts/translate.ts";
import { isBadData } from "../contracts/values.ts";
import type { InstallationReader } from "../install/installation.ts";
import { changeWebhook, type Intent, readWebhook } from "./payload.ts";

const NOT_CONNECTED = "the shop is not connected to the platform; the object is read when it is connected again";

/** Processes webhooks of one subject, oldest first, and removes them. @throws PlatformError; SdsError `bad_record` */
export type WebhookHandler = (shop: Shop, items: readonly InboxItem[]) => Promise<void>;

interface PlatformReader {
  client: GraphqlClient;
  contracts: ContractRefresher;
}

interface Dependencies {
  shops: ShopStore;
  connections: Pick<ConnectionStore, "find" | "uninstall" | "shopMovedTo">;
  installations: InstallationReader;
  /** Readers of the platform, by the priority of their requests. */
  readers: Record<WebhookPriority, PlatformReader>;
  recordWriter: Pick<RecordWriter, "submit">;
  inbox: Pick<InboxStore, "receive">;
  /** Called after the removal of a shop began. */
  onRemovalBegun: () => void;
  now: () => number;
  log: Log;
}

type OpenIntent = Exclude<Intent, { do: "apply" }> & { topic: string; triggeredAt: number };

type HandlerServices = Dependencies & PlatformReader;

export function createWebhookHandler(dependencies: Dependencies): WebhookHandler {
  return async (shop, items) => {
    const services = { ...dependencies, ...dependencies.readers[priorityOf(items.map(({ topic }) => topic))] };
    const inboxNumbers = items.map(({ number }) => number);
    const { records, others } = readItems(items);
    const removals = await Promise.all(others.map((intent) => asksForRemoval(services, intent, shop)));
    if (removals.includes(true) && !(await isInstalled(services, shop))) return beginRemoval(services, shop);
    const [first] = others;
    // Each commit waits for the disk. So if there are only records, one commit stores them and removes their webhooks.
    // After a crash, a redaction is then complete, or its webhook is still in the inbox. Webhooks with other intents
    // leave the inbox last. After a crash, all their intents are repeated, which is harmless.
    if (first === undefined) return submit(services, shop, records, inboxNumbers);
    const isOneRead = first.do === "read_contract" && others.length === 1 && records.length === 0;
    if (isOneRead && (await isConnected(services, shop))) {
      await services.contracts.refreshUnlessKnown(shop, first.contract, hintOf(first), inboxNumbers);
      return;
    }
    if (records.length > 0) await submit(services, shop, records, []);
    const hasFailed = items.some(({ error }) => error !== null);
    for (const intent of others) await carryOut(services, shop, intent, hasFailed);
    await submit(services, shop, [], inboxNumbers, others.flatMap(dataRequestOf));
  };
}

/**
 * Merges equal intents, and keeps their newest time. Several readings of a contract become one, with all their orders.
 */
function readItems(items: readonly InboxItem[]): { records: MirrorRecord[]; others: OpenIntent[] } {
  const records: MirrorRecord[] = [];
  const others = new Map<string, OpenIntent>();
  for (const { topic, body, triggeredAt } of items) {
    const intent = readWebhook({ topic, text: body, triggeredAt });
    if (intent.do === "apply") {
      records.push(intent.record);
      continue;
    }
    const isReading = intent.do === "read_contract" || intent.do === "read_order";
    const key = JSON.stringify(
      isReading ? { ...intent, orders: undefined, evidence: undefined } : { ...intent, topic },
    );
    const same = others.get(key);
    if (same === undefined) {
      others.set(key, { ...intent, topic, triggeredAt });
      continue;
    }
    same.triggeredAt = Math.max(same.triggeredAt, triggeredAt);
    if (intent.do === "read_contract" && same.do === "read_contract")
      same.orders = [...new Set([...same.orders, ...intent.orders])];
    if ("evidence" in intent && "evidence" in same) same.evidence = joinEvidence(same.evidence, intent.evidence);
  }
  return { records, others: [...others.values()] };
}

async function submit(
  { recordWriter, shops }: Dependencies,
  shop: Shop,
  records: MirrorRecord[],
  inboxNumbers: readonly number[],
  dataRequests: readonly DataRequest[] = [],
): Promise<void> {
  const result = await recordWriter.submit({ shop, records, inboxNumbers, dataRequests });
  // If a removal of the shop has begun meanwhile, the refusal is not an error: the removal also empties the inbox.
  if ("refused" in result && (await shops.byId(shop.id)) !== undefined) {
    throw new SdsError("bad_record", result.refused.reason);
  }
}

function dataRequestOf(intent: OpenIntent): DataRequest[] {
  return intent.do === "note_data_request" ? [dataRequest(intent.request, intent.customer, intent.triggeredAt)] : [];
}

/** Whether an intent removes this shop. The test tool's placeholder stands for the shop that the header names. */
async function asksForRemoval(
  { shops, connections }: Dependencies,
  intent: OpenIntent,
  { id, domain, firstDomain }: Shop,
): Promise<boolean> {
  if (intent.do !== "remove_shop") return false;
  if (intent.domain === null || [domain, firstDomain].includes(intent.domain)) return true;
  // At the platform, the shop may already have this domain. Here, the shop is not renamed yet.
  return (await shops.find(intent.domain)) === undefined && (await connections.shopMovedTo(intent.domain)) === id;
}

/** Marks the shop, so that `serve` removes it. The request stays in the inbox until the shop's row is removed. */
async function beginRemoval({ shops, onRemovalBegun, now, log }: Dependencies, shop: Shop): Promise<void> {
  await shops.beginRemoval(shop.domain, now());
  log.info("the shop is being removed, because the platform asked for it", { shop: shop.domain });
  onRemovalBegun();
}

/**
 * Whether the app is installed in the shop. The platform requests the removal two days after the app was uninstalled.
 * By then, the shop may have installed the app again, and be connected.
 * @throws PlatformError if the platform cannot be queried now. Then the request waits, and no removal is lost.
 */
async function isInstalled(dependencies: Dependencies, shop: Shop): Promise<boolean> {
  if (!(await isConnected(dependencies, shop))) return false;
  try {
    await dependencies.installations.read(shop);
    return true;
  } catch (thrown) {
    if (!(thrown instanceof PlatformError)) throw thrown;
    // The platform accepts the token and refuses only the query, so the app is installed.
    if (thrown.status === 200) return true;
    // A closed shop answers 404. A frozen shop answers 402, and may have the app: ask again later.
    if (thrown.needsMerchant && !mayPass(thrown.status)) return false;
    throw thrown;
  }
}

async function isConnected({ connections }: Dependencies, shop: Shop): Promise<boolean> {
  return (await connections.find(shop.id)) !== undefined;
}

/** Carries out an intent. @param hasFailed whether an earlier attempt, or a run, could not read the object */
async function carryOut(services: HandlerServices, shop: Shop, intent: OpenIntent, hasFailed: boolean): Promise<void> {
  const { shops, connections, contracts, installations, log } = services;
  const fields = { shop: shop.domain, topic: intent.topic };
  switch (intent.do) {
    case "read_contract":
    case "read_order":
    case "read_customer":
    case "merge_customers":
      if (!(await isConnected(services, shop))) {
        // A reconciliation that could not read the object may rely on this item to read it later. Later runs do not
        // read this change again, so the item must stay.
        if (hasFailed) throw new PlatformError("unauthorized", NOT_CONNECTED, { needsMerchant: true });
        // When the shop is connected again, a load or a reconciliation finds the change.
        return log.info("a platform webhook was not used, because the shop is not connected", fields);
      }
      if (intent.do === "read_contract") await contracts.refreshUnlessKnown(shop, intent.contract, hintOf(intent));
      if (intent.do === "read_order") await readOrder(services, shop, intent);
      if (intent.do === "read_customer")
        await submit(services, shop, await readCustomer(services, shop, intent.customer), []);
      if (intent.do === "merge_customers") await mergeCustomers(services, shop, intent);
      return;
    case "read_plan":
      return installations.readPlan(shop, intent.subscription);
    case "read_scopes":
      if (await isConnected(services, shop)) await installations.read(shop);
      return;
    case "set_currency":
      await shops.set(shop.domain, { currency: intent.currency });
      return;
    case "note_uninstallation":
      // The webhook's time is passed, because a late webhook may be older than a new installation of the app.
      if (await connections.uninstall(shop.id, intent.triggeredAt)) {
        log.warn("the shop uninstalled the app, so it is not connected any more", fields);
      }
      return;
    case "remove_shop":
      return log.warn(
        (await asksForRemoval(services, intent, shop))
          ? "the platform asked for the removal of a shop that has the app installed again; the shop stays"
          : "a shop/redact platform webhook names one shop in its body and another in its header",
        fields,
      );
    case "note_data_request": {
      // This is a warning, because the operator must answer the customer's request.
      const message =
        "a customer's data was requested: send it with `sds customer export`, then run `sds customer answered`";
      const { customer, dueAt } = dataRequest(intent.request, intent.customer, intent.triggeredAt);
      return log.warn(message, { ...fields, customer, dueAt: isoUtc(dueAt) });
    }
    case "ignore":
      return log.info("a platform webhook was not used", { ...fields, reason: intent.reason });
  }
}

function hintOf({ orders, triggeredAt, evidence }: Extract<OpenIntent, { do: "read_contract" }>): ChangeHint {
  return { of: "contract", orders, triggeredAt, evidence };
}

/** Reads the contracts of an order again. Most orders of a shop belong to no contract. */
async function readOrder(
  { contracts, inbox, now }: HandlerServices,
  shop: Shop,
  { order: gid, triggeredAt, evidence }: Extract<OpenIntent, { do: "read_order" }>,
): Promise<void> {
  const hint: ChangeHint = { of: "order", orders: [gid], triggeredAt, evidence };
  for (const contract of await contracts.contractsOfOrder(shop, gid, hint)) {
    try {
      await contracts.refreshUnlessKnown(shop, contract, hint);
    } catch (thrown) {
      if (!isBadData(thrown)) throw thrown;
      // Puts the contract into the inbox, not the order: one item is enough for any number of changed orders.
      const webhook = {
        ...changeWebhook("contract", contract, { orders: [gid], evidence }),
        webhookId: null,
        triggeredAt,
      };
      await inbox.receive([{ shopId: shop.id, needsPlatform: true, waitMs: LONGEST_BURST_MS, ...webhook }], now());
    }
  }
}

/** Reads a customer. @returns no records for a customer that the platform does not have @throws PlatformError */
async function readCustomer({ client }: HandlerServices, shop: Shop, gid: string): Promise<MirrorRecord[]> {
  const { customer } = await client.query(shop, CUSTOMER_BY_ID, { id: gid });
  return customer === null ? [] : [customerRecord(customer)];
}

/** Reads the kept customer, and redacts the other customer. Each contract that moves has its own platform webhook. */
async function mergeCustomers(
  services: HandlerServices,
  shop: Shop,
  { kept, gone, triggeredAt }: Extract<OpenIntent, { do: "merge_customers" }>,
): Promise<void> {
  const records = await readCustomer(services, shop, kept);
  if (gone !== undefined) records.push({ type: "redaction", shopifyId: gone, asOf: triggeredAt });
  await submit(services, shop, records, []);
}

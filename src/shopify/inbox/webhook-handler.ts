import { planOf } from "../../domain/app-plan.ts";
import { SdsError } from "../../domain/error.ts";
import type { MirrorRecord } from "../../domain/platform-records.ts";
import type { Shop } from "../../domain/shop.ts";
import type { Log } from "../../log.ts";
import type { RecordWriter } from "../../mirror/record-writer.ts";
import type { InboxItem } from "../../store/inbox.ts";
import type { Store } from "../../store/store.ts";
import type { GraphqlClient } from "../api/graphql-client.ts";
import { CUSTOMER_BY_ID, INSTALLATION, ORDER_BY_ID } from "../api/operations.ts";
import { PlatformError } from "../api/platform-error.ts";
import type { ContractMirror } from "../contracts/contract-mirror.ts";
import { customerRecord } from "../contracts/translate.ts";
import { type Intent, readWebhook } from "./payload.ts";

interface HandlerDependencies {
  store: Store;
  client: GraphqlClient;
  contracts: ContractMirror;
  recordWriter: RecordWriter;
  log: Log;
}

/** Does what the platform's webhooks ask for. */
export class WebhookHandler {
  private readonly parts: HandlerDependencies;

  constructor(parts: HandlerDependencies) {
    this.parts = parts;
  }

  /**
   * All webhooks about one subject, the oldest first; with their success they are gone from the inbox.
   * @throws PlatformError, or SdsError `bad_record`
   */
  async handle(shop: Shop, items: readonly InboxItem[]): Promise<void> {
    const inboxNumbers = items.map(({ number }) => number);
    const intents = items.map(({ topic, body, triggeredAt }) => ({ ...readWebhook({ topic, text: body, triggeredAt }), topic, triggeredAt }));
    // What they bring and their end share a commit where that can be, for each commit waits for the disk.
    const records = intents.flatMap((intent) => (intent.do === "apply" ? [intent.record] : []));
    const others = [...new Map(intents.filter((intent) => intent.do !== "apply").map((intent) => [keyOf(intent), intent])).values()];
    const [first] = others;
    if (first === undefined) return this.submit(shop, records, inboxNumbers);
    if (first.do === "read_contract" && others.length === 1 && records.length === 0 && (await this.isConnected(shop))) {
      await this.parts.contracts.refresh(shop, first.contract, [], inboxNumbers);
      return;
    }
    if (records.length > 0) await this.submit(shop, records, []);
    for (const intent of others) await this.carryOut(shop, intent, intent.topic, intent.triggeredAt);
    await this.submit(shop, [], inboxNumbers);
  }

  private async submit(shop: Shop, records: MirrorRecord[], inboxNumbers: readonly number[]): Promise<void> {
    const applied = await this.parts.recordWriter.submit({ shop, records, inboxNumbers });
    // Of a shop that was removed, nothing waits any more.
    if ("refused" in applied && (await this.parts.store.shops.byId(shop.id)) !== undefined) throw new SdsError("bad_record", applied.refused.reason);
  }

  private async isConnected({ id }: Shop): Promise<boolean> {
    return (await this.parts.store.connections.find(id)) !== undefined;
  }

  private async carryOut(shop: Shop, intent: Intent, topic: string, triggeredAt: number): Promise<void> {
    const { store, contracts, log } = this.parts;
    const fields = { shop: shop.domain, topic };
    switch (intent.do) {
      case "read_contract":
      case "read_order":
      case "merge_customers":
        // The first sync after it is connected reads everything anyway.
        if (!(await this.isConnected(shop))) return log.info("a platform webhook was not used, for the shop is not connected", fields);
        if (intent.do === "read_contract") await contracts.refresh(shop, intent.contract, []);
        if (intent.do === "read_order") await this.readOrder(shop, intent.order);
        if (intent.do === "merge_customers") await this.mergeCustomers(shop, intent.kept, intent.gone, triggeredAt);
        return;
      case "read_plan":
        return this.readPlan(shop, intent.name, intent.status, fields);
      case "set_currency":
        await store.shops.set(shop.domain, { currency: intent.currency });
        return;
      case "disconnect":
        // One that comes late is from before the shop installed the app again.
        if (await store.connections.disconnect(shop.id, triggeredAt)) log.warn("the shop uninstalled the app: it is not connected any more", fields);
        return;
      case "remove_shop":
        if (intent.domain !== null && intent.domain !== shop.domain) return log.warn("a shop/redact names another shop than its header", fields);
        await store.shops.remove(shop.domain);
        return log.info("the shop was removed as the platform asked", fields);
      case "note_data_request":
        // Somebody has to answer it, so it is not lost to a quiet log.
        return log.warn("a customer's data was requested: `sds customer export` prints it", { ...fields, customer: intent.customer });
      case "ignore":
        return log.info("a platform webhook was not used", { ...fields, reason: intent.reason });
    }
  }

  private async readOrder(shop: Shop, gid: string): Promise<void> {
    const { client, contracts } = this.parts;
    const { order } = await client.query(shop, ORDER_BY_ID, { id: gid });
    if (order === null) return;
    for (const contract of await contracts.contractsOf(shop, order)) await contracts.refresh(shop, contract, [gid]);
  }

  /** The one that is gone lives on in the other: its contracts tell of that by webhooks of their own. */
  private async mergeCustomers(shop: Shop, kept: string, gone: string | undefined, triggeredAt: number): Promise<void> {
    const { customer } = await this.parts.client.query(shop, CUSTOMER_BY_ID, { id: kept });
    const records: MirrorRecord[] = customer === null ? [] : [customerRecord(customer)];
    if (gone !== undefined) records.push({ type: "redaction", shopifyId: gone, asOf: triggeredAt });
    await this.submit(shop, records, []);
  }

  /** What all subscriptions of the shop to the app come to, if the platform can be asked; else what the webhook says of one. */
  private async readPlan(shop: Shop, name: string, status: string, fields: Record<string, string>): Promise<void> {
    const { store, log } = this.parts;
    const active = await this.activeSubscriptions(shop);
    const plan =
      active === undefined ? planOf([{ name, status }], status !== "ACTIVE" && planOf([{ name, status: "ACTIVE" }], true) === shop.plan) : planOf(active, true);
    if (plan !== undefined) {
      if (await store.shops.followPlan(shop.id, plan)) log.info("the shop's plan changed", { ...fields, plan });
    } else if (status === "ACTIVE") {
      log.warn("the shop subscribed to a plan that sds does not know; its access stays", { ...fields, plan: name.slice(0, 100) });
    }
  }

  private async activeSubscriptions(shop: Shop): Promise<{ name: string; status: string }[] | undefined> {
    if (!(await this.isConnected(shop))) return undefined;
    try {
      return (await this.parts.client.query(shop, INSTALLATION, {})).currentAppInstallation.activeSubscriptions;
    } catch (thrown) {
      // An app that is being uninstalled has no say any more.
      if (thrown instanceof PlatformError && thrown.reason === "unauthorized") return undefined;
      throw thrown;
    }
  }
}

function keyOf(intent: Intent): string {
  return JSON.stringify({ ...intent, triggeredAt: undefined });
}

import { decide } from "../../src/domain/decide/change.ts";
import { type MirrorView, WITHOUT_FIELDS } from "../../src/domain/decide/snapshot.ts";
import type { Event } from "../../src/domain/events/event.ts";
import { createShopIds, customerId, orderId, subscriptionId } from "../../src/domain/ids.ts";
import type { MirrorRecord } from "../../src/domain/records/platform-records.ts";
import type { CustomerRow, OrderRow, Row, SubscriptionRow } from "../../src/domain/rows.ts";
import { START } from "./app.ts";
import { gid } from "./records.ts";

/** A mirror in a map, to test decisions without a database. */
export class MapMirror implements MirrorView {
  readonly domain = "alpha.myshopify.com";
  readonly ids = createShopIds(this.domain);
  readonly changeCount = 0;
  private readonly rows = new Map<string, Row>();

  static of(...records: MirrorRecord[]): MapMirror {
    const mirror = new MapMirror();
    for (const record of records) mirror.apply(record);
    return mirror;
  }

  apply(record: MirrorRecord, now = START): { rows: Row[]; events: Event[] } {
    const decision = decide(this, record, now);
    if ("refused" in decision) throw new Error(`${decision.refused.field} ${decision.refused.reason}`);
    for (const row of decision.rows)
      this.rows.set(row.kind === "occurrence" ? `${row.record.type} ${row.record.id}` : row.resource.id, row);
    return decision;
  }

  customer = (id: string) => this.rows.get(id) as CustomerRow | undefined;
  subscription = (id: string) => this.rows.get(id) as SubscriptionRow | undefined;
  order = (id: string) => this.rows.get(id) as OrderRow | undefined;
  fields = WITHOUT_FIELDS.fields;
  fieldValues = WITHOUT_FIELDS.fieldValues;
  rowsOf = WITHOUT_FIELDS.rowsOf;
  hasOccurrence = (type: string, id: string) => this.rows.has(`${type} ${id}`);

  theCustomer = (n: number) => this.customer(customerId(this.domain, gid.customer(n)))?.resource;
  theSubscription = (n: number) => this.subscription(subscriptionId(this.domain, gid.contract(n)))?.resource;
  theOrder = (n: number, cycle: number) => this.theOrderRow(n, cycle)?.resource;
  theOrderRow = (n: number, cycle: number) => this.order(orderId(this.domain, gid.contract(n), "recurring", cycle));
}

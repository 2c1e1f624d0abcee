import type { CustomerRow, MirrorView, OccurrenceRow, OrderRow, Row, SubscriptionRow } from "../../domain/state.ts";
import type { Rows } from "./rows.ts";

interface Pending {
  shopId: number;
  row: Row;
}

/**
 * The rows of one transaction: read through, written back once at its end, so that a customer with ten contracts in a
 * batch is written once. Rows are known by their internal ids, which differ between shops.
 */
export class Batch {
  private readonly rows: Rows;
  private readonly pending = new Map<string, Pending>();

  constructor(rows: Rows) {
    this.rows = rows;
  }

  /** A view of one shop in which changes can be tried before they are kept. */
  draft(shop: { id: number; domain: string }): Draft {
    return new Draft(shop, this.rows, this.pending);
  }

  /** @param number gives the shop's next n change numbers: the first of them */
  write(number: (shopId: number, n: number) => number): void {
    const perShop = Map.groupBy(this.pending.values(), ({ shopId }) => shopId);
    for (const [shopId, changes] of perShop) {
      const first = number(shopId, changes.length);
      for (const [index, { row }] of changes.entries()) this.rows.write(shopId, row, first + index);
    }
  }
}

class Draft implements MirrorView {
  readonly domain: string;
  private readonly shopId: number;
  private readonly rows: Rows;
  private readonly kept: Map<string, Pending>;
  private readonly tried = new Map<string, Row>();

  constructor(shop: { id: number; domain: string }, rows: Rows, kept: Map<string, Pending>) {
    this.domain = shop.domain;
    this.shopId = shop.id;
    this.rows = rows;
    this.kept = kept;
  }

  customer(id: string): CustomerRow | undefined {
    return (this.changed(id) as CustomerRow | undefined) ?? this.rows.customer(id);
  }

  subscription(id: string): SubscriptionRow | undefined {
    return (this.changed(id) as SubscriptionRow | undefined) ?? this.rows.subscription(id);
  }

  order(id: string): OrderRow | undefined {
    return (this.changed(id) as OrderRow | undefined) ?? this.rows.order(id);
  }

  hasOccurrence(type: OccurrenceRow["record"]["type"], id: string): boolean {
    return this.changed(this.occurrenceKey(type, id)) !== undefined || this.rows.hasOccurrence(this.shopId, type, id);
  }

  put(row: Row): void {
    this.tried.set(row.kind === "occurrence" ? this.occurrenceKey(row.record.type, row.record.id) : row.resource.id, row);
  }

  /** Hands what was tried over to the batch. */
  keep(): void {
    for (const [key, row] of this.tried) this.kept.set(key, { shopId: this.shopId, row });
  }

  private changed(key: string): Row | undefined {
    return this.tried.get(key) ?? this.kept.get(key)?.row;
  }

  private occurrenceKey(type: string, id: string): string {
    return `${this.shopId} ${type} ${id}`;
  }
}

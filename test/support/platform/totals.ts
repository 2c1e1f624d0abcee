import type { ContractRow, DiscountRow, LineRow, OrderRow } from "./rows.ts";

interface Allocation {
  /** The position among the discounts of the order. */
  readonly index: number;
  readonly discount: DiscountRow;
  readonly amount: number;
}

export interface OrderLine {
  readonly order: OrderRow;
  readonly line: LineRow;
  readonly contract: ContractRow | null;
  readonly n: number;
  readonly discount: number;
  readonly allocations: readonly Allocation[];
}

export interface OrderTotals {
  readonly lines: readonly OrderLine[];
  readonly gross: number;
  readonly discount: number;
  /** After discounts. This is the total too, because the stand-in has neither shipping nor tax. */
  readonly subtotal: number;
}

/** The totals of an order. They are not stored, but follow from its lines and discounts. */
export function orderTotals(order: OrderRow): OrderTotals {
  const lines = order.lines.map((line, position): OrderLine => {
    const allocations = order.discounts
      .map((discount, index) => ({ index, discount, amount: discount.perLine[position] ?? 0 }))
      .filter(({ amount }) => amount > 0);
    const discount = allocations.reduce((total, { amount }) => total + amount, 0);
    const contract = order.lineContracts?.[position] ?? order.contract;
    return { order, line, contract, n: order.n + 1 + position, discount, allocations };
  });
  const gross = lines.reduce((total, { line }) => total + line.price * line.quantity, 0);
  const discount = lines.reduce((total, line) => total + line.discount, 0);
  return { lines, gross, discount, subtotal: gross - discount };
}

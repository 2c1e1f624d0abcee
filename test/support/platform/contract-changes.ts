import { CustomerChanges } from "./customer-changes.ts";
import { cycleOf, nextBillingAfter } from "./cycles.ts";
import { allocate, minorUnits } from "./money.ts";
import type {
  AttemptRow,
  ContractRow,
  ContractStatus,
  CustomerRow,
  DiscountKind,
  DiscountRow,
  FinancialStatus,
  Interval,
  LineRow,
  OrderRow,
} from "./rows.ts";
import { contractBody, cycleBody, orderBody } from "./webhook-bodies.ts";

export interface LineInput {
  title: string;
  /** Of one piece, like `12.50`. */
  price: string;
  quantity?: number;
  /** The price of the whole line after its discounts. */
  discounted?: string;
  variantTitle?: string | null;
  variant?: string | null;
  product?: string | null;
  sellingPlan?: string | null;
}

export interface DiscountInput {
  title: string;
  amount: string;
  kind?: DiscountKind;
}

export interface ContractInput {
  customer: string;
  lines: LineInput[];
  interval?: Interval;
  intervalCount?: number;
  /** Whether the contract began with an order. */
  originOrder?: boolean;
  /** Of the origin order only. */
  discounts?: DiscountInput[];
}

interface OrderParts {
  contract: ContractRow | null;
  customer: CustomerRow | null;
  source: string;
  currency: string;
  lines: readonly LineRow[];
  discounts?: readonly DiscountInput[];
  financial?: FinancialStatus;
  test?: boolean;
}

/** Changes of contracts, and new orders. */
export class ContractChanges extends CustomerChanges {
  createContract({
    customer,
    interval = "MONTH",
    intervalCount = 1,
    lines,
    originOrder = true,
    discounts = [],
  }: ContractInput): string {
    const createdAt = this.now();
    const { currency } = this;
    const contract: ContractRow = {
      kind: "contract",
      n: this.reserve(1),
      customer: this.need("customer", customer),
      status: "ACTIVE",
      revision: this.nextRevision(),
      createdAt,
      updatedAt: createdAt,
      nextBillingDate: nextBillingAfter({ createdAt, interval, intervalCount, skips: null }, 0),
      currency,
      interval,
      intervalCount,
      originOrder: null,
      lines: lines.map((line, key) => lineRow(line, key, currency)),
      attempts: [],
      skips: null,
    };
    this.together(() => {
      const order = originOrder ? this.makeOrder({ ...contract, contract, source: "web", discounts }) : null;
      contract.originOrder = order;
      this.add(contract);
      this.emit("subscription_contracts/create", contractBody(this, contract));
      if (order !== null) this.announceOrder(order);
    });
    return this.gid(contract);
  }

  /** A line keeps its id if its variant stays. */
  updateContract(id: string, { lines, nextBillingDate }: { lines?: LineInput[]; nextBillingDate?: string }): void {
    const contract = this.need("contract", id);
    this.change(contract, (row) => {
      if (lines !== undefined) row.lines = replaceLines(row, lines);
      if (nextBillingDate !== undefined) row.nextBillingDate = readDate(nextBillingDate);
    });
    this.emit("subscription_contracts/update", contractBody(this, contract));
  }

  /** Sends no webhook. */
  setNextBillingDate(id: string, date: string): void {
    this.change(this.need("contract", id), (row) => {
      row.nextBillingDate = readDate(date);
    });
  }

  pause = (id: string): void => this.setStatus(id, "PAUSED", "pause");
  activate = (id: string): void => this.setStatus(id, "ACTIVE", "activate");
  cancel = (id: string): void => this.setStatus(id, "CANCELLED", "cancel");
  expire = (id: string): void => this.setStatus(id, "EXPIRED", "expire");
  fail = (id: string): void => this.setStatus(id, "FAILED", "fail");

  private setStatus(id: string, status: ContractStatus, verb: string): void {
    const contract = this.need("contract", id);
    this.change(contract, (row) => {
      row.status = status;
    });
    this.together(() => {
      this.emit(`subscription_contracts/${verb}`, contractBody(this, contract));
      this.emit("subscription_contracts/update", contractBody(this, contract));
    });
  }

  skipCycle = (contractId: string, index: number): void => this.setSkip(contractId, index, true);
  unskipCycle = (contractId: string, index: number): void => this.setSkip(contractId, index, false);

  private setSkip(contractId: string, index: number, skipped: boolean): void {
    const contract = this.need("contract", contractId);
    this.change(contract, (row) => {
      row.skips ??= new Map();
      row.skips.set(index, skipped);
    });
    this.emit(`subscription_billing_cycles/${skipped ? "skip" : "unskip"}`, cycleBody(this, cycleOf(contract, index)));
  }

  /** The gid of the order that began the contract. */
  originOrder(contractId: string): string | null {
    const { originOrder } = this.need("contract", contractId);
    return originOrder === null ? null : this.gid(originOrder);
  }

  /** Makes an order without a contract. */
  placeOrder(
    input: {
      customer?: string;
      lines?: LineInput[];
      discounts?: DiscountInput[];
      financialStatus?: FinancialStatus;
      test?: boolean;
    } = {},
  ): string {
    const { currency } = this;
    const lines = (input.lines ?? [{ title: "Mug", price: "9.00" }]).map((line, key) => lineRow(line, key, currency));
    const order = this.makeOrder({
      contract: null,
      customer: input.customer === undefined ? null : this.need("customer", input.customer),
      source: "web",
      currency,
      lines,
      discounts: input.discounts ?? [],
      financial: input.financialStatus ?? "PAID",
      test: input.test ?? false,
    });
    this.together(() => this.announceOrder(order));
    return this.gid(order);
  }

  updateOrder(
    id: string,
    { financialStatus, test, lines }: { financialStatus?: FinancialStatus; test?: boolean; lines?: LineInput[] },
  ): void {
    const order = this.need("order", id);
    if (lines !== undefined && lines.length > order.lines.length)
      throw new Error("an order of the stand-in cannot get more lines");
    this.change(order, (row) => {
      if (financialStatus !== undefined) row.financial = financialStatus;
      if (test !== undefined) row.test = test;
      if (lines !== undefined) {
        row.lines = lines.map((line, key) => lineRow(line, key, row.currency));
        row.discounts = this.discountRows(row.lines, [], row.currency);
      }
    });
    this.emit("orders/updated", orderBody(this, order));
  }

  cancelOrder(id: string): void {
    const order = this.need("order", id);
    this.change(order, (row) => {
      row.cancelledAt = this.now();
      row.financial = row.financial === "PAID" ? "REFUNDED" : "VOIDED";
    });
    this.together(() => {
      this.emit("orders/cancelled", orderBody(this, order));
      this.emit("orders/updated", orderBody(this, order));
    });
  }

  protected makeOrder({
    contract,
    customer,
    source,
    currency,
    lines,
    discounts = [],
    financial = "PAID",
    test = false,
  }: OrderParts): OrderRow {
    const now = this.now();
    this.lastOrderNumber++;
    return this.add<OrderRow>({
      kind: "order",
      n: this.reserve(1 + lines.length),
      number: this.lastOrderNumber,
      contract,
      customer,
      createdAt: now,
      processedAt: now,
      updatedAt: now,
      cancelledAt: null,
      financial,
      test,
      source,
      currency,
      lines,
      discounts: this.discountRows(lines, discounts, currency),
    });
  }

  protected announceOrder(order: OrderRow): void {
    this.emit("orders/create", orderBody(this, order));
    if (order.financial === "PAID") this.emit("orders/paid", orderBody(this, order));
  }

  /** The discounts of the contract's lines come first, as one discount of their own. */
  private discountRows(lines: readonly LineRow[], inputs: readonly DiscountInput[], currency: string): DiscountRow[] {
    const rows: DiscountRow[] = [];
    const ofLines = lines.map(({ price, quantity, discounted }) => price * quantity - discounted);
    if (ofLines.some((amount) => amount > 0))
      rows.push({ kind: "manual", title: "Subscription discount", perLine: ofLines });
    const left = lines.map(({ discounted }) => discounted);
    for (const { title, amount, kind = "manual" } of inputs) {
      const perLine = allocate(minorUnits(amount, currency), left);
      for (const [index, part] of perLine.entries()) left[index] = (left[index] ?? 0) - part;
      rows.push({ kind, title, perLine });
    }
    return rows;
  }

  protected addAttempt(contract: ContractRow, cycleIndex: number): AttemptRow {
    const attempt = this.add<AttemptRow>({
      kind: "attempt",
      n: this.reserve(1),
      contract,
      cycleIndex,
      createdAt: this.now(),
      completedAt: null,
      state: "pending",
      code: null,
      order: null,
    });
    contract.attempts.push(attempt);
    return attempt;
  }
}

function replaceLines({ lines: before, currency }: ContractRow, inputs: readonly LineInput[]): LineRow[] {
  const free = [...before];
  let lastKey = before.reduce((last, { key }) => Math.max(last, key), -1);
  return inputs.map((input) => {
    const row = lineRow(input, 0, currency);
    const same = free.findIndex(({ variant, title }) =>
      row.variant === null ? title === row.title : variant === row.variant,
    );
    const [kept] = same === -1 ? [] : free.splice(same, 1);
    lastKey += kept === undefined ? 1 : 0;
    return { ...row, key: kept?.key ?? lastKey };
  });
}

function lineRow(input: LineInput, key: number, currency: string): LineRow {
  const { title, variantTitle = null, quantity = 1, variant = null, product = null, sellingPlan = null } = input;
  const price = minorUnits(input.price, currency);
  const discounted = input.discounted === undefined ? price * quantity : minorUnits(input.discounted, currency);
  return { key, title, variantTitle, quantity, price, discounted, variant, product, sellingPlan };
}

function readDate(text: string): number {
  const time = Date.parse(text);
  if (Number.isNaN(time)) throw new Error(`${text} is not a date`);
  return time;
}

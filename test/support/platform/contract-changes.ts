import { CustomerChanges } from "./customer-changes.ts";
import { nextBillingAfter } from "./cycles.ts";
import { type LineInput, lineRow, replaceLines } from "./lines.ts";
import { allocate, minorUnits } from "./money.ts";
import {
  type AttemptRow,
  attemptRow,
  type ContractRow,
  type ContractStatus,
  contractRow,
  type DiscountKind,
  type DiscountRow,
  type FinancialStatus,
  type Interval,
  type LineRow,
  type OrderRow,
  orderRow,
} from "./rows.ts";
import { readDate } from "./timestamps.ts";
import { contractBody, orderBody } from "./webhook-bodies.ts";

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
  /** The number of the last cycle. By default the contract has no end. */
  maxCycles?: number | null;
  /** The currency of the checkout, if it is not the shop's. Orders in this currency need a rate: see `setRates`. */
  currency?: string;
  /** Whether the contract began with an order. */
  originOrder?: boolean;
  /** The discounts of the origin order. */
  discounts?: DiscountInput[];
  /**
   * Whether the billing app sets the next billing date, when the contract is created and after each charge. The
   * platform never sets the date.
   */
  setsNextBillingDate?: boolean;
}

type OrderParts = Pick<OrderRow, "contract" | "customer" | "source" | "currency" | "lines"> &
  Partial<Pick<OrderRow, "lineContracts" | "financial" | "test">> & { discounts?: readonly DiscountInput[] };

/** Changes of contracts, and new orders. */
export class ContractChanges extends CustomerChanges {
  createContract(input: ContractInput): string {
    const contract = this.newContract(input);
    this.together(() => {
      const { originOrder = true, discounts = [] } = input;
      const { customer, currency, lines } = contract;
      const parts = { contract, customer, currency, lines, source: "web", discounts };
      if (originOrder) contract.originOrder = this.makeOrder(parts);
      this.add(contract);
      this.emit("subscription_contracts/create", contractBody(this, contract));
      if (contract.originOrder !== null) this.announceOrder(contract.originOrder);
    });
    return this.gid(contract);
  }

  /**
   * Makes the contracts of one checkout. All contracts begin with the same order. Each line of the order names its
   * contract.
   * @returns the gids of the contracts
   */
  createContracts(inputs: readonly ContractInput[], discounts: readonly DiscountInput[] = []): string[] {
    const contracts = inputs.map((input) => this.newContract(input));
    this.together(() => {
      const order = this.makeSharedOrder(
        contracts.map((contract) => ({ contract, lines: contract.lines })),
        "web",
        discounts,
      );
      for (const contract of contracts) {
        contract.originOrder = order;
        this.add(contract);
        this.emit("subscription_contracts/create", contractBody(this, contract));
      }
      this.announceOrder(order);
    });
    return contracts.map((contract) => this.gid(contract));
  }

  private newContract({ customer, lines, ...terms }: ContractInput): ContractRow {
    const { currency = this.currency } = terms;
    const { interval = "MONTH", intervalCount = 1, maxCycles = null, setsNextBillingDate = true } = terms;
    const contract = contractRow({
      n: this.reserve(1),
      customer: this.need("customer", customer),
      revision: this.nextRevision(),
      createdAt: this.now(),
      currency,
      lines: lines.map((line, key) => lineRow(line, key, currency)),
      interval,
      intervalCount,
      maxCycles,
      setsNextBillingDate,
    });
    if (contract.setsNextBillingDate) contract.nextBillingDate = nextBillingAfter(contract, 0);
    return contract;
  }

  /** A line keeps its id if its variant stays. */
  updateContract(id: string, { lines, nextBillingDate }: { lines?: LineInput[]; nextBillingDate?: string }): void {
    const contract = this.need("contract", id);
    this.change(contract, (row) => {
      if (lines !== undefined) row.lines = replaceLines(row.lines, lines, row.currency);
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

  /**
   * Cancels all contracts that have not ended, as the platform does two days after the shop uninstalled the app. Sends
   * no webhook.
   */
  cancelAll(): void {
    for (const id of this.ids("contract"))
      this.change(this.need("contract", id), (row) => {
        if (["ACTIVE", "PAUSED", "FAILED"].includes(row.status)) row.status = "CANCELLED";
      });
  }

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

  /** Removes pieces of lines. @param quantities what is left of each line */
  editOrder = (id: string, quantities: readonly number[]): void =>
    this.leaveQuantities(id, quantities, { edited: true });
  /** Refunds pieces of lines. @param quantities what is left of each line */
  refundOrder = (id: string, quantities: readonly number[]): void =>
    this.leaveQuantities(id, quantities, { financial: "PARTIALLY_REFUNDED" });

  private leaveQuantities(id: string, currentQuantities: readonly number[], more: Partial<OrderRow>): void {
    const order = this.need("order", id);
    this.change(order, (row) => void Object.assign(row, { currentQuantities, ...more }));
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

  /** Makes one order for several contracts, with the lines of all of them. */
  protected makeSharedOrder(
    parts: readonly { contract: ContractRow; lines: readonly LineRow[] }[],
    source: string,
    discounts: readonly DiscountInput[],
  ): OrderRow {
    const [first] = parts;
    if (first === undefined) throw new Error("an order needs a contract");
    const { customer, currency } = first.contract;
    if (parts.some(({ contract }) => contract.customer !== customer))
      throw new Error("one order has contracts of one customer");
    const lines = parts.flatMap((part) => part.lines);
    const lineContracts = parts.flatMap(({ contract, lines: { length } }) => Array<ContractRow>(length).fill(contract));
    return this.makeOrder({ contract: first.contract, customer, source, currency, lines, lineContracts, discounts });
  }

  protected makeOrder({ discounts = [], ...parts }: OrderParts): OrderRow {
    const { lines, currency } = parts;
    this.lastOrderNumber++;
    return this.add(
      orderRow({
        ...parts,
        n: this.reserve(1 + lines.length),
        number: this.lastOrderNumber,
        createdAt: this.now(),
        exchange: this.exchangeOf(currency),
        discounts: this.discountRows(lines, discounts, currency),
      }),
    );
  }

  private exchangeOf(currency: string): OrderRow["exchange"] {
    if (currency === this.currency) return null;
    const rate = this.rates[currency];
    if (rate === undefined) throw new Error(`${this.domain} has no rate for ${currency}`);
    return { currency: this.currency, rate };
  }

  protected announceOrder(order: OrderRow): void {
    this.emit("orders/create", orderBody(this, order));
    if (order.financial === "PAID") this.emit("orders/paid", orderBody(this, order));
  }

  /** Makes the discounts of an order. The price reductions of the lines come first, as one discount. */
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
    const attempt = this.add(attemptRow({ n: this.reserve(1), contract, cycleIndex, createdAt: this.now() }));
    this.remember(contract);
    contract.attempts.push(attempt);
    return attempt;
  }
}

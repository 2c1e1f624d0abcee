import type { DiscountInput } from "./contract-changes.ts";
import { CycleChanges } from "./cycle-changes.ts";
import { cycleOf, nextBillingAfter } from "./cycles.ts";
import type { AttemptRow, LineRow, OrderRow } from "./rows.ts";
import { attemptBody, contractBody } from "./webhook-bodies.ts";

/** The billing of contracts. */
export class BillingChanges extends CycleChanges {
  /** Sends no webhook: the platform sends one only when the attempt ends or is challenged. */
  startAttempt(contractId: string, cycleIndex: number): string {
    return this.gid(this.addAttempt(this.need("contract", contractId), cycleIndex));
  }

  /** The bank asks the customer for confirmation, so the attempt has neither succeeded nor failed. */
  challenge(attemptId: string): void {
    const attempt = this.open(attemptId);
    this.change(attempt, (row) => {
      row.state = "challenged";
    });
    this.emit("subscription_billing_attempts/challenged", attemptBody(this, attempt));
  }

  failAttempt(attemptId: string, code = "CARD_DECLINED"): void {
    const attempt = this.open(attemptId);
    this.change(attempt, (row) => {
      row.state = "failed";
      row.code = code;
      row.completedAt = this.now();
    });
    this.change(attempt.contract, () => undefined);
    this.emit("subscription_billing_attempts/failure", attemptBody(this, attempt));
  }

  /** @returns the gid of the new order */
  succeedAttempt(attemptId: string, { discounts = [] }: { discounts?: DiscountInput[] } = {}): string {
    const attempt = this.open(attemptId);
    const { contract } = attempt;
    const { customer, currency } = contract;
    const parts = { contract, customer, currency, lines: linesOf(attempt), discounts };
    return this.settle([attempt], this.makeOrder({ ...parts, source: "subscription_contract" }));
  }

  /**
   * Bills several contracts of one customer with one order. Each line of the order names its contract.
   * @returns the gid of the new order
   */
  succeedAttempts(attemptIds: readonly string[], { discounts = [] }: { discounts?: DiscountInput[] } = {}): string {
    const attempts = attemptIds.map((id) => this.open(id));
    const parts = attempts.map((attempt) => ({ contract: attempt.contract, lines: linesOf(attempt) }));
    return this.settle(attempts, this.makeSharedOrder(parts, "subscription_contract", discounts));
  }

  private settle(attempts: readonly AttemptRow[], order: OrderRow): string {
    for (const attempt of attempts) {
      this.change(attempt, (row) => {
        row.state = "succeeded";
        row.order = order;
        row.completedAt = this.now();
      });
      this.change(attempt.contract, (row) => {
        if (row.setsNextBillingDate) row.nextBillingDate = nextBillingAfter(row, attempt.cycleIndex);
      });
    }
    this.together(() => {
      for (const attempt of attempts) this.emit("subscription_billing_attempts/success", attemptBody(this, attempt));
      this.announceOrder(order);
      for (const { contract } of attempts) this.emit("subscription_contracts/update", contractBody(this, contract));
    });
    return this.gid(order);
  }

  private open(attemptId: string): AttemptRow {
    const attempt = this.need("attempt", attemptId);
    if (attempt.state === "failed" || attempt.state === "succeeded") throw new Error(`${attemptId} has ended`);
    return attempt;
  }
}

/** The lines that an attempt bills: the lines of an edited cycle, otherwise the lines of its contract. */
function linesOf({ contract, cycleIndex }: AttemptRow): readonly LineRow[] {
  return cycleOf(contract, cycleIndex).editedLines ?? contract.lines;
}

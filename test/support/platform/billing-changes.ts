import { ContractChanges, type DiscountInput } from "./contract-changes.ts";
import { nextBillingAfter } from "./cycles.ts";
import type { AttemptRow } from "./rows.ts";
import { attemptBody, contractBody } from "./webhook-bodies.ts";

/** The billing of contracts. */
export class BillingChanges extends ContractChanges {
  /** Sends no webhook: the platform sends one only when the attempt ends or is challenged. */
  startAttempt(contractId: string, cycleIndex: number): string {
    return this.gid(this.addAttempt(this.need("contract", contractId), cycleIndex));
  }

  /** The bank wants to hear from the customer: neither a success nor a failure. */
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
    const { contract, cycleIndex } = attempt;
    const order = this.makeOrder({ ...contract, contract, source: "subscription_contract", discounts });
    this.change(attempt, (row) => {
      row.state = "succeeded";
      row.order = order;
      row.completedAt = this.now();
    });
    this.change(contract, (row) => {
      row.nextBillingDate = nextBillingAfter(row, cycleIndex);
    });
    this.together(() => {
      this.emit("subscription_billing_attempts/success", attemptBody(this, attempt));
      this.announceOrder(order);
      this.emit("subscription_contracts/update", contractBody(this, contract));
    });
    return this.gid(order);
  }

  private open(attemptId: string): AttemptRow {
    const attempt = this.need("attempt", attemptId);
    if (attempt.state === "failed" || attempt.state === "succeeded") throw new Error(`${attemptId} has ended`);
    return attempt;
  }
}

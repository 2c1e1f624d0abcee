import { ContractChanges } from "./contract-changes.ts";
import { cycleOf } from "./cycles.ts";
import { type LineInput, replaceLines } from "./lines.ts";
import { readDate } from "./timestamps.ts";
import { cycleBody } from "./webhook-bodies.ts";

/** Changes of single billing cycles. */
export class CycleChanges extends ContractChanges {
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

  /** Edits a cycle's lines or its billing date. Arguments that are left out change nothing. */
  editCycle(contractId: string, index: number, lines?: LineInput[], billingDate?: string): void {
    const contract = this.need("contract", contractId);
    const before = contract.edits?.get(index);
    this.change(contract, (row) => {
      row.edits ??= new Map();
      row.edits.set(index, {
        lines:
          lines === undefined ? (before?.lines ?? null) : replaceLines(before?.lines ?? row.lines, lines, row.currency),
        expectedAt: billingDate === undefined ? (before?.expectedAt ?? null) : readDate(billingDate),
      });
    });
    this.announceEdit(contractId, index, before === undefined ? "create" : "update");
  }

  /** Removes the edit: the cycle follows its contract again. */
  deleteCycleEdit(contractId: string, index: number): void {
    this.change(this.need("contract", contractId), ({ edits }) => {
      if (edits?.delete(index) !== true) throw new Error(`cycle ${index} of ${contractId} has no edit`);
    });
    this.announceEdit(contractId, index, "delete");
  }

  private announceEdit(contractId: string, index: number, verb: string): void {
    const cycle = cycleOf(this.need("contract", contractId), index);
    this.emit(`subscription_billing_cycle_edits/${verb}`, cycleBody(this, cycle));
  }
}

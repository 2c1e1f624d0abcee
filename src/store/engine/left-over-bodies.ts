import { SdsError } from "../../domain/error.ts";
import type { Refusal } from "../../domain/records/refusal.ts";
import type { ShopRef } from "../../domain/shop.ts";

/**
 * Returns the error for a refused record of a left-over body. The record was checked when the body was accepted, so a
 * refusal is a defect.
 */
export function refusedLeftOver({ domain }: ShopRef, { field, reason }: Refusal): SdsError {
  return new SdsError(
    "failed",
    `a body of the intake that an earlier version accepted for ${domain} cannot be applied: a record, ` +
      `${field === "" ? "" : `field ${field}: `}${reason}; start that version once more, which drops the body`,
  );
}

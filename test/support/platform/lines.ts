import { minorUnits } from "./money.ts";
import type { LineRow } from "./rows.ts";

export interface LineInput {
  title: string;
  /** The price of one piece, like `12.50`. It may have fractions of the currency's smallest unit, like `12.345`. */
  price: string;
  quantity?: number;
  /** The price of the whole line after its discounts. */
  discounted?: string;
  variantTitle?: string | null;
  variant?: string | null;
  product?: string | null;
  sellingPlan?: string | null;
}

export function lineRow(input: LineInput, key: number, currency: string): LineRow {
  const { title, variantTitle = null, quantity = 1, variant = null, product = null, sellingPlan = null } = input;
  const price = minorUnits(input.price, currency);
  const discounted = input.discounted === undefined ? price * quantity : minorUnits(input.discounted, currency);
  return { key, title, variantTitle, quantity, price, discounted, variant, product, sellingPlan };
}

/** Makes the new lines of an object, which replace its former lines. A line keeps its key if its variant stays. */
export function replaceLines(before: readonly LineRow[], inputs: readonly LineInput[], currency: string): LineRow[] {
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

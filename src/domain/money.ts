const DECIMAL = /^(\d{1,15})(?:\.(\d{1,20}))?$/;

/** Digits by currency, remembered: asking Intl takes longer than reading an order. */
const knownDigits = new Map<string, number>();

/** Digits after the point in a currency's minor unit (ISO 4217): 2 for USD, 0 for JPY, 3 for KWD. */
function minorDigits(currency: string): number {
  const known = knownDigits.get(currency);
  if (known !== undefined) return known;
  const digits =
    new Intl.NumberFormat("en", { style: "currency", currency }).resolvedOptions().maximumFractionDigits ?? 2;
  knownDigits.set(currency, digits);
  return digits;
}

/**
 * Reads an amount as the platform writes it, a decimal string, without floating point.
 * @returns minor units; undefined for a negative amount, a fraction of a minor unit, or anything else
 */
export function minorUnits(amount: string, currency: string): number | undefined {
  const match = DECIMAL.exec(amount);
  if (match === null) return undefined;
  const digits = minorDigits(currency);
  const fraction = match[2] ?? "";
  if (/[1-9]/.test(fraction.slice(digits))) return undefined;
  const units = Number(`${match[1]}${fraction.slice(0, digits).padEnd(digits, "0")}`);
  return Number.isSafeInteger(units) ? units : undefined;
}

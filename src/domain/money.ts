import { memoize } from "../lib/text.ts";

const DECIMAL = /^(\d{1,15})(?:\.(\d{1,20}))?$/;

/**
 * Returns the digits after the point in a currency's minor unit (ISO 4217): 2 for USD, 0 for JPY, 3 for KWD. Cached,
 * because Intl is slow.
 */
const minorDigits = memoize(1_000, (currency) => {
  const format = new Intl.NumberFormat("en", { style: "currency", currency });
  return format.resolvedOptions().maximumFractionDigits ?? 2;
});

/** A whole number of minor units. */
interface MinorUnits {
  units: number;
  /** Whether the amount had a fraction of a minor unit. */
  isRounded: boolean;
}

/**
 * Reads an amount as the platform writes it, a decimal string, without floating point. Rounds a fraction of a minor
 * unit; half a unit is rounded to the even number.
 * @returns undefined for a negative amount, an amount that is too large to be exact, or anything else
 */
export function minorUnits(amount: string, currency: string): MinorUnits | undefined {
  const match = DECIMAL.exec(amount);
  if (match === null) return undefined;
  const digits = minorDigits(currency);
  const fraction = match[2] ?? "";
  const whole = Number(`${match[1]}${fraction.slice(0, digits).padEnd(digits, "0")}`);
  const rest = fraction.slice(digits);
  const units = whole + Number(roundsUp(rest, whole % 2 === 1));
  return Number.isSafeInteger(units) ? { units, isRounded: /[1-9]/.test(rest) } : undefined;
}

/** @param rest the dropped digits */
function roundsUp(rest: string, isOdd: boolean): boolean {
  const isHalf = /^50*$/.test(rest);
  return isHalf ? isOdd : /^[5-9]/.test(rest);
}

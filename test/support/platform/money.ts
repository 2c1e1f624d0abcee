/** The model keeps money in minor units. The platform writes money in two formats. */

const digits = new Map<string, number>();

function digitsOf(currency: string): number {
  let found = digits.get(currency);
  if (found === undefined) {
    const isKnown = Intl.supportedValuesOf("currency").includes(currency);
    const format = new Intl.NumberFormat("en", { style: "currency", currency: isKnown ? currency : "USD" });
    found = format.resolvedOptions().maximumFractionDigits ?? 2;
    digits.set(currency, found);
  }
  return found;
}

/** Decimals that an amount can have below the smallest unit of its currency. */
const FRACTION_PLACES = 4;

/** Reads an amount like `12.50`. An amount like `12.345` has a fraction of a minor unit. */
export function minorUnits(amount: string, currency: string): number {
  if (!/^-?\d+(\.\d+)?$/.test(amount)) throw new Error(`${amount} is not an amount`);
  return rounded(Number(amount) * 10 ** digitsOf(currency));
}

/** Removes the errors of binary fractions. */
function rounded(minor: number): number {
  return Number(minor.toFixed(FRACTION_PLACES));
}

/** Writes an amount as webhooks do: `12.50`, or `1250` in yen. A fraction of a minor unit is written out: `12.345`. */
export function fixedAmount(minor: number, currency: string): string {
  const places = digitsOf(currency);
  const [whole = "", fraction = ""] = Math.abs(minor).toFixed(FRACTION_PLACES).split(".");
  const text = whole.padStart(places + 1, "0");
  const decimals = text.slice(text.length - places) + fraction.replace(/0+$/, "");
  const amount = text.slice(0, text.length - places) + (decimals === "" ? "" : `.${decimals}`);
  return minor < 0 ? `-${amount}` : amount;
}

/** Writes an amount as GraphQL does: `12.5`, `12.0`, or `1250.0` in yen. */
function shortAmount(minor: number, currency: string): string {
  const [whole, fraction = ""] = fixedAmount(minor, currency).split(".");
  return `${whole}.${fraction.replace(/0+$/, "") || "0"}`;
}

/** Splits an amount among lines in proportion to what is left of each. The parts add up to the amount. */
export function allocate(amount: number, left: readonly number[]): number[] {
  const total = left.reduce((sum, part) => sum + part, 0);
  let toGive = Math.min(amount, total);
  let weight = total;
  return left.map((part) => {
    // The last line with something left gets the rest of the amount. Only this share can have a fraction of a minor unit.
    const share = weight === 0 ? 0 : weight === part ? toGive : Math.round((toGive * part) / weight);
    toGive = rounded(toGive - share);
    weight = rounded(weight - part);
    return share;
  });
}

export function moneyV2(minor: number, currency: string): { amount: string; currencyCode: string } {
  return { amount: shortAmount(minor, currency), currencyCode: currency };
}

/** Currencies of an order: the customer's, and the shop's with the rate at the time of the order. */
export interface Currencies {
  readonly currency: string;
  /** What one unit of the customer's currency is worth in the shop's currency. null if both currencies are the same. */
  readonly exchange: { readonly currency: string; readonly rate: number } | null;
}

/** An amount in both currencies. The platform rounds an amount that it converts into the shop's currency. */
export function moneyBag(
  minor: number,
  { currency, exchange }: Currencies,
): Record<"shopMoney" | "presentmentMoney", ReturnType<typeof moneyV2>> {
  const presentmentMoney = moneyV2(minor, currency);
  if (exchange === null) return { shopMoney: presentmentMoney, presentmentMoney };
  const factor = exchange.rate * 10 ** (digitsOf(exchange.currency) - digitsOf(currency));
  return { shopMoney: moneyV2(Math.round(rounded(minor * factor)), exchange.currency), presentmentMoney };
}

/** The model has money in minor units. The platform writes it in two ways. */

const digits = new Map<string, number>();

function digitsOf(currency: string): number {
  let found = digits.get(currency);
  if (found === undefined) {
    found = new Intl.NumberFormat("en", { style: "currency", currency }).resolvedOptions().maximumFractionDigits ?? 2;
    digits.set(currency, found);
  }
  return found;
}

/** Reads an amount like `12.50`. @throws if the currency has no units that small */
export function minorUnits(amount: string, currency: string): number {
  const [, sign = "", whole = "", fraction = ""] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(amount) ?? [];
  const places = digitsOf(currency);
  if (whole === "" || /[^0]/.test(fraction.slice(places))) throw new Error(`${amount} is not an amount of ${currency}`);
  return Number(`${sign}${whole}${fraction.slice(0, places).padEnd(places, "0")}`);
}

/** Writes an amount as webhooks do: `12.50`, or `1250` in yen. */
export function fixedAmount(minor: number, currency: string): string {
  const places = digitsOf(currency);
  const text = String(Math.abs(minor)).padStart(places + 1, "0");
  const amount = places === 0 ? text : `${text.slice(0, -places)}.${text.slice(-places)}`;
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
    const share = weight === 0 ? 0 : Math.round((toGive * part) / weight);
    toGive -= share;
    weight -= part;
    return share;
  });
}

export function moneyV2(minor: number, currency: string): { amount: string; currencyCode: string } {
  return { amount: shortAmount(minor, currency), currencyCode: currency };
}

export function moneyBag(
  minor: number,
  currency: string,
): Record<"shopMoney" | "presentmentMoney", ReturnType<typeof moneyV2>> {
  return { shopMoney: moneyV2(minor, currency), presentmentMoney: moneyV2(minor, currency) };
}

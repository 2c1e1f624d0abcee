const CHARACTERS = [..."abcdefghijklmnopqrstuvwxyz234567"];
/** The two characters for each value of ten bits. */
const PAIRS = CHARACTERS.flatMap((first) => CHARACTERS.map((second) => first + second));
const VALUES = new Map(CHARACTERS.map((character, value) => [character.charCodeAt(0), value]));
/** Number of bytes that `base32` encodes: 15 bytes are 120 bits. */
const BYTES = 15;

/** Encodes the first 15 bytes in lower-case base32 (the alphabet of RFC 4648, section 6): 24 characters, 120 bits. */
export function base32(bytes: Uint8Array): string {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let text = "";
  for (let at = 0; at < BYTES; at += 5) {
    // Five bytes make four pairs of characters: two pairs from the first 20 bits, two pairs from the last 20 bits.
    const first = view.getUint32(at) >>> 12;
    const last = view.getUint32(at + 1);
    text += `${PAIRS[first >>> 10]}${PAIRS[first & 1023]}${PAIRS[(last >>> 10) & 1023]}${PAIRS[last & 1023]}`;
  }
  return text;
}

/** Decodes the 15 bytes that `base32` encoded. @param text 24 characters of the alphabet */
export function unbase32(text: string): Buffer {
  const bytes = Buffer.alloc(BYTES);
  for (let group = 0; group < BYTES / 5; group += 1) {
    // Eight characters make five bytes: 40 bits, which a number holds exactly.
    let bits = 0;
    for (let at = group * 8; at < group * 8 + 8; at += 1) bits = bits * 32 + (VALUES.get(text.charCodeAt(at)) ?? 0);
    bytes.writeUIntBE(bits, group * 5, 5);
  }
  return bytes;
}

/** Decodes UTF-8. @returns undefined for invalid bytes, because replacement characters must not be stored */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** Returns a message with a capital letter at its start and a full stop at its end. */
export function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;
}

/** Formats a number with its noun: "1 delivery", "2 deliveries", "1,000 deliveries". */
export function counted(count: number, one: string, many: string): string {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}

/** Formats a size with its unit: "0 kB", "12 kB", "3.4 MB", "5.6 GB". */
export function bytesText(bytes: number): string {
  if (bytes < 1_000_000) return `${Math.floor(bytes / 1_000)} kB`;
  return bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(1)} GB`;
}

/** Formats an amount with its currency: "USD 12.50". @param units whole minor units, such as cents */
export function amountText(units: number, currency: string): string {
  const format = amountFormat(currency);
  return format.format(units / 10 ** (format.resolvedOptions().maximumFractionDigits ?? 0));
}

const amountFormat = memoize(
  1_000,
  (currency: string) => new Intl.NumberFormat("en", { style: "currency", currency, currencyDisplay: "code" }),
);

/** Caches the results of a pure function. @param limit number of cached texts at which the cache is emptied */
export function memoize<K extends string, T>(limit: number, compute: (text: K) => T): (text: K) => T {
  const known = new Map<K, T>();
  return (text) => {
    const found = known.get(text);
    if (found !== undefined) return found;
    if (known.size >= limit) known.clear();
    const computed = compute(text);
    known.set(text, computed);
    return computed;
  };
}

const ALPHABET = "abcdefghijklmnopqrstuvwxyz234567";
const CHARACTERS = [...ALPHABET];
/** Two characters for every ten bits. */
const PAIRS = CHARACTERS.flatMap((first) => CHARACTERS.map((second) => first + second));
/** The bytes of what is encoded: 120 bits. */
const BYTES = 15;

/** Lower-case base32 (the alphabet of RFC 4648, section 6) of the first 15 bytes: 24 characters, 120 bits. */
export function base32(bytes: Uint8Array): string {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let text = "";
  for (let at = 0; at < BYTES; at += 5) {
    // Five bytes are four pairs of characters: two in the first 20 bits, two in the last.
    const first = view.getUint32(at) >>> 12;
    const last = view.getUint32(at + 1);
    text += `${PAIRS[first >>> 10]}${PAIRS[first & 1023]}${PAIRS[(last >>> 10) & 1023]}${PAIRS[last & 1023]}`;
  }
  return text;
}

/** The 15 bytes that `base32` encoded. @param text 24 characters of the alphabet */
export function unbase32(text: string): Buffer {
  const value = [...text].reduce((bits, character) => (bits << 5n) | BigInt(ALPHABET.indexOf(character)), 0n);
  return Buffer.from(value.toString(16).padStart(2 * BYTES, "0"), "hex");
}

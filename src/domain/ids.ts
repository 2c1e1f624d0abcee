import { CryptoHasher } from "bun";

const BASE32 = [..."abcdefghijklmnopqrstuvwxyz234567"];
/** What ten bits are. */
const PAIRS = BASE32.flatMap((first) => BASE32.map((second) => first + second));
const ID_BYTES = 15;

/** Lower-case base32 (the alphabet of RFC 4648, section 6) of the first 15 bytes: 24 characters, 120 bits. */
function base32(bytes: Uint8Array): string {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let text = "";
  for (let at = 0; at < ID_BYTES; at += 5) {
    // Five bytes are four pairs of characters: two in the first 20 bits, two in the last.
    const first = view.getUint32(at) >>> 12;
    const last = view.getUint32(at + 1);
    text += `${PAIRS[first >>> 10]}${PAIRS[first & 1023]}${PAIRS[(last >>> 10) & 1023]}${PAIRS[last & 1023]}`;
  }
  return text;
}

/**
 * Internal ids are a function of shop domain and platform identity, so that a mirror rebuilt from nothing has the same ones
 * (contract.md 1.9). The parts are joined by NUL, which none of them can contain.
 */
function derive(prefix: string, ...identity: (string | number)[]): string {
  return prefix + base32(CryptoHasher.hash("sha256", identity.join("\0")));
}

export function customerId(domain: string, gid: string): string {
  return derive("cus_", domain, "customer", gid);
}

export function subscriptionId(domain: string, gid: string): string {
  return derive("sub_", domain, "subscription", gid);
}

/** An order's identity is its contract, source and cycle number: a declined attempt has no platform order yet. */
export function orderId(domain: string, contractGid: string, source: string, cycleNumber: number): string {
  return derive("ord_", domain, "order", contractGid, source, cycleNumber);
}

/** An id that means nothing, such as `key_…`, from 15 random bytes. */
export function randomId(prefix: string, random: (bytes: number) => Uint8Array): string {
  return prefix + base32(random(15));
}

/** An id whose like-prefixed successors sort behind it, so that an index of them grows at its end: 6 bytes of time, 9 of chance. */
export function timeOrderedId(prefix: string, now: number, random: (bytes: number) => Uint8Array): string {
  const bytes = Buffer.alloc(15);
  bytes.writeUIntBE(now, 0, 6);
  bytes.set(random(9), 6);
  return prefix + base32(bytes);
}

import { CryptoHasher } from "bun";
import { base32 } from "../lib/text.ts";

/**
 * Derives an internal id from the shop's first domain and the object's identity at the platform, such as a gid. So a
 * rebuilt mirror has the same ids (docs/api.md, "Ids"). The parts are joined by NUL, which no part can contain.
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

/** Derives an order's id from its contract, source and cycle number, because a declined attempt has no order gid. */
export function orderId(domain: string, contractGid: string, source: string, cycleNumber: number): string {
  return derive("ord_", domain, "order", contractGid, source, cycleNumber);
}

/**
 * Returns a hash that replaces an id. The sender chose the id, and the id can contain personal data. Equal ids get
 * equal replacements. An id that is already a replacement is returned unchanged.
 */
export function redactedId(id: string): string {
  return /^redacted_[a-z2-7]{24}$/.test(id) ? id : derive("redacted_", id);
}

/** Derives the internal ids of one shop. */
export interface ShopIds {
  customer(gid: string): string;
  subscription(gid: string): string;
  order(contractGid: string, source: string, cycleNumber: number): string;
}

/** Derives and caches ids for one commit, because a commit needs most ids twice: to load rows and to decide. */
export function createShopIds(domain: string): ShopIds {
  const known = new Map<string, string>();
  function remembered(name: string, derived: () => string): string {
    const id = known.get(name) ?? derived();
    known.set(name, id);
    return id;
  }
  return {
    // Gids of different objects differ, so the gid alone is the key.
    customer: (gid) => remembered(gid, () => customerId(domain, gid)),
    subscription: (gid) => remembered(gid, () => subscriptionId(domain, gid)),
    order: (contractGid, source, cycleNumber) =>
      remembered(`${contractGid} ${source} ${cycleNumber}`, () => orderId(domain, contractGid, source, cycleNumber)),
  };
}

/** Makes a random id from 15 bytes, such as `key_…`. */
export function randomId(prefix: string, random: (bytes: number) => Uint8Array): string {
  return prefix + base32(random(15));
}

/** Makes an id from 6 bytes of time and 9 random bytes. Later ids sort last, so a database index grows at its end. */
export function timeOrderedId(prefix: string, now: number, random: (bytes: number) => Uint8Array): string {
  const bytes = Buffer.alloc(15);
  bytes.writeUIntBE(now, 0, 6);
  bytes.set(random(9), 6);
  return prefix + base32(bytes);
}

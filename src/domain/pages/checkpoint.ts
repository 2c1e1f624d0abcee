import { CryptoHasher } from "bun";
import { base32, unbase32 } from "../../lib/text.ts";
import { isoUtc } from "../../lib/time.ts";
import type { Resource } from "../resources.ts";

/** The resource of a shop whose changes a checkpoint counts. */
interface CheckpointScope {
  shopId: number;
  resource: Resource;
}

/** The number of a change has 48 bits, and the rest of a checkpoint's 15 bytes authenticates it. */
const NUMBER_BYTES = 6;
const MAC_BYTES = 9;
const CHECKPOINT = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z)~chg_([a-z2-7]{24})$/;

/**
 * Writes and reads checkpoints (docs/copies.md): `<ISO date>~chg_` and the number of a change. A checkpoint is valid
 * for one shop, resource and key. A restored database has a new key, because its change numbers were set back.
 */
export interface Checkpoints {
  /** Returns the same text until the number of the scope changes. */
  format(scope: CheckpointScope, number: number): string;
  /** @returns the number of the change; undefined for any text that `format` did not write */
  parse(scope: CheckpointScope, text: string): number | undefined;
}

/**
 * @param key random bytes that only the database has
 * @param now epoch milliseconds. A checkpoint begins with its own time, which only people read
 */
export function createCheckpoints(key: Uint8Array, now: () => number): Checkpoints {
  /** The last checkpoint of each scope. */
  const given = new Map<string, { number: number; text: string }>();

  function authenticate({ shopId, resource }: CheckpointScope, date: string, number: Uint8Array): Buffer {
    const mac = new CryptoHasher("sha256", key).update(`${shopId} ${resource} ${date} `).update(number).digest();
    return Buffer.from(mac.buffer, mac.byteOffset, MAC_BYTES);
  }

  function encode(scope: CheckpointScope, number: number): string {
    const date = isoUtc(now());
    const bytes = Buffer.alloc(NUMBER_BYTES + MAC_BYTES);
    bytes.writeUIntBE(number, 0, NUMBER_BYTES);
    bytes.set(authenticate(scope, date, bytes.subarray(0, NUMBER_BYTES)), NUMBER_BYTES);
    return `${date}~chg_${base32(bytes)}`;
  }

  return {
    format(scope, number) {
      const name = `${scope.shopId} ${scope.resource}`;
      const last = given.get(name);
      if (last?.number === number) return last.text;
      const text = encode(scope, number);
      given.set(name, { number, text });
      return text;
    },

    parse(scope, text) {
      const [, date, encoded] = CHECKPOINT.exec(text) ?? [];
      if (date === undefined || encoded === undefined) return undefined;
      const bytes = unbase32(encoded);
      const number = bytes.subarray(0, NUMBER_BYTES);
      const isOurs = authenticate(scope, date, number).equals(bytes.subarray(NUMBER_BYTES));
      return isOurs ? bytes.readUIntBE(0, NUMBER_BYTES) : undefined;
    },
  };
}

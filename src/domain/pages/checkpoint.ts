import { CryptoHasher } from "bun";
import { base32, unbase32 } from "../../lib/text.ts";
import { isoUtc } from "../../lib/time.ts";
import { nextTurn } from "../../lib/waits.ts";
import type { CursorProblem } from "../error.ts";
import { RESOURCES, type Resource } from "../resources.ts";

/** The resource of a shop whose changes a checkpoint counts. */
export interface CheckpointScope {
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
  /**
   * Finds out why `parse` refused a text. Believes only a text that this database or a former epoch authenticated. A
   * forged text is `not_issued`.
   */
  problemOf(scope: CheckpointScope, text: string): Promise<CursorProblem>;
}

interface Dependencies {
  /** Random bytes that only the database has. */
  epoch: Uint8Array;
  /** The epochs that the database had before its restores. */
  formerEpochs: readonly Uint8Array[];
  /** Returns the ids of all shops. */
  shopIds: () => Promise<number[]>;
  /** Epoch milliseconds. A checkpoint begins with its own time, which only people read. */
  now: () => number;
}

/** After this many shops, the search for the shop of a checkpoint pauses, so that other work can run. */
const SHOPS_IN_A_TURN = 500;

export function createCheckpoints({ epoch, formerEpochs, shopIds, now }: Dependencies): Checkpoints {
  /** The last checkpoint of each scope. */
  const given = new Map<string, { number: number; text: string }>();

  function encode(scope: CheckpointScope, number: number): string {
    const date = isoUtc(now());
    const bytes = Buffer.alloc(NUMBER_BYTES + MAC_BYTES);
    bytes.writeUIntBE(number, 0, NUMBER_BYTES);
    bytes.set(authenticate(epoch, scope, date, bytes.subarray(0, NUMBER_BYTES)), NUMBER_BYTES);
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
      const read = readCheckpoint(text);
      return read?.isFrom(epoch, scope) === true ? read.number : undefined;
    },

    async problemOf(scope, text) {
      const read = readCheckpoint(text);
      if (read === undefined) return "not_issued";
      const { shopId, resource } = scope;
      if (formerEpochs.some((former) => read.isFrom(former, scope))) return "restored";
      for (const key of [epoch, ...formerEpochs])
        if (RESOURCES.some((other) => read.isFrom(key, { shopId, resource: other }))) return "other_resource";
      for (const [index, other] of (await shopIds()).entries()) {
        if (read.isFrom(epoch, { shopId: other, resource })) return "other_shop";
        if (index % SHOPS_IN_A_TURN === SHOPS_IN_A_TURN - 1) await nextTurn();
      }
      return "not_issued";
    },
  };
}

/** @returns undefined for a text of another form */
function readCheckpoint(text: string) {
  const [, date, encoded] = CHECKPOINT.exec(text) ?? [];
  if (date === undefined || encoded === undefined) return undefined;
  const bytes = unbase32(encoded);
  const number = bytes.subarray(0, NUMBER_BYTES);
  const mac = bytes.subarray(NUMBER_BYTES);
  return {
    number: bytes.readUIntBE(0, NUMBER_BYTES),
    isFrom: (key: Uint8Array, scope: CheckpointScope) => authenticate(key, scope, date, number).equals(mac),
  };
}

function authenticate(key: Uint8Array, { shopId, resource }: CheckpointScope, date: string, number: Uint8Array) {
  const mac = new CryptoHasher("sha256", key).update(`${shopId} ${resource} ${date} `).update(number).digest();
  return Buffer.from(mac.buffer, mac.byteOffset, MAC_BYTES);
}

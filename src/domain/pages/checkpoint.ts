import { CryptoHasher } from "bun";
import { base32, unbase32 } from "../../lib/text.ts";
import { isoUtc } from "../../lib/time.ts";
import { nextTurn } from "../../lib/waits.ts";
import type { CursorProblem } from "../error.ts";
import { RESOURCES, type Resource } from "../resources.ts";

/** A shop and a resource. A checkpoint counts the changes of this resource in this shop. */
export interface CheckpointScope {
  shopId: number;
  resource: Resource;
  /** A branch of the shop. Changes are numbered within a branch. The first branch has an empty name. */
  branch: string;
}

/**
 * An ended branch of a shop. A branch ends when a failover or a restore goes on from an earlier state, or when the shop
 * moves to another database.
 */
export interface FormerBranch {
  branch: string;
  /**
   * Number of the branch's last change that this database has. After a failover, later changes of the failed server can
   * be missing.
   */
  changeCount: number;
}

/** A database that issued checkpoints of a shop before the shop moved to this database. */
export interface CheckpointOrigin {
  /** The epoch of that database. */
  epoch: Uint8Array;
  /** The epochs that it had before its restores. */
  formerEpochs: readonly Uint8Array[];
  /** The number of the shop in that database. */
  shopId: number;
}

/** The number of a change has 48 bits, and the rest of a checkpoint's 15 bytes authenticates it. */
const NUMBER_BYTES = 6;
const MAC_BYTES = 9;
/**
 * In all branches but the first, this many bytes of the MAC do not depend on the branch. They prove that this database
 * issued the checkpoint, even if the database has lost the branch completely.
 */
const ISSUED_BYTES = 5;
const CHECKPOINT = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z)~chg_([a-z2-7]{24})$/;

/**
 * Writes and reads checkpoints (docs/copies.md): `<ISO date>~chg_` and the number of a change. A checkpoint is valid
 * for one shop, resource and key. A restored database has a new key, because its change numbers were set back.
 */
export interface Checkpoints {
  /** Returns a checkpoint. The text stays the same until the number of the scope changes. */
  format(scope: CheckpointScope, number: number): string;
  /** @returns the number of the change; undefined if `format` did not write the text for this branch */
  parse(scope: CheckpointScope, text: string): number | undefined;
  /**
   * Returns the number of the change if a former branch or the shop's former database issued the text. If the change is
   * lost or the text is of another scope, returns why the text is refused. The reason is `not_issued` if no known epoch
   * authenticates the text.
   */
  parseFormer(scope: CheckpointScope, text: string): Promise<number | CursorProblem>;
}

interface Dependencies {
  /** Random bytes that only the database has. */
  epoch: Uint8Array;
  /** The epochs that the database had before its restores. */
  formerEpochs: readonly Uint8Array[];
  /** Returns the ids of all shops. */
  shopIds: () => Promise<number[]>;
  formerBranches: (shopId: number) => Promise<FormerBranch[]>;
  /** Returns the databases that issued a shop's checkpoints before the shop moved to this database. */
  origins: (shopId: number) => Promise<CheckpointOrigin[]>;
  /** Epoch milliseconds. A checkpoint begins with its own time, which only people read. */
  now: () => number;
}

/** Number of shops after which the search for the shop of a checkpoint pauses, so that other work can run. */
const SHOPS_IN_A_TURN = 500;

export function createCheckpoints(dependencies: Dependencies): Checkpoints {
  const { epoch, formerEpochs, shopIds, now } = dependencies;
  /** The last checkpoint of each scope. */
  const given = new Map<string, { number: number; text: string }>();

  function encode(scope: CheckpointScope, number: number): string {
    const date = isoUtc(now());
    const bytes = Buffer.alloc(NUMBER_BYTES + MAC_BYTES);
    bytes.writeUIntBE(number, 0, NUMBER_BYTES);
    bytes.set(authenticate(epoch, scope, date, bytes.subarray(0, NUMBER_BYTES)), NUMBER_BYTES);
    return `${date}~chg_${base32(bytes)}`;
  }

  /** Returns the change number of a genuine checkpoint; "restored" if the database has lost the change. */
  async function numberOf(read: IssuedText, scope: CheckpointScope, origin: CheckpointOrigin) {
    const branches = await dependencies.formerBranches(scope.shopId);
    // In earlier versions of this program, a move kept the branch. So the shop's former database can have issued
    // checkpoints of this branch.
    const present = { branch: scope.branch, changeCount: Number.POSITIVE_INFINITY };
    const { epoch: key, shopId } = origin;
    const found = [present, ...branches].find(({ branch }) => read.isFrom(key, { ...scope, shopId, branch }));
    return found !== undefined && read.number <= found.changeCount ? read.number : "restored";
  }

  return {
    format(scope, number) {
      const name = `${scope.shopId} ${scope.resource} ${scope.branch}`;
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

    async parseFormer(scope, text) {
      const read = readCheckpoint(text);
      if (read === undefined) return "not_issued";
      const { shopId, resource } = scope;
      const origins = [{ epoch, formerEpochs, shopId }, ...(await dependencies.origins(shopId))];
      const isIssuedBy = (key: Uint8Array, origin: CheckpointOrigin) =>
        read.isIssued(key, { ...scope, shopId: origin.shopId });
      for (const origin of origins) if (isIssuedBy(origin.epoch, origin)) return numberOf(read, scope, origin);
      if (origins.some((origin) => origin.formerEpochs.some((former) => isIssuedBy(former, origin)))) return "restored";
      for (const key of [epoch, ...formerEpochs])
        if (RESOURCES.some((other) => read.isIssued(key, { ...scope, resource: other }))) return "other_resource";
      for (const [index, other] of (await shopIds()).entries()) {
        if (read.isIssued(epoch, { shopId: other, resource })) return "other_shop";
        if (index % SHOPS_IN_A_TURN === SHOPS_IN_A_TURN - 1) await nextTurn();
      }
      return "not_issued";
    },
  };
}

type IssuedText = NonNullable<ReturnType<typeof readCheckpoint>>;

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
    /** Whether the text was issued with this key for this shop and resource, in any branch. */
    isIssued(key: Uint8Array, scope: Omit<CheckpointScope, "branch">) {
      const issued = macOf(key, scope, ISSUED, date, number).subarray(0, ISSUED_BYTES);
      return issued.equals(mac.subarray(0, ISSUED_BYTES)) || macOf(key, scope, "", date, number).equals(mac);
    },
  };
}

function authenticate(key: Uint8Array, { branch, ...scope }: CheckpointScope, date: string, number: Uint8Array) {
  const mac = macOf(key, scope, branch, date, number);
  if (branch !== "") macOf(key, scope, ISSUED, date, number).copy(mac, 0, 0, ISSUED_BYTES);
  return mac;
}

/** Stands for all branches. No branch has this name, because names of branches have no dash. */
const ISSUED = "-";

function macOf(
  key: Uint8Array,
  { shopId, resource }: Omit<CheckpointScope, "branch">,
  branch: string,
  date: string,
  number: Uint8Array,
) {
  const text = `${shopId} ${resource} ${date} ${branch}`;
  const mac = new CryptoHasher("sha256", key).update(text).update(number).digest();
  return Buffer.from(mac.buffer, mac.byteOffset, MAC_BYTES);
}

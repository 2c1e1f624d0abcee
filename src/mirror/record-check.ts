import { unknownContract } from "../domain/decide/decision.ts";
import type { IncomingRecord } from "../domain/records/record-schemas.ts";
import { parseRecordText } from "../domain/records/records.ts";
import type { Refusal } from "../domain/records/refusal.ts";
import type { ShopRef } from "../domain/shop.ts";
import { splitJson } from "../lib/json.ts";
import type { Slices } from "../lib/turns.ts";
import type { MirrorStore } from "../store/port/mirror.ts";

/** Records of one body that fit into one commit. More are stored as parts first. */
export const MAX_DIRECT_RECORDS = 250;
const MAX_DIRECT_CHARACTERS = 256 * 1024;
/** Small enough that one part, applied in one commit, holds up nobody. */
const RECORDS_PER_PART = 25;
const CHARACTERS_PER_PART = 32 * 1024;
/** Contracts that are looked up in one query. */
const CONTRACTS_PER_QUERY = 250;

/** A body whose records are all valid: the records, if they are few, or the JSON of parts for an IntakeBodyStore. */
export type CheckedBody = { accepted: number } & ({ records: IncomingRecord[] } | { parts: string[] });

type RefusedRecord = { refused: Refusal & { index: number } };

/**
 * Checks the records of a large body in slices, so that nobody waits for it, and stops at the first bad one. Of records
 * that become parts it also checks that the contracts they name are in the mirror, or come before them in the body: a
 * contract is never removed, so such a record can be applied later.
 */
export async function checkBody(
  text: string,
  shop: ShopRef,
  mirror: Pick<MirrorStore, "knownContracts">,
  slices: Slices,
): Promise<CheckedBody | RefusedRecord> {
  const slice = await slices.begin();
  const contracts = createContractCheck(shop, mirror);
  const parts: string[] = [];
  let pending: IncomingRecord[] = [];
  let pendingCharacters = 0;
  let accepted = 0;

  for (const recordText of splitJson(text)) {
    const pause = slice.pause();
    if (pause !== undefined) await pause;
    if (recordText === undefined) continue;
    const parsed = parseRecordText(recordText);
    if ("refused" in parsed) return { refused: { index: accepted, ...parsed.refused } };
    contracts.add(parsed.record, accepted);
    pending.push(parsed.record);
    pendingCharacters += recordText.length;
    accepted += 1;
    if (text.length <= MAX_DIRECT_CHARACTERS && accepted <= MAX_DIRECT_RECORDS) continue;
    if (pending.length >= RECORDS_PER_PART || pendingCharacters >= CHARACTERS_PER_PART) {
      for (let at = 0; at < pending.length; at += RECORDS_PER_PART)
        parts.push(JSON.stringify(pending.slice(at, at + RECORDS_PER_PART)));
      pending = [];
      pendingCharacters = 0;
    }
    const unknown = contracts.unchecked() >= CONTRACTS_PER_QUERY ? await contracts.check() : undefined;
    if (unknown !== undefined) return unknown;
  }
  if (parts.length === 0 && accepted <= MAX_DIRECT_RECORDS) return { accepted, records: pending };
  if (pending.length > 0) parts.push(JSON.stringify(pending));
  return (await contracts.check()) ?? { accepted, parts };
}

interface ContractCheck {
  /** Notes the contract that a record brings, or the one that it needs. */
  add(record: IncomingRecord, index: number): void;
  /** How many contracts have to be looked up. */
  unchecked(): number;
  /** @returns a refusal of the first record that needs a contract which is not in the mirror */
  check(): Promise<RefusedRecord | undefined>;
}

function createContractCheck(shop: ShopRef, mirror: Pick<MirrorStore, "knownContracts">): ContractCheck {
  /** Contracts that the body brought, or that are in the mirror. */
  const known = new Set<string>();
  /** The first record that needs each contract. */
  const needed = new Map<string, number>();
  return {
    add(record, index) {
      if (record.type === "subscription") known.add(record.shopifyId);
      if (record.type !== "order" && record.type !== "cancel_flow") return;
      const gid = record.subscription;
      if (!known.has(gid) && !needed.has(gid)) needed.set(gid, index);
    },
    unchecked: () => needed.size,
    async check() {
      if (needed.size === 0) return undefined;
      const found = await mirror.knownContracts(shop, [...needed.keys()]);
      for (const [gid, index] of needed) {
        if (!found.has(gid)) return { refused: { index, ...unknownContract(gid).refused } };
        known.add(gid);
      }
      needed.clear();
      return undefined;
    },
  };
}

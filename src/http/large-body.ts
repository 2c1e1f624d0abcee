import { SdsError } from "../domain/error.ts";
import type { IncomingRecord } from "../domain/records/record-schemas.ts";
import type { Shop } from "../domain/shop.ts";
import { createByteBudget } from "../lib/byte-budget.ts";
import { createSlots } from "../lib/slots.ts";
import type { Slices } from "../lib/turns.ts";
import type { BodyWriter } from "../mirror/body-writer.ts";
import { checkBody } from "../mirror/record-check.ts";
import type { RecordWriter } from "../mirror/record-writer.ts";
import type { MirrorStore } from "../store/port/mirror.ts";
import { badRecord, requireText, textOf } from "./bad-record.ts";
import type { Body } from "./body.ts";

/** Bytes of large bodies that are checked or applied at once, of one shop and of all. Their senders wait. */
const MAX_BYTES_OF_SHOP = 20 * 1024 * 1024;
const MAX_BYTES = 80 * 1024 * 1024;

/** For a post that would have to wait too long for the large bodies that its shop posted before. */
export const BODIES_WAIT = "A large body of this shop is still being applied. It is safe to try again.";

export interface LargeBodyDependencies {
  mirror: Pick<MirrorStore, "knownContracts">;
  recordWriter: Pick<RecordWriter, "submit">;
  bodyWriter: Pick<BodyWriter, "submit" | "waitForBodies">;
  slices: Slices;
}

/** Checks and applies bodies that are too large to be read at once. */
export interface LargeBodies {
  /** Applies the records of a body in slices. @throws SdsError `bad_record`, `unavailable`; StoreError */
  apply(shop: Shop, body: Body): Promise<number>;
  /** Waits for the body that is checked or stored now. Others, and later ones, are refused with `unavailable`. */
  stop(): Promise<void>;
}

export function createLargeBodies(dependencies: LargeBodyDependencies): LargeBodies {
  // One after another, so that only one body at a time is in memory as text and as records.
  const checks = createSlots(1);
  let stopping = false;
  const underWay = createByteBudget({ maxBytes: MAX_BYTES, maxBytesOfOwner: MAX_BYTES_OF_SHOP });

  function enter({ id }: Shop, bytes: number): Disposable {
    const share = underWay.take(id, bytes);
    if (!("exceeded" in share)) return share;
    const whose = share.exceeded === "own" ? " of this shop" : "";
    throw new SdsError("unavailable", `Too many large bodies${whose} are being applied. It is safe to try again.`);
  }

  return {
    async apply(shop, body) {
      using _share = enter(shop, body.bytes.length);
      const { accepted, applied } = await checks.run(async () => {
        if (stopping) throw new SdsError("unavailable", "The program stops. It is safe to try again.");
        return checkAndStore(dependencies, shop, body);
      });
      await applied;
      return accepted;
    },
    async stop() {
      stopping = true;
      await checks.run(async () => undefined);
    },
  };
}

async function checkAndStore(
  { mirror, recordWriter, bodyWriter, slices }: LargeBodyDependencies,
  shop: Shop,
  body: Body,
): Promise<{ accepted: number; applied: Promise<void> }> {
  await slices.next();
  const text = textOf(body.bytes);
  const checked = await checkBody(text, shop, mirror, slices);
  if ("refused" in checked) throw badRecord(checked.refused);
  const { accepted } = checked;
  if (accepted === 0) requireText(text);
  // Other shops must not wait until this one's bodies are applied.
  if ("records" in checked) return { accepted, applied: applyFew(checked.records) };
  const result = await bodyWriter.submit(shop, checked.parts);
  if ("refused" in result) throw badRecord(result.refused);
  // What is stored need not be in memory while it is applied.
  body[Symbol.dispose]();
  return { accepted, applied: result.applied };

  /** For records that fit into one commit. */
  async function applyFew(records: IncomingRecord[]): Promise<void> {
    if (!(await bodyWriter.waitForBodies(shop))) throw new SdsError("unavailable", BODIES_WAIT);
    const applied = await recordWriter.submit({ shop, records });
    if ("refused" in applied) throw badRecord(applied.refused);
  }
}

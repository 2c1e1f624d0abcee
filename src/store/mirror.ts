import type { Database } from "bun:sqlite";
import { decide } from "../domain/change.ts";
import type { Event } from "../domain/event.ts";
import type { MirrorRecord, Refusal } from "../domain/records.ts";
import { Batch } from "./batch.ts";
import { type OutboxSession, openOutbox } from "./outbox.ts";
import { mirrorRows } from "./rows.ts";

/** Records of one shop that are applied together or not at all. */
export interface Submission {
  shop: { id: number; domain: string };
  records: readonly MirrorRecord[];
  /** The platform's webhook that brought them; one taken before brings nothing. */
  webhookId?: string;
  /** Nothing is queued for what these records change: a first load tells no one of what happened long ago. */
  quiet?: boolean;
}

/** A refusal names the record by its place in the submission, counted from 0. */
export type Applied = { accepted: number; changed: number; events: number } | { refused: Refusal & { index: number } };

export interface MirrorStore {
  /**
   * Applies submissions in order, in one transaction: when this resolves, what was not refused is on the disk. A refused
   * submission leaves no trace, and the others are applied all the same. The deliveries for what changed are queued with it;
   * `events` counts them.
   * @param now epoch milliseconds
   */
  applyRecords(submissions: readonly Submission[], now: number): Promise<Applied[]>;
  /** Forgets which of the platform's webhooks were taken before this time, epoch milliseconds. */
  forgetWebhooks(before: number): Promise<void>;
}

export function mirrorStore(db: Database, random: (bytes: number) => Uint8Array): MirrorStore {
  const rows = mirrorRows(db);
  const outbox = openOutbox(db, random);
  const exists = db.prepare<{ 1: number }, [number]>("SELECT 1 FROM shops WHERE id = ?");
  const addChanges = db.prepare<{ last: number }, [number, number]>(
    "UPDATE shops SET change_count = change_count + ? WHERE id = ? RETURNING change_count AS last",
  );
  const takeWebhook = db.prepare("INSERT OR IGNORE INTO platform_webhooks (shop_id, id, received_at) VALUES (?, ?, ?)");
  const forget = db.prepare("DELETE FROM platform_webhooks WHERE received_at < ?");

  function changeNumbers(shopId: number, n: number): number {
    return (addChanges.get(n, shopId)?.last ?? 0) - n + 1;
  }

  function apply({ shop, records, webhookId, quiet = false }: Submission, batch: Batch, session: OutboxSession, now: number): Applied {
    // Removed by another process since the caller looked it up.
    if (exists.get(shop.id) === null) return { refused: { index: 0, field: "", reason: `is for a shop that was removed: ${shop.domain}` } };
    const draft = batch.draft(shop);
    const events: Event[] = [];
    let changed = 0;
    for (const [index, record] of records.entries()) {
      const decision = decide(draft, record, now);
      if ("refused" in decision) return { refused: { index, ...decision.refused } };
      if (decision.rows.length > 0) changed += 1;
      for (const row of decision.rows) draft.put(row);
      events.push(...decision.events);
    }
    const taken = webhookId !== undefined && takeWebhook.run(shop.id, webhookId, now).changes === 0;
    if (taken) return { accepted: records.length, changed: 0, events: 0 };
    draft.keep();
    return { accepted: records.length, changed, events: quiet ? 0 : outbox.queue(session, shop, events, now) };
  }

  return {
    async applyRecords(submissions, now) {
      return db
        .transaction(() => {
          const batch = new Batch(rows);
          const session: OutboxSession = new Map();
          const results = submissions.map((submission) => apply(submission, batch, session, now));
          batch.write(changeNumbers);
          return results;
        })
        .immediate();
    },

    async forgetWebhooks(before) {
      forget.run(before);
    },
  };
}

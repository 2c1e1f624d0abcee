import { redactedId } from "../ids.ts";
import { isPersonalField } from "../people/person.ts";
import type { MirrorRecord } from "../records/platform-records.ts";
import type { RewardRecord } from "../records/record-schemas.ts";
import type { CustomerRow } from "../rows.ts";
import type { MirrorView } from "./snapshot.ts";

/** The input of an import. Records that are older than a redaction must not restore the redacted data. */
export interface RecordSource {
  /** The shop's change count when the import began. */
  changeCount: number;
  /** When the file last changed, epoch milliseconds; null if there is no such time, as for a pipe. */
  changedAt: number | null;
}

/**
 * Leaves out personal data of a person who was redacted after the source was written. Reads the same rows as `decide`.
 * @returns the same record if it has no such data; undefined if it has only such data
 */
export function withoutRedactedSince(
  mirror: MirrorView,
  record: MirrorRecord,
  source: RecordSource,
): MirrorRecord | undefined {
  const isRedacted = (customerId: string) => isRedactedSince(mirror.customer(customerId), source);
  switch (record.type) {
    case "customer": {
      if (!isRedacted(mirror.ids.customer(record.shopifyId))) return record;
      const { email, firstName, lastName, ...rest } = record;
      return email === undefined && firstName === undefined && lastName === undefined ? record : rest;
    }
    case "reward": {
      const isNew = !mirror.hasOccurrence("reward", record.id);
      return isNew && isRedacted(mirror.ids.customer(record.customer)) ? withoutTexts(record) : record;
    }
    case "custom_field": {
      const contract = mirror.subscription(mirror.ids.subscription(record.subscription));
      const isPersonal = mirror.fields.some(({ key, personal }) => personal && key === record.key);
      if (!isPersonal || record.value === null || contract === undefined) return record;
      return isRedacted(contract.resource.customerId) ? undefined : record;
    }
    default:
      return record;
  }
}

/**
 * Leaves out all texts of the sender, and replaces the id by its hash. Any text can contain the person's name. A search
 * for the name is impossible, because the redaction removed the name from the mirror.
 */
function withoutTexts({ type, id, source, customer, ...own }: RewardRecord): RewardRecord {
  const kept = Object.entries(own).filter(
    ([field, value]) => (typeof value === "number" || typeof value === "boolean") && !isPersonalField(field),
  );
  return { type, id: redactedId(id), source, customer, ...Object.fromEntries(kept) };
}

function isRedactedSince(row: CustomerRow | undefined, { changeCount, changedAt }: RecordSource): boolean {
  const { redactedAt = null, redactedAfter = null } = row ?? {};
  if (redactedAt === null || redactedAfter === null) return false;
  // Times alone are not enough: clocks differ, and a redaction can wait for a lock after it noted its time. So change
  // counts are compared too.
  return redactedAfter >= changeCount || (changedAt !== null && changedAt <= redactedAt);
}

import type { Profile } from "../people/person.ts";
import { redactionOf, type StoredText } from "../people/redaction.ts";
import type { MirrorRecord } from "../records/platform-records.ts";
import type { CustomerRecord, RewardRecord } from "../records/record-schemas.ts";
import type { CustomerRow } from "../rows.ts";
import type { MirrorView } from "./snapshot.ts";

/** Where an import reads its records. What a redaction removed must not come back with older data. */
export interface RecordSource {
  /** The shop's change count when the import began. */
  changeCount: number;
  /** When the file last changed, epoch milliseconds; null for data without such a time, as from a pipe. */
  changedAt: number | null;
}

/**
 * Leaves out personal data of a person who was redacted since the source was made. Needs the rows that `decide` needs.
 * @param all records of the submission. They can tell the name of a person whose stored name is gone
 * @returns the record itself if nothing is left out, undefined if nothing is left of it
 */
export function withoutRedactedSince(
  mirror: MirrorView,
  domain: string,
  record: MirrorRecord,
  source: RecordSource,
  all: readonly MirrorRecord[],
): MirrorRecord | undefined {
  const redacted = (customerId: string) => {
    const row = mirror.customer(customerId);
    return row !== undefined && isRedactedSince(row, source) ? row : undefined;
  };
  switch (record.type) {
    case "customer": {
      const { email, firstName, lastName, ...rest } = record;
      const hasProfile = email !== undefined || firstName !== undefined || lastName !== undefined;
      return hasProfile && redacted(mirror.ids.customer(record.shopifyId)) !== undefined ? rest : record;
    }
    case "reward": {
      const row = redacted(mirror.ids.customer(record.customer));
      if (row === undefined) return record;
      const own = all.filter((each) => each.type === "customer" && each.shopifyId === record.customer);
      const before: StoredText = { place: "reward", key: record.id, text: JSON.stringify(record) };
      const profiles: Profile[] = [row.resource, ...(own as CustomerRecord[])];
      const after = profiles.reduce((text, profile) => redactionOf(domain, record.customer, profile)(text), before);
      return after.text === before.text ? record : (JSON.parse(after.text) as RewardRecord);
    }
    case "custom_field": {
      const contract = mirror.subscription(mirror.ids.subscription(record.subscription));
      const isPersonal = mirror.fields.some(({ key, personal }) => personal && key === record.key);
      if (!isPersonal || record.value === null || contract === undefined) return record;
      return redacted(contract.resource.customerId) === undefined ? record : undefined;
    }
    default:
      return record;
  }
}

function isRedactedSince(
  { redactedAt, redactedAfter }: CustomerRow,
  { changeCount, changedAt }: RecordSource,
): boolean {
  if (redactedAt === null || redactedAfter === null) return false;
  // Numbers of changes, because clocks can differ or be set, and a redaction can wait for the lock of the database.
  return redactedAfter >= changeCount || (changedAt !== null && changedAt <= redactedAt);
}

import { isoUtc } from "../../lib/time.ts";
import type { ShopIds } from "../ids.ts";
import { type KnownPerson, knownPerson, withoutIdentity } from "../people/person.ts";
import type { RedactionRecord } from "../records/platform-records.ts";
import type { CustomerRecord } from "../records/record-schemas.ts";
import type { CustomerRow, CustomFieldsRow, OrderRow, Row, SubscriptionRow } from "../rows.ts";
import { withoutPersonalFields } from "./custom-field.ts";
import { type Decision, differs, keep, type MirrorView, NOTHING } from "./snapshot.ts";

/** Returns a customer of whom we know only the gid, because their own record did not arrive yet. */
export function emptyCustomer(ids: ShopIds, gid: string, now: number): CustomerRow {
  return {
    kind: "customer",
    resource: {
      id: ids.customer(gid),
      shopifyId: gid,
      email: null,
      firstName: null,
      lastName: null,
      marketingConsent: false,
      creditsCents: 0,
      loyaltyTier: 0,
      subscriptionCount: 0,
      createdAt: isoUtc(now),
    },
    profileAsOf: null,
    consentAsOf: null,
    redactedAt: null,
    redactedAfter: null,
  };
}

/**
 * Applies a customer record. Absent fields keep the stored values. The platform's data changes nothing if it is older
 * than the stored data.
 */
export function decideCustomer(mirror: MirrorView, record: CustomerRecord, now: number): Decision {
  const before = mirror.customer(mirror.ids.customer(record.shopifyId));
  const base = before ?? emptyCustomer(mirror.ids, record.shopifyId, now);
  const asOf = limitAhead(record.asOf, now);
  const consentAsOf = limitAhead(record.consentAsOf ?? record.asOf, now);
  const outdated = (given: number | undefined, known: number | null) =>
    given !== undefined && known !== null && given < known;
  const hasProfile = record.email !== undefined || record.firstName !== undefined || record.lastName !== undefined;
  const usesProfile = hasProfile && !outdated(asOf, base.profileAsOf);
  const usesConsent = record.marketingConsent !== undefined && !outdated(consentAsOf, base.consentAsOf);
  const { resource } = base;
  const after: CustomerRow = {
    ...base,
    resource: {
      ...resource,
      ...(usesProfile && {
        email: keep(record.email, resource.email),
        firstName: keep(record.firstName, resource.firstName),
        lastName: keep(record.lastName, resource.lastName),
      }),
      ...(usesConsent && { marketingConsent: record.marketingConsent ?? false }),
      creditsCents: keep(record.creditsCents, resource.creditsCents) ?? 0,
      loyaltyTier: keep(record.loyaltyTier, resource.loyaltyTier) ?? 0,
    },
    profileAsOf: usesProfile && asOf !== undefined ? asOf : base.profileAsOf,
    consentAsOf: usesConsent && consentAsOf !== undefined ? consentAsOf : base.consentAsOf,
  };
  return differs(before, after) ? { rows: [after], events: [] } : NOTHING;
}

/** Maximum time by which a stored time is ahead of our clock. The platform's clock can be ahead of our clock. */
const MAX_CHANGE_AHEAD_MS = 3_600_000;
/** Maximum time by which a plausible time is ahead of our clock. */
const MAX_PLAUSIBLE_MS = 86_400_000;

/**
 * Limits how far a time in the platform's data may be in the future. Data is ignored if it is older than the stored
 * time, so a future time would block newer data. The current time replaces an implausible time.
 */
function limitAhead(asOf: number | undefined, now: number): number | undefined {
  if (asOf === undefined) return undefined;
  return asOf > now + MAX_PLAUSIBLE_MS ? now : Math.min(asOf, now + MAX_CHANGE_AHEAD_MS);
}

/** Returns the customer with `difference` added to the number of contracts. */
export function withSubscriptions(row: CustomerRow, difference: number): CustomerRow {
  const subscriptionCount = row.resource.subscriptionCount + difference;
  return { ...row, resource: { ...row.resource, subscriptionCount } };
}

/**
 * Empties the customer's own row, and removes personal fields and texts from their subscriptions and orders.
 * `redactionOf` covers the other texts that name the customer.
 */
export function decideRedaction(mirror: MirrorView, record: RedactionRecord, now: number): Decision {
  const before = mirror.customer(mirror.ids.customer(record.shopifyId));
  // An unknown customer gets a row too, so that older data of the platform is ignored when it arrives.
  const base = before ?? emptyCustomer(mirror.ids, record.shopifyId, now);
  const resource = { ...base.resource, email: null, firstName: null, lastName: null };
  const after: CustomerRow = {
    ...base,
    resource,
    profileAsOf: Math.max(limitAhead(record.asOf, now) ?? 0, base.profileAsOf ?? 0) + 1,
    redactedAt: Math.max(now, base.redactedAt ?? 0),
    redactedAfter: mirror.changeCount,
  };
  const person = knownPerson(before?.resource, record.contacts);
  const rows: Row[] = [after];
  const customFields: CustomFieldsRow[] = [];
  for (const row of mirror.rowsOf(resource.id)) {
    const redacted = withoutTexts(row, person);
    const fields = row.kind === "subscription" ? withoutPersonalFields(mirror, row) : undefined;
    if (fields !== undefined) customFields.push(fields);
    if (fields !== undefined || differs(row, redacted)) rows.push(redacted);
  }
  return { rows, events: [], customFields };
}

function withoutTexts(row: SubscriptionRow | OrderRow, person: KnownPerson): SubscriptionRow | OrderRow {
  const lines = row.resource.lines.map((line) => ({ ...line, title: withoutIdentity(line.title, person) }));
  if (row.kind === "subscription") return { ...row, resource: { ...row.resource, lines } };
  const reason = row.reason === null ? null : withoutIdentity(row.reason, person);
  return { ...row, resource: { ...row.resource, lines }, reason };
}

import { SPAN_MS } from "../domain/decide/commit.ts";
import type { DeliveryStatus } from "../domain/deliveries/delivery.ts";
import type { UnsentReason } from "../domain/deliveries/event-queue.ts";
import { invalid, SdsError } from "../domain/error.ts";
import type { MirroredShop } from "../domain/shop.ts";
import type { Store } from "../store/port/store.ts";
import { type FoundRow, findRows, isSubject, subjectsOf } from "./delivery-search.ts";

/** Number of newest deliveries that are shown. `sds delivery list` shows older deliveries too. */
const NEWEST_DELIVERIES = 250;

/**
 * What became of an event or of a changed row: a delivery's status, why there is no delivery (`UnsentReason`), or:
 * - `no_topic`: the row changed, and no topic tells of this change;
 * - `pruned`: all entries about the row are too old, and were removed together with old deliveries;
 * - `redacted`: the customer's personal data was removed;
 * - `nothing_changed`: this was the last change. Later records, if any, were older or changed nothing.
 */
export type DecisionCode = DeliveryStatus | UnsentReason | "no_topic" | "pruned" | "redacted" | "nothing_changed";

export interface DeliveryDecision {
  /** Epoch milliseconds; null if the time is unknown. */
  at: number | null;
  /** A topic or the handle of a workflow trigger; null if the decision is about a row. */
  topic: string | null;
  decision: DecisionCode;
  /** Id of the delivery; null if there is no delivery. */
  delivery: string | null;
  /** The error of the last attempt; null without an attempt or after a success. */
  error: string | null;
}

/**
 * Lists the deliveries about a contract, an order or a customer, and why other events were not sent. Oldest first.
 * @param typed a gid, an internal id, or a number
 * @param since epoch milliseconds: entries from before this time are no longer stored
 * @throws SdsError `invalid` for a text that is no id, `not_found` if the shop has no such row
 */
export async function explainDeliveries(
  { pages, deliveries, history }: Pick<Store, "pages" | "deliveries" | "history">,
  shop: MirroredShop,
  typed: string,
  since: number,
): Promise<DeliveryDecision[]> {
  if (!isSubject(typed)) throw invalid(`"${typed}" is no gid, id or number of a contract, an order or a customer`);
  const rows = await findRows(pages, shop, typed);
  if (rows.length === 0) throw new SdsError("not_found", `${shop.domain} has no contract, order or customer ${typed}`);
  const subjects = await subjectsOf(pages, shop.id, rows);
  const queued = await deliveries.list(shop.id, { limit: NEWEST_DELIVERIES, subjects });
  const unsent = await history.unsentEvents(shop.id, subjects, since);
  const decided = [
    ...queued.toReversed().map(({ id, createdAt, topic, status, error }) => ({
      ...{ at: createdAt, topic, decision: status, delivery: id, error },
    })),
    ...unsent.map(({ at, topic, reason }) => ({ at, topic, decision: reason, delivery: null, error: null })),
    ...(await redactions(history, shop.id, rows)),
  ].toSorted((a, b) => a.at - b.at);
  return [...decided, ...(await lastChanges(history, shop.id, rows, since, decided))];
}

/** Returns an entry for each of the rows' customers, if the customer's personal data was removed. */
async function redactions(history: Store["history"], shopId: number, rows: readonly FoundRow[]) {
  const customers = new Set(rows.map(({ resource, id, customerId }) => (resource === "customers" ? id : customerId)));
  const times = await Promise.all(Array.from(customers, (id) => id !== null && history.redactedAt(shopId, id)));
  return times
    .filter((at) => typeof at === "number")
    .map((at) => ({ ...ABOUT_ROW, at, decision: "redacted" as const }));
}

const ABOUT_ROW = { topic: null, delivery: null, error: null };

/**
 * Returns the entries of the last change. A record that changes nothing is not stored, so only the time of the last
 * change is known.
 * @param decided the other entries, oldest first
 */
async function lastChanges(
  history: Store["history"],
  shopId: number,
  rows: readonly FoundRow[],
  since: number,
  decided: readonly { at: number }[],
): Promise<DeliveryDecision[]> {
  const times = await Promise.all(rows.map(({ resource, id }) => history.lastChange(shopId, resource, id, since)));
  const changes = times.filter((at) => at !== undefined);
  if (changes.length === 0)
    return decided.length === 0 ? [{ ...ABOUT_ROW, at: null, decision: "pruned" as const }] : [];
  const span = Math.max(...changes);
  const decidedAt = decided.findLast(({ at }) => at < span + SPAN_MS)?.at ?? 0;
  // Only the span of the change is known. An event in this span was decided at about the time of the change.
  const at = Math.max(span, decidedAt);
  return [
    ...(decidedAt >= span ? [] : [{ ...ABOUT_ROW, at, decision: "no_topic" as const }]),
    { ...ABOUT_ROW, at, decision: "nothing_changed" as const },
  ];
}

import { findSubjects, isSubject } from "../../../actions/delivery-search.ts";
import { DELIVERY_STATUSES, type DeliveryKind, type DeliveryStatus } from "../../../domain/deliveries/delivery.ts";
import { TOPIC_NAMES } from "../../../domain/events/event.ts";
import { TRIGGER_HANDLES, TRIGGERS } from "../../../domain/events/trigger.ts";
import type { MirroredShop } from "../../../domain/shop.ts";
import type { DeliveryFilter } from "../../../store/port/deliveries.ts";
import type { PageStore } from "../../../store/port/pages.ts";
import { quoted, readDays, readTyped, type Search, type SearchField } from "../search.tsx";

const FIELDS = ["status", "topic", "from", "to", "subject"] as const;
type Field = (typeof FIELDS)[number];
const DELIVERY_ID = /^whd_[a-z2-7]{24}$/;

export const STATUS_NAMES: Record<DeliveryStatus, string> = {
  pending: "Pending",
  retrying: "Retrying",
  delivered: "Delivered",
  dead: "Dead",
};

/** A search of the delivery log, from the parameters of an address. */
export interface LogSearch extends Search<Field> {
  /** The filter. It uses only fields with valid values. */
  filter: Omit<DeliveryFilter, "limit">;
  /** Where the page begins or ends. For the newest page, neither field is set. */
  place: Pick<DeliveryFilter, "before" | "after">;
  /** Ids of the deliveries on screen, newest first. Empty unless the script asks for the current state of the rows. */
  onScreen: string[];
}

/** Reads a search from the parameters of an address. */
export async function readSearch(
  pages: PageStore,
  shop: MirroredShop,
  kind: DeliveryKind,
  query: URLSearchParams,
): Promise<LogSearch> {
  const search = readTyped(FIELDS, query);
  const { typed, refusals } = search;
  const { status, topic, subject } = typed;
  const filter: LogSearch["filter"] = { kind, ...readDays(search) };
  const foundStatus = DELIVERY_STATUSES.find((each) => each === status);
  if (foundStatus !== undefined) filter.status = foundStatus;
  else if (status !== "") refusals.status = `${quoted(status)} is not a status.`;
  if (topicsOf(kind).some(([value]) => value === topic)) filter.topic = topic;
  else if (topic !== "") refusals.topic = `${quoted(topic)} is not a ${kind === "webhook" ? "topic" : "trigger"}.`;
  if (subject !== "" && !isSubject(subject))
    refusals.subject = `${quoted(subject)} is not an id or number of a subscription, an order or a customer.`;
  else if (subject !== "") filter.subjects = await findSubjects(pages, shop, subject);
  return { ...search, filter, place: placeOf(query), onScreen: idsOf(query.get("rows")) };
}

function placeOf(query: URLSearchParams): LogSearch["place"] {
  const [before] = idsOf(query.get("before"));
  const [after] = idsOf(query.get("after"));
  if (after !== undefined) return { after };
  return before === undefined ? {} : { before };
}

function idsOf(list: string | null): string[] {
  return (list ?? "").split(",", 100).filter((id) => DELIVERY_ID.test(id));
}

function topicsOf(kind: DeliveryKind): (readonly [value: string, name: string])[] {
  return kind === "webhook"
    ? TOPIC_NAMES.map((topic) => [topic, topic])
    : TRIGGER_HANDLES.map((handle) => [handle, TRIGGERS[handle].name]);
}

/** Returns the search fields before and after the two date fields. */
export function searchFields(kind: DeliveryKind): Record<"fields" | "lastFields", SearchField[]> {
  return {
    fields: [
      { name: "status", label: "Status", options: Object.entries(STATUS_NAMES) },
      { name: "topic", label: kind === "webhook" ? "Topic" : "Trigger", options: topicsOf(kind) },
    ],
    lastFields: [
      { name: "subject", label: "Subscription, order or customer", example: "Number, such as 5003", isWide: true },
    ],
  };
}

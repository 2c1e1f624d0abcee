/** @jsxImportSource preact */
import type { ComponentChildren } from "preact";
import { findSubjects, isSubject } from "../../../actions/delivery-search.ts";
import { DELIVERY_STATUSES, type DeliveryKind, type DeliveryStatus } from "../../../domain/deliveries/delivery.ts";
import { TOPIC_NAMES } from "../../../domain/events/event.ts";
import { TRIGGER_HANDLES, TRIGGERS } from "../../../domain/events/trigger.ts";
import type { MirroredShop } from "../../../domain/shop.ts";
import { printable } from "../../../lib/log.ts";
import { DAY_MS, parseUtc } from "../../../lib/time.ts";
import type { DeliveryFilter } from "../../../store/port/deliveries.ts";
import type { PageStore } from "../../../store/port/pages.ts";
import { FieldError, fieldAttributes, Link, SearchForm } from "../components.tsx";

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
export interface LogSearch {
  /** What was typed into each field; empty for a field that restricts nothing. */
  typed: Record<Field, string>;
  /** Why a field is refused. */
  refusals: Partial<Record<Field, string>>;
  /** What the fields say, without the refused ones. */
  filter: Omit<DeliveryFilter, "limit">;
  /** Where the page begins or ends. The newest page has neither. */
  place: Pick<DeliveryFilter, "before" | "after">;
  /** The deliveries on screen, newest first, where the script asks for their present state. */
  onScreen: string[];
}

/** Reads a search from the parameters of an address. */
export async function readSearch(
  pages: PageStore,
  shop: MirroredShop,
  kind: DeliveryKind,
  query: URLSearchParams,
): Promise<LogSearch> {
  const typed = Object.fromEntries(FIELDS.map((field) => [field, (query.get(field) ?? "").trim()])) as Record<
    Field,
    string
  >;
  const { status, topic, from, to, subject } = typed;
  const refusals: LogSearch["refusals"] = {};
  const filter: LogSearch["filter"] = { kind };
  const foundStatus = DELIVERY_STATUSES.find((each) => each === status);
  if (foundStatus !== undefined) filter.status = foundStatus;
  else if (status !== "") refusals.status = `${quoted(status)} is not a status.`;
  if (topicsOf(kind).some(([value]) => value === topic)) filter.topic = topic;
  else if (topic !== "") refusals.topic = `${quoted(topic)} is not a ${kind === "webhook" ? "topic" : "trigger"}.`;
  for (const [field, text] of [["from", from] as const, ["to", to] as const]) {
    const day = parseUtc(`${text}T00:00:00Z`);
    if (text === "") continue;
    if (day === undefined) refusals[field] = `${quoted(text)} is not a date like 2026-01-31.`;
    else filter[field] = field === "to" ? day + DAY_MS : day;
  }
  if (filter.from !== undefined && filter.to !== undefined && filter.from >= filter.to)
    refusals.to = "This day is before the first day.";
  if (subject !== "" && !isSubject(subject))
    refusals.subject = `${quoted(subject)} is not an id or number of a subscription, an order or a customer.`;
  else if (subject !== "") filter.subjects = await findSubjects(pages, shop, subject);
  return { typed, refusals, filter, place: placeOf(query), onScreen: idsOf(query.get("rows")) };
}

function quoted(typed: string): string {
  return `“${printable(typed.slice(0, 100))}”`;
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

/** Writes the query of a search. @param more parameters such as the place */
export function queryOf({ typed }: LogSearch, more: Record<string, string> = {}): string {
  const query = new URLSearchParams(Object.entries({ ...typed, ...more }).filter(([, value]) => value !== ""));
  return query.size === 0 ? "" : `?${query}`;
}

export function isNarrowed({ typed }: LogSearch): boolean {
  return FIELDS.some((field) => typed[field] !== "");
}

function topicsOf(kind: DeliveryKind): (readonly [value: string, name: string])[] {
  return kind === "webhook"
    ? TOPIC_NAMES.map((topic) => [topic, topic])
    : TRIGGER_HANDLES.map((handle) => [handle, TRIGGERS[handle].name]);
}

/** The form of a search. A refused value stays in its field, where the field can have it. */
export function Filters({ kind, tab, search }: { kind: DeliveryKind; tab: string; search: LogSearch }) {
  const { typed, refusals } = search;
  const attributesOf = (name: Field) => ({ id: name, name, ...fieldAttributes(refusals[name], `${name}-error`) });
  const statuses = DELIVERY_STATUSES.map((status) => [status, STATUS_NAMES[status]] as const);
  return (
    <SearchForm id="filters" label="Search the log" action={tab}>
      <FilterField name="status" label="Status" {...search}>
        <select {...attributesOf("status")}>
          <Options options={statuses} chosen={typed.status} />
        </select>
      </FilterField>
      <FilterField name="topic" label={kind === "webhook" ? "Topic" : "Trigger"} {...search}>
        <select {...attributesOf("topic")}>
          <Options options={topicsOf(kind)} chosen={typed.topic} />
        </select>
      </FilterField>
      <FilterField name="from" label="From (UTC)" {...search}>
        <input type="date" value={typed.from} {...attributesOf("from")} />
      </FilterField>
      <FilterField name="to" label="To (UTC)" {...search}>
        <input type="date" value={typed.to} {...attributesOf("to")} />
      </FilterField>
      <FilterField name="subject" label="Subscription, order or customer" {...search}>
        <input type="search" value={typed.subject} placeholder="Number, such as 5003" {...attributesOf("subject")} />
      </FilterField>
      <button type="submit" id="search" class="secondary">
        Search
      </button>
      {isNarrowed(search) ? (
        <Link id="clear" to={tab}>
          Clear
        </Link>
      ) : null}
    </SearchForm>
  );
}

interface FilterFieldProps extends Pick<LogSearch, "refusals"> {
  name: Field;
  label: string;
  children: ComponentChildren;
}

function FilterField({ name, label, refusals, children }: FilterFieldProps) {
  return (
    <div class={name === "subject" ? "wide" : undefined}>
      <label for={name}>{label}</label>
      {children}
      <FieldError id={`${name}-error`} error={refusals[name]} />
    </div>
  );
}

function Options({ options, chosen }: { options: ReturnType<typeof topicsOf>; chosen: string }) {
  return (
    <>
      <option value="">All</option>
      {options.map(([value, text]) => (
        <option value={value} selected={value === chosen}>
          {text}
        </option>
      ))}
    </>
  );
}

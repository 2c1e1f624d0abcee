/** @jsxImportSource preact */
import { printable } from "../../lib/log.ts";
import { DAY_MS, parseUtc } from "../../lib/time.ts";
import { FieldError, fieldAttributes, Link, SearchForm } from "./components.tsx";

/** A search of a list by fields, from the parameters of an address. */
export interface Search<Field extends string> {
  /** What was typed into each field; empty for a field that restricts nothing. */
  typed: Record<Field, string>;
  /** Why a field is refused. */
  refusals: Partial<Record<Field, string>>;
}

export function readTyped<Field extends string>(fields: readonly Field[], query: URLSearchParams): Search<Field> {
  const texts = fields.map((field) => [field, (query.get(field) ?? "").trim()] as const);
  return { typed: Object.fromEntries(texts) as Record<Field, string>, refusals: {} };
}

/** Reads the first and the last day, in UTC. `to` is the end of the last day. Notes why a day is refused. */
export function readDays({ typed, refusals }: Search<"from" | "to">): { from?: number; to?: number } {
  const days: { from?: number; to?: number } = {};
  for (const field of ["from", "to"] as const) {
    const text = typed[field];
    const day = parseUtc(`${text}T00:00:00Z`);
    if (text === "") continue;
    if (day === undefined) refusals[field] = `${quoted(text)} is not a date like 2026-01-31.`;
    else days[field] = field === "to" ? day + DAY_MS : day;
  }
  if (days.from !== undefined && days.to !== undefined && days.from >= days.to)
    refusals.to = "This day is before the first day.";
  return days;
}

export function quoted(typed: string): string {
  return `“${printable(typed.slice(0, 100))}”`;
}

/** Returns the query of a search; empty without parameters. @param more other parameters, such as the page's start */
export function queryOf({ typed }: Search<string>, more: Record<string, string> = {}): string {
  const query = new URLSearchParams(Object.entries({ ...typed, ...more }).filter(([, value]) => value !== ""));
  return query.size === 0 ? "" : `?${query}`;
}

export function isNarrowed({ typed }: Search<string>): boolean {
  return Object.values(typed).some((text) => text !== "");
}

/** A field of a search: a select with options, or a text with an example. */
export interface SearchField {
  name: string;
  label: string;
  options?: readonly (readonly [value: string, name: string])[];
  example?: string;
  isWide?: boolean;
}

interface FiltersProps {
  /** Tells screen readers what the form searches. */
  label: string;
  tab: string;
  search: Search<string>;
  /** The fields before the two date fields. */
  fields: readonly SearchField[];
  /** The fields after the two date fields. */
  lastFields?: readonly SearchField[];
}

/** The form of a search. A refused value stays in its field, if the field can show it. */
export function Filters({ label, tab, search, fields, lastFields = [] }: FiltersProps) {
  const shown = (field: SearchField) => <FilterField {...field} search={search} />;
  return (
    <SearchForm id="filters" label={label} action={tab}>
      {fields.map(shown)}
      <FilterField name="from" label="From (UTC)" isDate search={search} />
      <FilterField name="to" label="To (UTC)" isDate search={search} />
      {lastFields.map(shown)}
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

interface FilterFieldProps extends SearchField {
  search: Search<string>;
  isDate?: boolean;
}

function FilterField({ name, label, options, example, isWide, isDate, search: { typed, refusals } }: FilterFieldProps) {
  const error = refusals[name];
  const value = typed[name] ?? "";
  const attributes = { id: name, name, ...fieldAttributes(error, `${name}-error`) };
  return (
    <div class={isWide ? "wide" : undefined}>
      <label for={name}>{label}</label>
      {options !== undefined ? (
        <select {...attributes}>
          <Options options={options} chosen={value} />
        </select>
      ) : isDate ? (
        <input type="date" value={value} {...attributes} />
      ) : (
        <input type="search" value={value} placeholder={example} {...attributes} />
      )}
      <FieldError id={`${name}-error`} error={error} />
    </div>
  );
}

function Options({ options, chosen }: { options: readonly (readonly [string, string])[]; chosen: string }) {
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

/** Links to the next newer and the next older page of a list. @param newer path; null if there is no such page */
export function Pager({ newer, older }: { newer: string | null; older: string | null }) {
  if (newer === null && older === null) return null;
  return (
    <nav class="pager" aria-label="Pages">
      {newer === null ? (
        <span />
      ) : (
        <Link id="newer" to={newer}>
          ‹ Newer
        </Link>
      )}
      {older === null ? null : (
        <Link id="older" to={older}>
          Older ›
        </Link>
      )}
    </nav>
  );
}

/** @jsxImportSource preact */
import { changedText } from "../../../actions/audit.ts";
import { AUDITED, AUDITED_ACTIONS } from "../../../domain/audit.ts";
import { printable } from "../../../lib/log.ts";
import { DAY_MS, parseUtc } from "../../../lib/time.ts";
import type { AuditFilter, AuditPage, AuditPlace, NumberedEntry } from "../../../store/port/audit.ts";
import type { Handler } from "../admin-request.ts";
import { CardTable, Cell, NameCell, Row } from "../card-table.ts";
import { Age, Empty, FieldError, fieldAttributes, Link, SearchForm } from "../components.tsx";

const TAB = "/audit";
const ROWS = 50;
/** How long a page goes on with a search that found too few entries. */
const SEARCH_MS = 50;
const NO_ENTRIES: AuditPage = { entries: [], end: null };
const FIELDS = ["who", "what", "from", "to"] as const;
type AuditField = (typeof FIELDS)[number];

/** A search of the audit list, from the parameters of an address. */
interface AuditSearch {
  typed: Record<AuditField, string>;
  refusals: Partial<Record<AuditField, string>>;
  filter: AuditFilter;
  place: AuditPlace;
}

/** Shows who did what in the shop, newest first. */
export const showAudit: Handler = async ({ shop, query }, { store, now, steadyTime }) => {
  const search = readSearch(query);
  const { filter, place, refusals } = search;
  const began = steadyTime();
  const goesOn = () => steadyTime() - began < SEARCH_MS;
  const found =
    Object.keys(refusals).length > 0 ? NO_ENTRIES : await store.audit.page(shop.id, filter, place, ROWS + 1, goesOn);
  const isBackwards = place.newerThan !== undefined;
  const entries = isBackwards ? found.entries.slice(-ROWS) : found.entries.slice(0, ROWS);
  const { newer, older } = neighboursOf(found, entries, place);
  const content = (
    <>
      <p>Who changed what in this service, and who looked at personal data. Entries are kept for a year.</p>
      <Filters search={search} />
      {entries.length === 0 ? (
        <Empty id="no-entries">{noEntriesText(found, isBackwards)}</Empty>
      ) : (
        <EntryTable entries={entries} now={now()} />
      )}
      <nav class="pager" aria-label="Pages">
        {newer === undefined ? (
          <span />
        ) : (
          <Link id="newer" to={addressOf(search, { newer: String(newer) })}>
            ‹ Newer
          </Link>
        )}
        {older === undefined ? null : (
          <Link id="older" to={addressOf(search, { older: String(older) })}>
            Older ›
          </Link>
        )}
      </nav>
    </>
  );
  return { title: "Audit", tab: TAB, status: Object.keys(refusals).length > 0 ? 422 : 200, content };
};

/** Returns the numbers beside which the next pages begin; undefined without a page. */
function neighboursOf(
  { entries: found, end }: AuditPage,
  entries: readonly NumberedEntry[],
  { olderThan, newerThan }: AuditPlace,
): { newer: number | undefined; older: number | undefined } {
  const [first, last] = [entries[0]?.number, entries.at(-1)?.number];
  const hasMore = found.length > ROWS;
  if (newerThan !== undefined) return { newer: hasMore ? first : (end ?? undefined), older: last ?? newerThan + 1 };
  const newer = olderThan === undefined ? undefined : (first ?? olderThan - 1);
  return { newer, older: hasMore ? last : (end ?? undefined) };
}

function noEntriesText({ end }: AuditPage, isBackwards: boolean): string {
  if (end === null) return "No entry matches.";
  return isBackwards
    ? "The older entries do not match. “Newer” searches on."
    : "The newer entries do not match. “Older” searches on.";
}

function readSearch(query: URLSearchParams): AuditSearch {
  // PostgreSQL refuses a text with U+0000.
  const typedIn = (field: AuditField) => (query.get(field) ?? "").replaceAll("\0", "").trim().slice(0, 100);
  const typed = { who: typedIn("who"), what: typedIn("what"), from: typedIn("from"), to: typedIn("to") };
  const refusals: AuditSearch["refusals"] = {};
  const action = AUDITED_ACTIONS.find((each) => each === typed.what);
  if (typed.what !== "" && action === undefined) refusals.what = "Choose an action from the list.";
  const dayOf = (field: "from" | "to") => {
    if (typed[field] === "") return undefined;
    const day = parseUtc(`${typed[field]}T00:00:00Z`);
    if (day === undefined) refusals[field] = "Enter a date like 2026-01-31.";
    return day;
  };
  const [from, lastDay] = [dayOf("from"), dayOf("to")];
  const filter: AuditFilter = {
    who: typed.who === "" ? undefined : typed.who,
    action,
    from,
    to: lastDay === undefined ? undefined : lastDay + DAY_MS,
  };
  return { typed, refusals, filter, place: placeOf(query) };
}

function placeOf(query: URLSearchParams): AuditPlace {
  const numberIn = (name: string) => {
    const text = query.get(name) ?? "";
    return /^\d{1,15}$/.test(text) ? Number(text) : undefined;
  };
  const [olderThan, newerThan] = [numberIn("older"), numberIn("newer")];
  if (newerThan !== undefined) return { newerThan };
  return olderThan === undefined ? {} : { olderThan };
}

function addressOf({ typed }: AuditSearch, place: Record<string, string>): string {
  const query = new URLSearchParams(Object.entries({ ...typed, ...place }).filter(([, value]) => value !== ""));
  return `${TAB}?${query}`;
}

function Filters({ search: { typed, refusals } }: { search: AuditSearch }) {
  const attributesOf = (name: AuditField) => ({ id: name, name, ...fieldAttributes(refusals[name], `${name}-error`) });
  return (
    <SearchForm id="filters" label="Search the audit list" action={TAB}>
      <div>
        <label for="who">Who</label>
        <input type="search" value={typed.who} placeholder="staff 42" {...attributesOf("who")} />
      </div>
      <div>
        <label for="what">What</label>
        <select {...attributesOf("what")}>
          <option value="">All</option>
          {AUDITED_ACTIONS.map((action) => (
            <option value={action} selected={action === typed.what}>
              {AUDITED[action]}
            </option>
          ))}
        </select>
        <FieldError id="what-error" error={refusals.what} />
      </div>
      <div>
        <label for="from">From (UTC)</label>
        <input type="date" value={typed.from} {...attributesOf("from")} />
        <FieldError id="from-error" error={refusals.from} />
      </div>
      <div>
        <label for="to">To (UTC)</label>
        <input type="date" value={typed.to} {...attributesOf("to")} />
        <FieldError id="to-error" error={refusals.to} />
      </div>
      <button type="submit" id="search" class="secondary">
        Search
      </button>
      {FIELDS.some((field) => typed[field] !== "") ? (
        <Link id="clear" to={TAB}>
          Clear
        </Link>
      ) : null}
    </SearchForm>
  );
}

function EntryTable({ entries, now }: { entries: readonly NumberedEntry[]; now: number }) {
  return (
    <CardTable id="audit" name="Audit list" headings={["What", "Change", "Who", "From", "When"]}>
      {entries.map((entry) => (
        <Row id={`entry-${entry.number}`}>
          <NameCell>{AUDITED[entry.action] ?? entry.action}</NameCell>
          <Cell>{printable(changedText(entry))}</Cell>
          <Cell>
            <span class="nowrap">{printable(entry.who)}</span>
          </Cell>
          <Cell>
            <span class="nowrap">{printable(entry.from ?? "")}</span>
          </Cell>
          <Cell class="corner">
            <Age ms={entry.at} now={now} />
          </Cell>
        </Row>
      ))}
    </CardTable>
  );
}

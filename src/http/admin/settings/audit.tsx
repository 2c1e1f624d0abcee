/** @jsxImportSource preact */
import { changedText } from "../../../actions/audit.ts";
import { AUDITED, AUDITED_ACTIONS } from "../../../domain/audit.ts";
import { printable } from "../../../lib/log.ts";
import type { AuditFilter, AuditPage, AuditPlace, NumberedEntry } from "../../../store/port/audit.ts";
import type { Handler } from "../admin-request.ts";
import { CardTable, Cell, NameCell, Row } from "../card-table.ts";
import { Age, Empty } from "../components.tsx";
import { Filters, Pager, queryOf, readDays, readTyped, type Search, type SearchField } from "../search.tsx";

const TAB = "/audit";
const ROWS = 50;
/** Maximum time for which the search of the list continues if a page is not full. */
const SEARCH_MS = 50;
const NO_ENTRIES: AuditPage = { entries: [], end: null };
const FIELDS = ["who", "what", "from", "to"] as const;
const SEARCH_FIELDS: SearchField[] = [
  { name: "who", label: "Who", example: "staff 42" },
  { name: "what", label: "What", options: AUDITED_ACTIONS.map((action) => [action, AUDITED[action]]) },
];

/** A search of the audit list, from the parameters of an address. */
interface AuditSearch extends Search<(typeof FIELDS)[number]> {
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
      <p>This list says who changed what, and who looked at personal data. Entries are kept for a year.</p>
      <Filters label="Search the audit list" tab={TAB} search={search} fields={SEARCH_FIELDS} />
      {entries.length === 0 ? (
        <Empty id="no-entries">{noEntriesText(found, isBackwards)}</Empty>
      ) : (
        <EntryTable entries={entries} now={now()} />
      )}
      <Pager
        newer={newer === undefined ? null : `${TAB}${queryOf(search, { newer: String(newer) })}`}
        older={older === undefined ? null : `${TAB}${queryOf(search, { older: String(older) })}`}
      />
    </>
  );
  return { title: "Audit", tab: TAB, status: Object.keys(refusals).length > 0 ? 422 : 200, content };
};

/** Returns the entry numbers from which "Newer" and "Older" continue; undefined if there is no such page. */
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
    ? "The older entries do not match. Choose “Newer” to continue the search."
    : "The newer entries do not match. Choose “Older” to continue the search.";
}

function readSearch(query: URLSearchParams): AuditSearch {
  const search = readTyped(FIELDS, query);
  const { who, what } = search.typed;
  const action = AUDITED_ACTIONS.find((each) => each === what);
  if (what !== "" && action === undefined) search.refusals.what = "Choose an action from the list.";
  // PostgreSQL refuses a text with U+0000.
  const name = who.replaceAll("\0", "").slice(0, 100);
  const filter: AuditFilter = { who: name === "" ? undefined : name, action, ...readDays(search) };
  return { ...search, filter, place: placeOf(query) };
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

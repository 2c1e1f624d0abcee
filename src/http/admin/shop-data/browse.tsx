/** @jsxImportSource preact */
import { findRowId, listRows, type RowList, readLinkFilter } from "../../../actions/row-search.ts";
import type { RowFilter } from "../../../domain/pages/row-filter.ts";
import { RESOURCES, type Resource } from "../../../domain/resources.ts";
import type { Shop } from "../../../domain/shop.ts";
import { printable } from "../../../lib/log.ts";
import type { AdminPage, AdminRequest, Handler } from "../admin-request.ts";
import { Empty, FieldError, fieldAttributes, Link, SearchForm } from "../components.tsx";
import { RESOURCE_NAMES } from "../resource-names.ts";
import { EmptySection, sampleData } from "../samples.tsx";
import { Pager } from "../search.tsx";
import { type ResourceRows, RowTable } from "./row-table.tsx";

const TAB = "/data/browse";
const PAGE_ROWS = 20;
/** Maximum number of cursors in an address. If a newer page has no cursor, "Newer" leads to the newest page. */
const KEPT_CURSORS = 20;

/** The parameters of the address. */
interface Browse {
  shop: Shop;
  resource: Resource;
  /** The typed name of a row; empty if nothing was typed. */
  typed: string;
  filter: RowFilter | undefined;
  /** The cursors of the newer pages and of this page, newest page first. */
  cursors: string[];
}

/**
 * Shows rows of a resource, or redirects to the row that the visitor searched for. The store can read pages only
 * towards older rows, so the address has the cursors of the newer pages too.
 */
export const showRows: Handler = async (request, { store: { pages } }) => {
  const browse = readBrowse(request);
  const { shop, resource, typed, filter } = browse;
  if (typed !== "") {
    const id = await findRowId(pages, shop, resource, typed);
    return id === undefined ? notFound(browse) : { to: `${TAB}/${id}` };
  }
  const cursors = browse.cursors.slice(-KEPT_CURSORS);
  const page = await listRows(pages, shop, resource, { filter, cursor: cursors.at(-1), limit: PAGE_ROWS });
  if (page !== undefined) return pageOf({ ...browse, cursors }, page);
  // The cursor's row was removed, or the cursor belongs to another list. The newest page is shown.
  const newest = await listRows(pages, shop, resource, { filter, limit: PAGE_ROWS });
  return pageOf({ ...browse, cursors: [] }, newest ?? { rows: [], older: null });
};

function readBrowse({ shop, query }: AdminRequest): Browse {
  const resource = RESOURCES.find((each) => each === query.get("resource")) ?? "subscriptions";
  const typed = (query.get("find") ?? "").trim();
  return { shop, resource, typed, filter: readLinkFilter(query, resource, shop), cursors: query.getAll("cursor") };
}

function notFound(browse: Browse): AdminPage {
  const { typed, resource } = browse;
  const what = /^#?\d+$/.test(typed) ? `${RESOURCE_NAMES[resource].one.toLowerCase()} ` : "row ";
  const error = `This shop has no ${what}“${printable(typed.slice(0, 100))}”.`;
  const content = (
    <>
      <BrowseForm browse={browse} error={error} />
      <Empty id="not-found">
        Enter a number as Shopify shows it, a gid, or an id of the API. A number is searched among the chosen rows only.
      </Empty>
    </>
  );
  return { title: "Data", tab: TAB, status: 404, content };
}

function pageOf(browse: Browse, { rows, older }: RowList): AdminPage {
  const { shop, resource, filter, cursors } = browse;
  const content = (
    <>
      <BrowseForm browse={browse} />
      {filter === undefined ? null : <Narrowed {...browse} />}
      {rows.length === 0 ? (
        <NoRows {...browse} hasOlder={older !== null} />
      ) : (
        <RowTable id="rows" resource={resource} rows={rows as ResourceRows[Resource][]} shop={shop} />
      )}
      <Pager
        newer={cursors.length === 0 ? null : addressOf(browse, cursors.slice(0, -1))}
        older={older === null ? null : addressOf(browse, [...cursors, older])}
      />
    </>
  );
  return { title: "Data", tab: TAB, content };
}

function addressOf({ resource, filter = {} }: Pick<Browse, "resource" | "filter">, cursors: readonly string[]): string {
  const query = new URLSearchParams({ resource });
  for (const name of ["customerId", "contractId"] as const) {
    const id = filter[name];
    if (id !== undefined) query.set(name, id);
  }
  for (const cursor of cursors) query.append("cursor", cursor);
  return `${TAB}?${query}`;
}

function BrowseForm({ browse: { resource, typed }, error }: { browse: Browse; error?: string }) {
  return (
    <SearchForm id="browse" label="Look for a row" action={TAB}>
      <div>
        <label for="resource">Rows</label>
        <select id="resource" name="resource">
          {RESOURCES.map((each) => (
            <option value={each} selected={each === resource}>
              {RESOURCE_NAMES[each].many}
            </option>
          ))}
        </select>
      </div>
      <div class="wide">
        <label for="find">Number, gid or id</label>
        <input
          type="search"
          id="find"
          name="find"
          value={typed}
          placeholder="empty for the newest"
          {...fieldAttributes(error, "find-error")}
        />
        <FieldError id="find-error" error={error} />
      </div>
      <button type="submit" id="look-up" class="secondary">
        Show
      </button>
    </SearchForm>
  );
}

function Narrowed({ resource, filter = {} }: Browse) {
  const [id, what] =
    filter.contractId === undefined ? [filter.customerId, "customer"] : [filter.contractId, "subscription"];
  return (
    <p id="narrowed">
      {RESOURCE_NAMES[resource].many} of the {what} <Link to={`${TAB}/${id}`}>{id}</Link>.{" "}
      <Link to={addressOf({ resource, filter: undefined }, [])}>Show all {resource}</Link>
    </p>
  );
}

function NoRows({ resource, filter, cursors, hasOlder }: Browse & { hasOlder: boolean }) {
  if (hasOlder)
    return <Empty id="no-matches">The newer rows do not match. Choose “Older” to continue the search.</Empty>;
  if (filter !== undefined || cursors.length > 0) return <Empty id="no-matches">No {resource} match.</Empty>;
  return (
    <EmptySection id="no-rows" sample={sampleData(resource)}>
      This shop has no {resource} yet. Each one appears here as the API gives it.{" "}
      <Link to="/data">See the summary</Link>
    </EmptySection>
  );
}

/** @jsxImportSource preact */
import type { VNode } from "preact";
import { retryDelivery as retry, retryDeadDeliveries, retryResultText } from "../../../actions/delivery.ts";
import { type DeliveryKind, retentionText } from "../../../domain/deliveries/delivery.ts";
import { counted } from "../../../lib/text.ts";
import { nextTurn } from "../../../lib/waits.ts";
import type { Delivery, DeliveryFilter, DeliveryLog, DeliveryPage } from "../../../store/port/deliveries.ts";
import type { AdminTab, Handler } from "../admin-request.ts";
import { Confirm, Empty, Link, Live } from "../components.tsx";
import { EmptySection } from "../samples.tsx";
import { Filters, isNarrowed, Pager, queryOf } from "../search.tsx";
import { type LogSearch, readSearch, searchFields } from "./log-search.ts";
import { LogTable } from "./log-table.tsx";
import { SAMPLE_DELIVERIES, SAMPLE_STARTS } from "./sample-log.tsx";

const PAGE_ROWS = 20;
/** Maximum time for which the search of the log continues if a page is not full. */
const SEARCH_MS = 50;
/** Maximum number of newer deliveries to count. */
const COUNTED = 99;

export const LOG_OF: Record<DeliveryKind, AdminTab> = { webhook: "/deliveries", trigger: "/deliveries/workflows" };
const NAMES: Record<DeliveryKind, string> = { webhook: "Deliveries", trigger: "Workflow starts" };

/** Makes the handler of the log of webhooks, or of started workflows. Both kinds are stored as deliveries. */
export function showLog(kind: DeliveryKind): Handler {
  const tab = LOG_OF[kind];
  return async ({ shop, query }, { store, now, steadyTime, keepDeliveredMs }) => {
    const search = await readSearch(store.pages, shop, kind, query);
    const filters = <Filters label="Search the log" tab={tab} search={search} {...searchFields(kind)} />;
    if (Object.keys(search.refusals).length > 0) {
      const content = (
        <>
          {filters}
          <Empty id="refused">Correct the search to see deliveries.</Empty>
        </>
      );
      return { title: "Deliveries", tab, status: 422, content };
    }
    const [shown, dead] = await Promise.all([
      readLog({ deliveries: store.deliveries, steadyTime }, shop.id, search),
      store.deliveries.countDead(shop.id, 0, kind),
    ]);
    const live = <LogLive kind={kind} search={search} shown={shown} now={now()} />;
    const content = (
      <>
        {filters}
        <p class="muted above-rows">
          Newest first. {retentionText(keepDeliveredMs)}
          {dead === 0 || search.filter.status === "dead" ? null : (
            <>
              {" "}
              <Link id="show-dead" to={`${tab}?status=dead`}>
                Show the dead ones
              </Link>
            </>
          )}
        </p>
        {live}
        <Pager
          newer={shown.newer === null ? null : `${tab}${queryOf(search, { after: shown.newer })}`}
          older={shown.older === null ? null : `${tab}${queryOf(search, { before: shown.older })}`}
        />
      </>
    );
    return { title: "Deliveries", tab, content, live, ...(dead > 0 && { actions: <ResendDead {...{ tab, dead }} /> }) };
  };
}

/** The shown deliveries, and the number of newer deliveries. */
interface ShownLog extends DeliveryPage {
  /** Whether this is the newest page, on which new deliveries appear. */
  isNewest: boolean;
  /** Number of matching deliveries that are newer than all rows on screen, at most COUNTED. */
  added: number;
}

interface LogSource {
  deliveries: DeliveryLog;
  steadyTime: () => number;
}

async function readLog(source: LogSource, shopId: number, search: LogSearch): Promise<ShownLog> {
  const { deliveries } = source;
  const { filter, place, onScreen } = search;
  const [top] = onScreen;
  const isNewest = place.before === undefined && place.after === undefined;
  if (top !== undefined) {
    // The rows on screen stay where they are, even if the search no longer finds them.
    const [rows, newer] = await Promise.all([
      deliveries.pick(shopId, onScreen),
      isNewest ? deliveries.page(shopId, { ...filter, limit: COUNTED, after: top }) : undefined,
    ]);
    return { deliveries: rows, older: null, newer: null, isNewest, added: newer?.deliveries.length ?? 0 };
  }
  const page = await searchPage(source, shopId, { ...filter, ...place, limit: PAGE_ROWS });
  // If no newer page follows, return the first page of the log instead.
  if (place.after !== undefined && page.newer === null) return readLog(source, shopId, { ...search, place: {} });
  return { ...page, isNewest, added: 0 };
}

/** Reads a page. One read covers only a part of the log, so more reads follow until the page is full or time is up. */
async function searchPage(
  { deliveries, steadyTime }: LogSource,
  shopId: number,
  filter: DeliveryFilter,
): Promise<DeliveryPage> {
  const began = steadyTime();
  const page = await deliveries.page(shopId, filter);
  if (filter.after !== undefined) return page;
  let { deliveries: found, older } = page;
  while (found.length < filter.limit && older !== null && steadyTime() - began < SEARCH_MS) {
    await nextTurn();
    const next = await deliveries.page(shopId, { ...filter, limit: filter.limit - found.length, before: older });
    found = [...found, ...next.deliveries];
    older = next.older;
  }
  return { deliveries: found, older, newer: page.newer };
}

interface LogLiveProps {
  kind: DeliveryKind;
  search: LogSearch;
  shown: ShownLog;
  now: number;
}

function LogLive({ kind, search, shown: { deliveries, isNewest, added, older }, now }: LogLiveProps) {
  const rows = deliveries.map(({ id }) => id).join(",");
  const query = queryOf(search, { ...search.place, rows });
  const news = added === 0 ? "" : `${added}${added === COUNTED ? " or more" : ""} new`;
  // If a search found nothing, the script does not repeat it: each search may read the whole log.
  const canChange = deliveries.length === 0 ? !isNarrowed(search) : deliveries.some(isUnderWay) || isNewest;
  return (
    <Live poll={canChange} announce={news} {...(deliveries.length > 0 && { query })}>
      {news === "" ? null : (
        <Link id="news" class="pill" to={`${LOG_OF[kind]}${queryOf(search)}`}>
          {news}
        </Link>
      )}
      {deliveries.length === 0 ? (
        <NoRows kind={kind} search={search} hasOlder={older !== null} />
      ) : (
        <LogTable
          id="last"
          name={NAMES[kind]}
          kind={kind}
          deliveries={deliveries}
          now={now}
          query={queryOf(search, search.place)}
        />
      )}
    </Live>
  );
}

function isUnderWay({ status }: Delivery): boolean {
  return status === "pending" || status === "retrying";
}

function NoRows({ kind, search, hasOlder }: { kind: DeliveryKind; search: LogSearch; hasOlder: boolean }): VNode {
  if (hasOlder)
    return <Empty id="no-matches">The newer deliveries do not match. Choose “Older” to continue the search.</Empty>;
  if (isNarrowed(search) || search.place.before !== undefined)
    return (
      <Empty id="no-matches">
        No delivery matches. <Link to={LOG_OF[kind]}>Show all deliveries</Link>
      </Empty>
    );
  return kind === "webhook" ? (
    <EmptySection id="no-deliveries" sample={SAMPLE_DELIVERIES}>
      Nothing was sent yet. <Link to="/webhooks">Set an endpoint</Link>, choose topics, and send a test event.
    </EmptySection>
  ) : (
    <EmptySection id="no-starts" sample={SAMPLE_STARTS}>
      No workflow was started yet. <Link to="/triggers">Switch a trigger on</Link>, and create a workflow in Shopify
      Flow that starts with it.
    </EmptySection>
  );
}

function ResendDead({ tab, dead }: { tab: string; dead: number }) {
  return (
    <Link id="retry-dead" class="button outline" to={`${tab}/retry-dead`}>
      Resend {dead.toLocaleString("en")} dead…
    </Link>
  );
}

export const retryDelivery: Handler = async ({ shop, actor, id, form }, { store, now, wake }) => {
  const { kind, topic } = (await retry(store, { shop, actor }, id, now())).delivery;
  wake();
  const log = form.get("log");
  const to = log === null ? `/deliveries/${id}` : `${LOG_OF[kind]}${await ownQuery(log)}`;
  return { to, notices: [{ text: `${topic} (${id}) is sent again now.` }] };

  /** Returns the search's query; empty if the search is invalid. A request can contain any text. */
  async function ownQuery(text: string): Promise<string> {
    const search = await readSearch(store.pages, shop, kind, new URLSearchParams(text));
    return Object.keys(search.refusals).length > 0 ? "" : queryOf(search, search.place);
  }
};

export function askToRetryDead(kind: DeliveryKind): Handler {
  const tab = LOG_OF[kind];
  return async ({ shop }, { store }) => {
    const count = await store.deliveries.countDead(shop.id, 0, kind);
    const content =
      count === 0 ? (
        <Empty id="no-dead">
          There are no dead deliveries. <Link to={tab}>Back to the log</Link>
        </Empty>
      ) : (
        <Confirm
          id="retry-all-dead"
          action={`${tab}/retry-dead`}
          button={`Resend ${counted(count, "delivery", "deliveries")}`}
          back={tab}
          isDanger={false}
        >
          <p>
            <strong id="count">{counted(count, "delivery", "deliveries")}</strong>{" "}
            {count === 1 ? "is dead. Send it" : "are dead. Send all of them"} again now? Each gets up to five new
            attempts,
            {kind === "webhook" ? " with the same id, body and signature." : " with the same fields."}
          </p>
        </Confirm>
      );
    return { title: "Resend dead deliveries", tab, trail: { to: tab, name: "Deliveries" }, content };
  };
}

export function retryDead(kind: DeliveryKind): Handler {
  return async (request, { store, now, wake }) => {
    const count = await retryDeadDeliveries(store, request, { kind }, now());
    wake();
    return { to: LOG_OF[kind], notices: [{ text: retryResultText(count) }] };
  };
}

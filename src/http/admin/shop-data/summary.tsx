/** @jsxImportSource preact */
import type { ComponentChildren } from "preact";
import { merchantLoadText, type ShopStatus, shopStatus } from "../../../actions/shop.ts";
import type { ResourceCounts } from "../../../domain/decide/commit.ts";
import { explainTrouble, MISSING_APPROVALS, NOT_CONNECTED } from "../../../domain/platform/connection-trouble.ts";
import { RESOURCES } from "../../../domain/resources.ts";
import { counted } from "../../../lib/text.ts";
import type { Handler } from "../admin-request.ts";
import { Age, type Fact, Facts, Link, Live, Time } from "../components.tsx";
import { RESOURCE_NAMES } from "../resource-names.ts";
import { EmptySection, sampleData } from "../samples.tsx";

const TAB = "/data";

/** What the page shows of a shop's data. Times in epoch milliseconds. */
interface Summary {
  status: ShopStatus;
  counts: ResourceCounts;
  lastWebhookAt: number | null;
  now: number;
}

export const showData: Handler = async ({ shop }, { store, now }) => {
  const at = now();
  const [counts, status, lastWebhookAt] = await Promise.all([
    store.shops.rowCounts(shop.id),
    shopStatus(store, shop, at),
    store.inbox.lastReceivedAt(shop.id),
  ]);
  const live = <SummaryPart counts={counts} status={status} lastWebhookAt={lastWebhookAt} now={at} />;
  const content = (
    <>
      {live}
      {status.hasConnection ? (
        <p class="muted">
          Shopify reports each change of a subscription, a customer or an order within seconds. Every hour this service
          compares its data with Shopify's, and adds what was missed.
        </p>
      ) : null}
    </>
  );
  return { title: "Data", tab: TAB, content, live };
};

function SummaryPart(summary: Summary) {
  const { counts, status } = summary;
  const { tone, text, todo, done } = verdictOf(summary);
  return (
    <Live poll announce="">
      {text === "" ? null : (
        <div id="verdict" class={`notice${tone}`}>
          <p class="verdict" id={status.load === null ? undefined : "loading"}>
            {text}
          </p>
          {done === undefined ? null : <progress value={done} max={1} aria-label="Loaded" />}
          {todo === undefined ? null : <p id="todo">{todo}</p>}
        </div>
      )}
      {status.warnings.map(({ kind }) => {
        const missing = MISSING_APPROVALS[kind];
        return missing === undefined ? null : (
          <div class="notice warning">
            <p>
              {missing.what} {missing.todo}
            </p>
          </div>
        );
      })}
      <Counts counts={counts} />
      {counts.subscriptions === 0 ? <NoSubscriptions counts={counts} status={status} /> : null}
      <DataFacts {...summary} />
    </Live>
  );
}

interface DataVerdict {
  tone: string;
  text: ComponentChildren;
  /** What the merchant should do. */
  todo?: ComponentChildren;
  /** The finished part of the load, from 0 to 1. Set only during a load. */
  done?: number;
}

/** Says whether the data is the same as Shopify's data, and what to do if it is not. */
function verdictOf({ counts, status, lastWebhookAt, now }: Summary): DataVerdict {
  const { hasConnection, trouble, troubleSince, uninstalledAt, load, inbox, reconciledAt, loadedAt } = status;
  if (uninstalledAt !== null)
    return {
      tone: " bad",
      text: ["The app was uninstalled on ", <Time ms={uninstalledAt} />, ". The data stays as it was then."],
      todo: "Install the app again in Shopify's admin to go on.",
    };
  if (trouble !== null) {
    const { what, todo } = explainTrouble(trouble);
    const since = troubleSince === null ? null : [" Nothing new has arrived since ", <Time ms={troubleSince} />, "."];
    return { tone: " bad", text: [what, since], todo };
  }
  if (load !== null)
    return { tone: " plain", text: merchantLoadText(load), ...(load.done !== null && { done: load.done }) };
  if (!hasConnection)
    return Object.values(counts).every((count) => count === 0)
      ? { tone: "", text: "" }
      : { tone: " plain", text: NOT_CONNECTED.what, todo: "This data was imported, or sent by the billing system." };
  if (inbox.failed > 0)
    return {
      tone: " warning",
      text: `${counted(inbox.failed, "change", "changes")} from Shopify could not be processed.`,
      todo: <Link to="/data/inbox">See why, and try again</Link>,
    };
  if (inbox.waiting > 0)
    return {
      tone: " plain",
      text: `${counted(inbox.waiting, "change", "changes")} from Shopify will be processed next.`,
    };
  const inStepAt = Math.max(lastWebhookAt ?? 0, reconciledAt ?? 0, loadedAt ?? 0);
  return { tone: "", text: ["In step with Shopify ", <Age ms={inStepAt} now={now} />, correctionText(status), "."] };
}

function correctionText({ reconciledRows }: ShopStatus): string {
  return reconciledRows === null
    ? ""
    : `, ${counted(reconciledRows, "correction", "corrections")} at the last comparison`;
}

function Counts({ counts }: { counts: ResourceCounts }) {
  return (
    <dl class="stats" id="counts">
      {RESOURCES.map((resource) => (
        <div>
          <dt>{RESOURCE_NAMES[resource].many}</dt>
          <dd>
            {counts[resource].toLocaleString("en")}
            {counts[resource] === 0 ? null : (
              <span class="hint">
                <Link to={`/data/browse?resource=${resource}`} aria-label={`Browse ${resource}`}>
                  Browse
                </Link>
              </span>
            )}
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** Says whether the shop is connected, what Shopify sent, and when. */
export function shopifyFacts(status: ShopStatus, lastWebhookAt: number | null, now: number): Fact[] {
  const { hasConnection, trouble, uninstalledAt, reconciledAt, reconciledRows } = status;
  const isConnected = hasConnection && trouble === null && uninstalledAt === null;
  const connection: Fact = [
    "Shopify",
    isConnected ? "connected" : hasConnection ? "connection refused" : "not connected",
  ];
  if (!wasConnected(status, lastWebhookAt)) return [connection];
  return [
    connection,
    ["Last change from Shopify", ageOf(lastWebhookAt, "none in the last seven days", now)],
    ["Last comparison with Shopify", ageOf(reconciledAt, "never", now)],
    ["Corrections by the last comparison", reconciledRows === null ? "–" : reconciledRows.toLocaleString("en")],
  ];
}

function wasConnected({ hasConnection, loadedAt }: ShopStatus, lastWebhookAt: number | null): boolean {
  return hasConnection || loadedAt !== null || lastWebhookAt !== null;
}

function ageOf(ms: number | null, otherwise: string, now: number): ComponentChildren {
  return ms === null ? otherwise : <Age ms={ms} now={now} />;
}

function DataFacts({ status, lastWebhookAt, now }: Summary) {
  const { inbox, dataRequests } = status;
  const workFacts: Fact[] = [
    ["All data loaded", ageOf(status.loadedAt, "never", now)],
    ["Waiting in the inbox", inbox.waiting.toLocaleString("en")],
    ["Failed in the inbox", inbox.failed.toLocaleString("en")],
  ];
  const facts: Fact[] = [
    ...shopifyFacts(status, lastWebhookAt, now),
    ...(wasConnected(status, lastWebhookAt) ? workFacts : []),
    [
      "Open data requests",
      dataRequests.length === 0 ? (
        "0"
      ) : (
        <Link to="/data/requests">{counted(dataRequests.length, "customer waits", "customers wait")}</Link>
      ),
    ],
  ];
  return <Facts id="mirror-facts" facts={facts} />;
}

function NoSubscriptions({ counts, status: { hasConnection, load } }: Pick<Summary, "counts" | "status">) {
  if (!hasConnection) {
    return Object.values(counts).some((count) => count > 0) ? null : (
      <EmptySection id="empty-mirror" sample={sampleData("subscriptions")}>
        There is no data yet. {NOT_CONNECTED.todo}
      </EmptySection>
    );
  }
  return (
    <EmptySection id="no-subscriptions" sample={sampleData("subscriptions")}>
      {load === null
        ? "This shop has no subscriptions yet. The first one appears here seconds after a customer buys it. " +
          "Shopify shows an app only the subscriptions that the app itself made."
        : "The first subscriptions appear here in a moment."}
    </EmptySection>
  );
}

/** @jsxImportSource preact */
import {
  connectionText,
  merchantLoadText,
  type ShopStatus,
  shopStatus,
  type UnfinishedLoad,
} from "../../actions/shop.ts";
import type { ResourceCounts } from "../../domain/decide/commit.ts";
import { RESOURCES } from "../../domain/resources.ts";
import type { Handler } from "./admin-request.ts";
import { type Fact, Facts, Time } from "./components.tsx";
import { Live } from "./delivery-log.tsx";
import { EmptySection, sampleData } from "./samples.tsx";

const TAB = "/data";

export const showData: Handler = async ({ shop }, { store, now }) => {
  const [counts, status, lastWebhookAt] = await Promise.all([
    store.shops.rowCounts(shop.id),
    shopStatus(store, shop, now()),
    store.inbox.lastReceivedAt(shop.id),
  ]);
  const live = <MirrorPart counts={counts} mirror={{ ...status, domain: shop.domain, lastWebhookAt }} />;
  const content = (
    <>
      <p>
        The mirror is the copy of this shop's subscription data that the API serves. Platform webhooks keep it current.
        Every hour a reconciliation with the platform adds what they missed.
      </p>
      {live}
      <DataRequests requests={status.dataRequests} />
    </>
  );
  return { title: "Data", tab: TAB, content, live };
};

function DataRequests({ requests }: { requests: ShopStatus["dataRequests"] }) {
  if (requests.length === 0) return null;
  return (
    <>
      <h2>Requests for data</h2>
      <p>
        These customers asked for the data that is stored about them. The operator of this service prints it with{" "}
        <code>sds customer export</code>, and notes the answer with <code>sds customer answered</code>.
      </p>
      <Facts
        id="data-requests"
        facts={requests.map(({ customer, dueAt }) => [customer, ["until ", <Time ms={dueAt} />]])}
      />
    </>
  );
}

interface Mirror extends ShopStatus {
  domain: string;
  /** Time of the last platform webhook, epoch milliseconds. */
  lastWebhookAt: number | null;
}

function MirrorPart({ counts, mirror }: { counts: ResourceCounts; mirror: Mirror }) {
  const { lastWebhookAt, inbox, loadedAt, reconciledAt, reconciledRows } = mirror;
  const facts: Fact[] = [
    ...RESOURCES.map((resource): Fact => [labelOf(resource), counts[resource].toLocaleString("en")]),
    ["Platform", connectionText(mirror)],
    ["Last platform webhook", lastWebhookAt === null ? "none in the last seven days" : <Time ms={lastWebhookAt} />],
    ["Last full load", loadedAt === null ? "never" : <Time ms={loadedAt} />],
    ["Last reconciliation", reconciledAt === null ? "never" : <Time ms={reconciledAt} />],
    ["Rows changed by the last reconciliation", reconciledRows === null ? "–" : reconciledRows.toLocaleString("en")],
    ["Waiting in the inbox", inbox.waiting.toLocaleString("en")],
    ["Failed in the inbox", inbox.failed.toLocaleString("en")],
  ];
  return (
    <Live poll announce="">
      <Facts id="mirror-facts" facts={facts} />
      <Remark counts={counts} mirror={mirror} />
    </Live>
  );
}

/** Tells the operator the next step. */
function Remark({ counts, mirror }: { counts: ResourceCounts; mirror: Mirror }) {
  const { load, inbox } = mirror;
  return (
    <>
      {load === null ? null : <LoadPart load={load} />}
      {counts.subscriptions === 0 ? <NoSubscriptions mirror={mirror} counts={counts} /> : null}
      {inbox.failed > 0 ? (
        <p id="inbox-failed">
          Some changes at the platform could not be processed. The operator of this service can see why with{" "}
          <code>sds inbox list --status failed</code>.
        </p>
      ) : null}
    </>
  );
}

function NoSubscriptions({
  counts,
  mirror: { hasConnection, load, domain },
}: {
  counts: ResourceCounts;
  mirror: Mirror;
}) {
  if (!hasConnection) {
    return Object.values(counts).some((count) => count > 0) ? null : (
      <EmptySection id="empty-mirror" sample={sampleData()}>
        The mirror is empty. The operator of this service can connect the shop with{" "}
        <code>sds shop connect {domain}</code>, or import its records.
      </EmptySection>
    );
  }
  return (
    <EmptySection id="no-subscriptions" sample={sampleData()}>
      {load === null
        ? "This shop has no subscriptions yet. The first one appears here seconds after a customer buys it. The " +
          "platform shows an app only the subscriptions that the app itself made."
        : "The first subscriptions appear here in a moment."}
    </EmptySection>
  );
}

function LoadPart({ load }: { load: UnfinishedLoad }) {
  return (
    <div id="loading" class="notice">
      <p>{merchantLoadText(load)}</p>
      {load.done === null ? null : <progress value={load.done} max={1} aria-label="Loaded" />}
    </div>
  );
}

function labelOf(resource: string): string {
  return `${resource.charAt(0).toUpperCase()}${resource.slice(1)}`;
}

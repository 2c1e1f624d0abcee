/** @jsxImportSource preact */
import * as actions from "../../../actions/inbox.ts";
import { SdsError } from "../../../domain/error.ts";
import { explainError } from "../../../domain/platform/connection-trouble.ts";
import { printable } from "../../../lib/log.ts";
import { counted, sentence } from "../../../lib/text.ts";
import type { InboxEntry } from "../../../store/port/inbox.ts";
import type { Handler } from "../admin-request.ts";
import { CardTable, Cell, NameCell, Row } from "../card-table.ts";
import { Age, Empty, Form, Link, Live, OnceField, Time } from "../components.tsx";
import { type Sample, SampleFigure } from "../samples.tsx";

const TAB = "/data/inbox";
/** Maximum number of items of each status on the page. */
const SHOWN = 50;

export const showInbox: Handler = async ({ shop }, { store: { inbox, shops }, now }) => {
  const [failed, waiting, counts, rows] = await Promise.all([
    inbox.list(shop.id, { limit: SHOWN, status: "failed" }),
    inbox.list(shop.id, { limit: SHOWN, status: "waiting" }),
    inbox.count(shop.id),
    shops.rowCounts(shop.id),
  ]);
  const live = (
    <Live poll announce="">
      <p id="waiting">
        {counts.waiting === 0
          ? "No item waits."
          : `${counted(counts.waiting, "item waits", "items wait")}. You need not do anything.`}
      </p>
      <Items id="failed" status="failed" count={counts.failed} items={failed} now={now()} />
      <Items id="waiting-items" status="waiting" count={counts.waiting} items={waiting.filter(isDelayed)} now={now()} />
    </Live>
  );
  const content = (
    <>
      <p>
        Each change that Shopify reports waits in the inbox until this service has processed it. An item that failed
        many times stays here until you try again.
      </p>
      {live}
      {rows.subscriptions + failed.length > 0 ? null : <SampleFigure id="no-failed-sample" sample={SAMPLE_ITEM} />}
    </>
  );
  return { title: "Data", tab: TAB, content, live, ...(counts.failed > 1 && { actions: <RetryAll {...counts} /> }) };
};

const HEADINGS = ["Change", "About", "Reason", "Received", "Action"];

/** Shown to a shop that has no subscriptions and no failed items. */
const SAMPLE_ITEM: Sample = {
  caption: "This is how a failed item looks. You can try it again with a button.",
  content: (
    <CardTable id="sample-item" name="Sample item" headings={HEADINGS.slice(0, -1)}>
      <Row>
        <NameCell>Customer updated</NameCell>
        <Cell>Customer 7001</Cell>
        <Cell>Shopify could not be reached.</Cell>
        <Cell class="corner">16 h ago</Cell>
      </Row>
    </CardTable>
  ),
};

/** Whether a waiting item was tried before, or has an error. */
function isDelayed({ attempts, error }: InboxEntry): boolean {
  return attempts > 0 || error !== null;
}

export const retryItem: Handler = async (request, { store, now }) => {
  if (!/^\d{1,15}$/.test(request.id)) throw new SdsError("not_found", "the inbox has no such item");
  await actions.retryItem(store, request, Number(request.id), now());
  return { to: TAB, notices: [{ text: "The item is processed again now." }] };
};

export const retryFailed: Handler = async (request, { store, now }) => {
  const count = await actions.retryFailedItems(store, request, now());
  const text =
    count === 0 ? "The inbox has no failed items." : `${counted(count, "item is", "items are")} processed again now.`;
  return { to: TAB, notices: [{ text }] };
};

function RetryAll({ failed }: { failed: number }) {
  return (
    <Form class="inline" action={`${TAB}/retry`}>
      <OnceField />
      <button type="submit" id="retry-failed" class="secondary">
        Try all {failed.toLocaleString("en")} again
      </button>
    </Form>
  );
}

interface ItemsProps {
  id: string;
  status: InboxEntry["status"];
  /** Number of items in the inbox with this status. */
  count: number;
  items: readonly InboxEntry[];
  now: number;
}

function Items({ id, status, count, items, now }: ItemsProps) {
  const isFailed = status === "failed";
  if (items.length === 0) return isFailed ? <Empty id="no-failed">No item has failed.</Empty> : null;
  return (
    <>
      <h2>{isFailed ? "Failed items" : "Items that are tried again"}</h2>
      <CardTable id={id} name={isFailed ? "Failed items" : "Items that are tried again"} headings={HEADINGS}>
        {items.map((item) => (
          <Row id={`item-${item.number}`}>
            <NameCell>{changeText(item.topic)}</NameCell>
            <Cell>
              <About subject={item.subject} />
            </Cell>
            <Cell>
              {reasonText(item)}{" "}
              {item.nextAttemptAt === null ? null : (
                <span class="muted nowrap">
                  next attempt <Time ms={item.nextAttemptAt} />
                </span>
              )}
            </Cell>
            <Cell class="corner">
              <Age ms={item.receivedAt} now={now} />
            </Cell>
            <Cell>
              <Form class="inline" action={`${TAB}/${item.number}/retry`}>
                <button
                  type="submit"
                  id={`retry-${item.number}`}
                  class="outline"
                  aria-label={`Try again: ${changeText(item.topic)}, ${aboutText(item.subject)}`}
                >
                  Try again
                </button>
              </Form>
            </Cell>
          </Row>
        ))}
      </CardTable>
      {count > items.length && isFailed ? (
        <p>
          These are the newest {items.length} of {count.toLocaleString("en")}.
        </p>
      ) : null}
    </>
  );
}

/** Words for the object of a Shopify topic. Each key is the topic's first part. */
const CHANGED: Record<string, string> = {
  subscription_contracts: "Subscription",
  subscription_billing_attempts: "Charge",
  subscription_billing_cycles: "Renewal",
  subscription_billing_cycle_edits: "Change of a renewal",
  customers: "Customer",
  customers_email_marketing_consent: "Consent to marketing e-mail",
  orders: "Order",
  app: "App",
  app_subscriptions: "Plan",
  shop: "Shop",
};
const CHANGES: Record<string, string> = {
  create: "created",
  update: "updated",
  delete: "deleted",
  activate: "activated",
  pause: "paused",
  cancel: "cancelled",
  expire: "expired",
  fail: "failed",
  failure: "failed",
  success: "succeeded",
  skip: "skipped",
  unskip: "not skipped",
  enable: "enabled",
  disable: "disabled",
  merge: "merged",
  redact: "to be redacted",
  data_request: "asks for data",
  scopes_update: "has other permissions",
};

/** Writes a topic of Shopify as words: "orders/create" as "Order created". */
function changeText(topic: string): string {
  const [what = "", change = ""] = topic.split("/");
  const changed = CHANGED[what];
  return changed === undefined ? printable(topic) : `${changed} ${CHANGES[change] ?? printable(change)}`;
}

const OBJECTS: Record<string, string> = { SubscriptionContract: "Subscription", Customer: "Customer", Order: "Order" };
const GID = /gid:\/\/shopify\/(SubscriptionContract|Customer|Order)\/(\d{1,20})$/;

function aboutText(subject: string): string {
  const [, object = "", number = ""] = GID.exec(subject) ?? [];
  return number === "" ? "The shop" : `${OBJECTS[object]} ${number}`;
}

function About({ subject }: { subject: string }) {
  const [gid] = GID.exec(subject) ?? [];
  const text = aboutText(subject);
  if (gid === undefined) return <>{text}</>;
  return (
    <span class="nowrap">
      <Link to={`/data/browse?${new URLSearchParams({ find: gid })}`}>{text}</Link>
    </span>
  );
}

function reasonText({ error }: InboxEntry): string {
  if (error === null) return "It was not tried yet.";
  const { what, todo } = explainError(error);
  return `${sentence(printable(what))} ${todo}`;
}

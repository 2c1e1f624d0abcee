/** @jsxImportSource preact */
import type { ComponentChildren } from "preact";
import { numberOf } from "../../../domain/deliveries/subject.ts";
import type { Customer, Order, Resource, Subscription } from "../../../domain/resources.ts";
import type { Shop } from "../../../domain/shop.ts";
import { amountText, counted } from "../../../lib/text.ts";
import { CardTable, Cell, NameCell, Row } from "../card-table.ts";
import { Link, Time } from "../components.tsx";
import { RESOURCE_NAMES } from "../resource-names.ts";

/** The rows of each resource, as the API gives them. */
export interface ResourceRows {
  subscriptions: Subscription;
  customers: Customer;
  orders: Order;
}

type RowStatus = Subscription["status"] | Order["status"];

/** The look, the shape and the name of each status. */
const STATUSES: Record<RowStatus, [look: string, shape: string, name: string]> = {
  ACTIVE: ["delivered", "●", "Active"],
  PAUSED: ["pending", "◐", "Paused"],
  CANCELLED: ["pending", "✕", "Cancelled"],
  PAYMENT_FAILED: ["dead", "✕", "Payment failed"],
  EXPIRED: ["pending", "○", "Expired"],
  PENDING: ["pending", "○", "Pending"],
  PAID: ["delivered", "●", "Paid"],
  RECOVERED: ["delivered", "●", "Recovered"],
  FAILED: ["retrying", "◐", "Failed"],
  UNCOLLECTIBLE: ["dead", "✕", "Uncollectible"],
  SKIPPED: ["pending", "○", "Skipped"],
};

export function RowStatusBadge({ status }: { status: RowStatus }) {
  const [look, shape, name] = STATUSES[status];
  return (
    <span class={`status ${look}`}>
      <span aria-hidden="true">{shape}</span> {name}
    </span>
  );
}

const UNITS = { DAY: "day", WEEK: "week", MONTH: "month" } as const;

/** Says how often a contract is billed: "every month", "every 2 weeks". */
export function intervalText({ interval, intervalCount }: Subscription): string {
  const unit = UNITS[interval];
  return intervalCount === 1 ? `every ${unit}` : `every ${counted(intervalCount, unit, `${unit}s`)}`;
}

/** Names an order. A declined charge has no number yet. */
export function orderName({ shopifyId, source, cycleNumber }: Order): string {
  if (shopifyId !== null) return `Order ${numberOf(shopifyId)}`;
  return source === "checkout" ? "Checkout without an order" : `Renewal ${cycleNumber}, no order`;
}

export function DateOf({ date }: { date: string | null }) {
  return date === null ? <>–</> : <Time ms={Date.parse(date)} />;
}

interface RowTableProps<R extends Resource> {
  id: string;
  resource: R;
  rows: readonly ResourceRows[R][];
  shop: Shop;
  /** Whether only the first columns are shown, because the table has half of the page's width. */
  isBrief?: boolean;
}

const BRIEF_COLUMNS = 3;
/** Heading of the column that is at the top right of a card. */
const STATUS = "Status";

/** The columns for each resource. They show the row's name, status and facts, without personal data. */
const COLUMNS: { [R in Resource]: [heading: string, cell: (row: ResourceRows[R], shop: Shop) => ComponentChildren][] } =
  {
    subscriptions: [
      ["Subscription", ({ shopifyId }) => `Subscription ${numberOf(shopifyId)}`],
      [STATUS, ({ status }) => <RowStatusBadge status={status} />],
      ["Billed", intervalText],
      ["Next billing", ({ nextBillingDate }) => <DateOf date={nextBillingDate} />],
      ["Started", ({ startedAt }) => <DateOf date={startedAt} />],
    ],
    customers: [
      ["Customer", ({ shopifyId }) => `Customer ${numberOf(shopifyId)}`],
      ["Subscriptions", ({ subscriptionCount }) => subscriptionCount.toLocaleString("en")],
      ["Store credit", ({ creditsCents }, { currency }) => amountText(creditsCents, currency)],
      ["First seen", ({ createdAt }) => <DateOf date={createdAt} />],
    ],
    orders: [
      ["Order", orderName],
      [STATUS, ({ status }) => <RowStatusBadge status={status} />],
      ["Total", ({ totalCents }, { currency }) => amountText(totalCents, currency)],
      ["Renewal", ({ source, cycleNumber }) => (source === "checkout" ? "checkout" : cycleNumber)],
      ["Billed", ({ billedAt }) => <DateOf date={billedAt} />],
    ],
  };

export function RowTable<R extends Resource>({ id, resource, rows, shop, isBrief = false }: RowTableProps<R>) {
  const columns = COLUMNS[resource].slice(0, isBrief ? BRIEF_COLUMNS : undefined);
  const [[, nameOf] = ["", () => null], ...others] = columns;
  return (
    <CardTable id={id} name={RESOURCE_NAMES[resource].many} headings={columns.map(([heading]) => heading)}>
      {rows.map((row) => (
        <Row id={`${id}-${row.id}`}>
          <NameCell>
            <Link to={`/data/browse/${row.id}`}>{nameOf(row, shop)}</Link>
          </NameCell>
          {others.map(([heading, cell]) => (
            <Cell {...(heading === STATUS ? { class: "corner" } : { label: heading })}>{cell(row, shop)}</Cell>
          ))}
        </Row>
      ))}
    </CardTable>
  );
}

/** @jsxImportSource preact */
import type { ComponentChildren } from "preact";
import { noteInAudit } from "../../../actions/audit.ts";
import { listRows, resourceNamed } from "../../../actions/row-search.ts";
import { numberOf } from "../../../domain/deliveries/subject.ts";
import { SdsError } from "../../../domain/error.ts";
import type { RowFilter } from "../../../domain/pages/row-filter.ts";
import type { LineItem, Resource } from "../../../domain/resources.ts";
import type { Shop } from "../../../domain/shop.ts";
import { escapeControls, printable } from "../../../lib/log.ts";
import { amountText } from "../../../lib/text.ts";
import type { PageStore, RowForm } from "../../../store/port/pages.ts";
import type { Handler } from "../admin-request.ts";
import { Code, readable } from "../code.tsx";
import { CopyButton, type Fact, Facts, Link } from "../components.tsx";
import { RESOURCE_NAMES } from "../resource-names.ts";
import { DateOf, intervalText, orderName, type ResourceRows, RowStatusBadge, RowTable } from "./row-table.tsx";

const BROWSE = "/data/browse";
/** Maximum number of linked rows of a resource on the page of a customer or a subscription. */
const LINKED_ROWS = 5;
/** Maximum number of line items that the page names. */
const NAMED_LINES = 5;

/** A row as the API gives it. */
interface ShownRow<R extends Resource> {
  row: ResourceRows[R];
  shop: Shop;
  /** Whether the customer's personal data was removed; false for rows of other resources. */
  isRedacted: boolean;
}

/**
 * Shows one row: its facts, its linked rows, and its JSON as the API gives it. The audit list notes who viewed a
 * customer or custom fields, because both may be about a person.
 */
export const showRow: Handler = async (request, { store, now }) => {
  const { shop, id, query } = request;
  const { pages } = store;
  const resource = resourceNamed(id);
  const withFields = resource === "subscriptions" && query.get("include") === "customFields";
  const form: RowForm | undefined = withFields ? "subscriptionsWithFields" : resource;
  const found = form === undefined ? undefined : await pages.find(shop.id, form, { id });
  if (found === undefined || resource === undefined) throw new SdsError("not_found", "this shop has no such row");
  const facts = FACTS[resource] as (shown: ShownRow<Resource>) => RowFacts;
  const row = JSON.parse(found.json) as ResourceRows[Resource];
  if (resource === "customers" || withFields)
    await noteInAudit(store, request, now(), "person.shown", { subject: row.shopifyId });
  const isRedacted = resource === "customers" && (await store.history.redactedAt(shop.id, id)) !== undefined;
  const { title, facts: shown, filter } = facts({ row, shop, isRedacted });
  const content = (
    <div class="columns">
      <div>
        <Facts id="facts" facts={shown} />
        {await linkedRows(pages, shop, filter)}
      </div>
      <RowJson id={id} resource={resource} json={found.json} withFields={withFields} />
    </div>
  );
  const trail = { to: `${BROWSE}?resource=${resource}`, name: "Data" };
  return { title, tab: BROWSE, trail, content };
};

interface RowFacts {
  title: string;
  facts: Fact[];
  /** Filter for the linked rows; undefined if the resource has no linked rows. */
  filter?: RowFilter;
}

const FACTS: { [R in Resource]: (shown: ShownRow<R>) => RowFacts } = {
  subscriptions: ({ row, shop }) => ({
    title: `Subscription ${numberOf(row.shopifyId)}`,
    filter: { contractId: row.id },
    facts: [
      ["Status", <RowStatusBadge status={row.status} />],
      ["Customer", <RowLink id={row.customerId} />],
      ["Billed", intervalText(row)],
      ["Next billing", <DateOf date={row.nextBillingDate} />],
      ["Renewals billed", row.cyclesCompleted.toLocaleString("en")],
      ["Items", <Lines lines={row.lines} shop={shop} />],
      ["Started", <DateOf date={row.startedAt} />],
      ["Cancelled", <DateOf date={row.cancelledAt} />],
      ...idFacts(row),
      ["Deliveries", <DeliveriesLink subject={row.shopifyId} />],
    ],
  }),
  customers: ({ row, shop, isRedacted }) => ({
    title: `Customer ${numberOf(row.shopifyId)}`,
    filter: { customerId: row.id },
    facts: [
      ...personFacts(row, isRedacted),
      ["Marketing e-mail", row.marketingConsent ? "allowed" : "not allowed"],
      ["Store credit", amountText(row.creditsCents, shop.currency)],
      ["Loyalty tier", row.loyaltyTier],
      ["First seen", <DateOf date={row.createdAt} />],
      ...idFacts(row),
      ["Deliveries", <DeliveriesLink subject={row.shopifyId} />],
    ],
  }),
  orders: ({ row, shop }) => ({
    title: orderName(row),
    facts: [
      ["Status", <RowStatusBadge status={row.status} />],
      ["Subscription", <RowLink id={row.contractId} />],
      ["Customer", <RowLink id={row.customerId} />],
      ["Renewal", row.source === "checkout" ? "checkout" : row.cycleNumber],
      ["Items", <Lines lines={row.lines} shop={shop} />],
      ["Subtotal", amountText(row.subtotalCents, shop.currency)],
      ["Discounts", amountText(row.discountCents, shop.currency)],
      ["Store credit", amountText(row.creditsCents, shop.currency)],
      ["Total", amountText(row.totalCents, shop.currency)],
      ["Billed", <DateOf date={row.billedAt} />],
      ...idFacts(row),
      ...(row.shopifyId === null ? [] : [["Deliveries", <DeliveriesLink subject={row.shopifyId} />] as const]),
    ],
  }),
};

function idFacts({ id, shopifyId }: { id: string; shopifyId: string | null }): Fact[] {
  return [
    ["Id", <code>{id}</code>],
    ["Gid", shopifyId === null ? "–" : <code>{shopifyId}</code>],
  ];
}

/** The name and the e-mail address of a customer. */
function personFacts({ firstName, lastName, email }: ResourceRows["customers"], isRedacted: boolean): Fact[] {
  const name = [firstName, lastName].filter((part) => part !== null).join(" ");
  if (name === "" && email === null) {
    const reason = isRedacted ? "removed, because the customer asked for it or was deleted" : "not given to this app";
    return [["Name and e-mail", reason, "no-person"]];
  }
  return [
    ["Name", name === "" ? "–" : <bdi>{printable(name)}</bdi>],
    ["E-mail", email === null ? "–" : <bdi>{printable(email)}</bdi>],
  ];
}

function RowLink({ id }: { id: string }) {
  return (
    <Link to={`${BROWSE}/${id}`}>
      <code>{id}</code>
    </Link>
  );
}

function DeliveriesLink({ subject }: { subject: string }) {
  return <Link to={`/deliveries?${new URLSearchParams({ subject })}`}>Show the webhooks about it</Link>;
}

function Lines({ lines, shop }: { lines: readonly LineItem[]; shop: Shop }) {
  const more = lines.length - NAMED_LINES;
  return (
    <ul id="lines">
      {lines.slice(0, NAMED_LINES).map(({ title, quantity, unitPriceCents }) => (
        <li>
          {quantity} × <bdi>{printable(title)}</bdi>, {amountText(unitPriceCents, shop.currency)}
        </li>
      ))}
      {more > 0 ? <li>and {more} more</li> : null}
    </ul>
  );
}

interface RowJsonProps {
  id: string;
  resource: Resource;
  json: string;
  withFields: boolean;
}

function RowJson({ id, resource, json, withFields }: RowJsonProps) {
  const address = `/api/v1/${resource}/${id}${withFields ? "?include=customFields" : ""}`;
  return (
    <div>
      <div class="title">
        <h2 id="json-heading">As the API gives it</h2>
        <CopyButton of="json" name="the JSON" />
      </div>
      <p class="muted">
        <code>GET {address}</code>
      </p>
      <Code id="json" label="JSON" text={escapeControls(readable(json))} />
      {resource === "subscriptions" ? (
        <p>
          {withFields ? (
            <Link to={`${BROWSE}/${id}`}>Without custom fields</Link>
          ) : (
            <Link to={`${BROWSE}/${id}?include=customFields`}>With custom fields</Link>
          )}
        </p>
      ) : null}
    </div>
  );
}

/** Shows the newest orders of a subscription, or the newest subscriptions and orders of a customer. */
async function linkedRows(pages: PageStore, shop: Shop, filter: RowFilter | undefined): Promise<ComponentChildren> {
  if (filter === undefined) return null;
  const resources = (filter.contractId === undefined ? ["subscriptions", "orders"] : ["orders"]) as Resource[];
  return Promise.all(
    resources.map(async (resource) => {
      const { many } = RESOURCE_NAMES[resource];
      const page = await listRows(pages, shop, resource, { filter, limit: LINKED_ROWS });
      if (page === undefined || page.rows.length === 0) return null;
      return (
        <section aria-labelledby={`${resource}-heading`}>
          <h2 id={`${resource}-heading`}>{many}</h2>
          <RowTable
            id={resource}
            resource={resource}
            rows={page.rows as ResourceRows[Resource][]}
            shop={shop}
            isBrief
          />
          {page.older === null ? null : (
            <p>
              <Link to={`${BROWSE}?${new URLSearchParams({ resource, ...linkParameters(filter) })}`}>
                All {many.toLowerCase()}
              </Link>
            </p>
          )}
        </section>
      );
    }),
  );
}

function linkParameters({ customerId, contractId }: RowFilter): Record<string, string> {
  return contractId === undefined ? { customerId: customerId ?? "" } : { contractId };
}

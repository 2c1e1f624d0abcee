import { GraphQLError } from "graphql";
import { BULK_MUTATIONS, BULK_QUERIES } from "./bulk-fields.ts";
import { countRows, numbersPage, type PageArguments, rowsPage } from "./connection.ts";
import type { Context, Fields } from "./context.ts";
import { type Cycle, cycleAt, cycleOf, firstBilledFrom } from "./cycles.ts";
import { type Kind, type Row, type RowOf, TYPE_NAME } from "./rows.ts";

const PAYLOAD_LIMIT = 50_000;

function find<K extends Kind>({ shop }: Context, kind: K, id: string): RowOf[K] | null {
  if (!new RegExp(`^gid://shopify/${TYPE_NAME[kind]}/\\d+$`).test(id))
    throw new GraphQLError(`Invalid global id '${id}'`);
  return shop.find(kind, id) ?? null;
}

/** The refusal of protected customer data. @param action in the platform's words, such as `access the Order object` */
export function notApproved(action: string): GraphQLError {
  const documentation = "https://shopify.dev/docs/apps/launch/protected-customer-data";
  const message = `This app is not approved to ${action}. See ${documentation} for more details.`;
  return new GraphQLError(message, { extensions: { code: "ACCESS_DENIED", documentation } });
}

/** @returns an error for an object that is protected customer data, if the app has no approval */
function nodeOf({ shop }: Context, id: string): Row | GraphQLError | null {
  const row = shop.findAny(id);
  const isProtected = row?.kind === "customer" || row?.kind === "order";
  if (isProtected && shop.approvedLevel < 1) return notApproved(`access the ${TYPE_NAME[row.kind]} object`);
  return row ?? null;
}

interface CycleRanges {
  contractId: string;
  billingCyclesDateRangeSelector?: { startDate: string; endDate: string } | null;
  billingCyclesIndexRangeSelector?: { startIndex: number; endIndex: number } | null;
}

function cyclesPage(_: unknown, args: PageArguments & CycleRanges, context: Context) {
  const contract = find(context, "contract", args.contractId);
  // It is possible that a late replica does not have the contract yet.
  if (contract === null)
    throw new GraphQLError("Subscription contract does not exist.", { extensions: { code: "NOT_FOUND" } });
  const { billingCyclesDateRangeSelector: dates, billingCyclesIndexRangeSelector: indexes } = args;
  let from = indexes?.startIndex ?? 1;
  let to = indexes?.endIndex ?? Number.POSITIVE_INFINITY;
  if (dates) {
    from = Math.max(from, firstBilledFrom(contract, readTime(dates.startDate)));
    to = Math.min(to, firstBilledFrom(contract, readTime(dates.endDate) + 1) - 1);
  }
  from = Math.max(1, from);
  const last = contract.maxCycles ?? Number.POSITIVE_INFINITY;
  // Checks only the cycles of the first page, because the list can be endless.
  if (Math.min(to, from + (args.first ?? 1) - 1) > last) {
    const { cyclesAfterEnd } = context.shop;
    if (cyclesAfterEnd === "cut") to = last;
    else if (cyclesAfterEnd === "null") throw noSuchCycle("INTERNAL_SERVER_ERROR");
    else if (cyclesAfterEnd === "refused") throw noSuchCycle("CYCLE_INDEX_OUT_OF_RANGE");
  }
  return numbersPage(from, to, args, (index) => cycleOf(contract, index));
}

function noSuchCycle(code: string): GraphQLError {
  return new GraphQLError("The contract has no such billing cycle.", { extensions: { code } });
}

function cycleByInput(
  _: unknown,
  {
    billingCycleInput: { contractId, selector },
  }: { billingCycleInput: { contractId: string; selector: { index?: number | null; date?: string | null } } },
  context: Context,
): Cycle | null {
  const contract = find(context, "contract", contractId);
  if (contract === null) return null;
  const cycle =
    typeof selector.index === "number"
      ? cycleOf(contract, selector.index)
      : cycleAt(contract, readTime(selector.date ?? ""));
  const { cyclesAfterEnd } = context.shop;
  const isAfterEnd = (cycle?.index ?? 0) > (contract.maxCycles ?? Number.POSITIVE_INFINITY);
  if (!isAfterEnd || cyclesAfterEnd === "listed") return cycle;
  if (cyclesAfterEnd === "refused") throw noSuchCycle("CYCLE_INDEX_OUT_OF_RANGE");
  return null;
}

function readTime(text: string): number {
  const time = Date.parse(text);
  if (Number.isNaN(time)) throw new GraphQLError(`${text} is not a DateTime`);
  return time;
}

function receiveTrigger(
  _: unknown,
  { handle, payload }: { handle?: string | null; payload?: unknown },
  { shop, handles, raw }: Context,
) {
  const refuse = (field: string, message: string) => ({
    userErrors: [{ field: [field], message: `Errors validating schema: ${message}` }],
  });
  if (typeof handle !== "string" || !handles.has(handle)) return refuse("handle", `Invalid handle '${handle}'.`);
  if (Buffer.byteLength(JSON.stringify(payload ?? null)) > PAYLOAD_LIMIT)
    return refuse("payload", `Properties size exceeds the limit of ${PAYLOAD_LIMIT} bytes.`);
  shop.workflows.push({ handle, payload, raw });
  return { userErrors: [] };
}

const query: Fields<unknown> = {
  currentAppInstallation: (_, __, { shop }) => shop,
  shop: (_, __, { shop }) => shop,
  customer: (_, { id }, context) => find(context, "customer", id),
  customers: (_, args, { shop, unknown }) => rowsPage(shop, "customer", args, unknown),
  customersCount: (_, args, { shop, unknown }) => countRows(shop, "customer", args, unknown),
  order: (_, { id }, context) => find(context, "order", id),
  orders: (_, args, { shop, unknown }) => rowsPage(shop, "order", args, unknown),
  ordersCount: (_, args, { shop, unknown }) => countRows(shop, "order", args, unknown),
  subscriptionContract: (_, { id }, context) => find(context, "contract", id),
  subscriptionContracts: (_, args, { shop, unknown }) => rowsPage(shop, "contract", args, unknown),
  subscriptionBillingAttempt: (_, { id }, context) => find(context, "attempt", id),
  subscriptionBillingAttempts: (_, args, { shop, unknown }) => rowsPage(shop, "attempt", args, unknown),
  subscriptionBillingCycle: cycleByInput,
  subscriptionBillingCycles: cyclesPage,
  ...BULK_QUERIES,
  node: (_, { id }, context) => nodeOf(context, id),
  nodes: (_, { ids }: { ids: string[] }, context) => ids.map((id) => nodeOf(context, id)),
};

const mutation: Fields<unknown> = { flowTriggerReceive: receiveTrigger, ...BULK_MUTATIONS };

export const ROOT_FIELDS: Record<string, Fields<never>> = { QueryRoot: query, Mutation: mutation };

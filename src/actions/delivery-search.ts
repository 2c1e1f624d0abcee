import { customerSubjects, numberOf, type SubjectSearch } from "../domain/deliveries/subject.ts";
import { isRowName, type NamedRow, namedRow } from "../domain/pages/row-filter.ts";
import { RESOURCES, type Resource } from "../domain/resources.ts";
import type { MirroredShop } from "../domain/shop.ts";
import type { PageStore } from "../store/port/pages.ts";
import { gidOfNumber } from "./row-search.ts";

/** The contracts of a customer whose deliveries a search finds: the newest ones. */
const CONTRACTS_OF_CUSTOMER = 20;

/** The number of a gid. */
const NUMBER = /^[1-9][0-9]{0,19}$/;

/** Fields of rows of the mirror, as the API serves them. */
interface FoundRow {
  shopifyId: string | null;
  contractId: string;
  cycleNumber: number;
}

/** Whether a text can name a subject of deliveries. */
export function isSubject(typed: string): boolean {
  const text = subjectText(typed);
  return NUMBER.test(text) || RESOURCES.some((resource) => isRowName(resource, text));
}

function subjectText(typed: string): string {
  return typed.trim().replace(/^#/, "");
}

/**
 * Finds the subjects that a typed text names: a gid, an internal id, or a number, also as `#1042`. A number may be of a
 * contract, an order and a customer at once. Deliveries about a customer are those about their
 * newest contracts too.
 * @returns an empty list if the text names nothing
 */
export async function findSubjects(pages: PageStore, shop: MirroredShop, typed: string): Promise<SubjectSearch[]> {
  const text = subjectText(typed);
  const isNumber = NUMBER.test(text);
  const named = (resource: Resource) =>
    namedRow(resource, isNumber ? gidOfNumber(resource, text) : text, shop.firstDomain);
  const [contract, customer, order] = [named("subscriptions"), named("customers"), named("orders")];
  const isContractGid = contract !== undefined && !text.startsWith("sub_");
  const found = await Promise.all([
    isContractGid ? [{ subject: numberOf(text) }] : contractSubject(pages, shop.id, contract),
    customer === undefined ? [] : subjectsOfCustomer(pages, shop.id, customer.id ?? ""),
    order === undefined ? [] : subjectOfOrder(pages, shop.id, order),
  ]);
  return found.flat();
}

async function contractSubject(
  pages: PageStore,
  shopId: number,
  name: NamedRow | undefined,
): Promise<{ subject: string }[]> {
  const row = name === undefined ? undefined : await findRow(pages, shopId, "subscriptions", name);
  return row?.shopifyId == null ? [] : [{ subject: numberOf(row.shopifyId) }];
}

async function subjectsOfCustomer(pages: PageStore, shopId: number, id: string): Promise<SubjectSearch[]> {
  const row = await findRow(pages, shopId, "customers", { id });
  if (row?.shopifyId == null) return [];
  const page = await pages.listFiltered(shopId, "subscriptions", { customerId: id }, CONTRACTS_OF_CUSTOMER, null);
  const contracts = JSON.parse(`[${new TextDecoder().decode(page?.rows)}]`) as FoundRow[];
  const numbers = contracts.map(({ shopifyId }) => numberOf(shopifyId ?? ""));
  return [...customerSubjects(id, row.shopifyId), ...numbers].map((subject) => ({ subject }));
}

async function subjectOfOrder(pages: PageStore, shopId: number, name: NamedRow): Promise<SubjectSearch[]> {
  const row = await findRow(pages, shopId, "orders", name);
  if (row === undefined) return [];
  const [contract] = await contractSubject(pages, shopId, { id: row.contractId });
  return contract === undefined ? [] : [{ ...contract, order: { gid: row.shopifyId, cycle: row.cycleNumber } }];
}

async function findRow(
  pages: PageStore,
  shopId: number,
  resource: Resource,
  name: NamedRow,
): Promise<FoundRow | undefined> {
  const row = await pages.find(shopId, resource, name);
  return row === undefined ? undefined : (JSON.parse(row.json) as FoundRow);
}

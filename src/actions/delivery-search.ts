import { customerSubjects, numberOf, type SubjectSearch } from "../domain/deliveries/subject.ts";
import { isRowName, type NamedRow, namedRow } from "../domain/pages/row-filter.ts";
import { RESOURCES, type Resource } from "../domain/resources.ts";
import type { MirroredShop } from "../domain/shop.ts";
import type { PageStore } from "../store/port/pages.ts";
import { gidOfNumber } from "./row-search.ts";

/** Maximum number of a customer's contracts, newest first, that a search for the customer includes. */
const CONTRACTS_OF_CUSTOMER = 20;

/** Matches the number at the end of a gid. */
const NUMBER = /^[1-9][0-9]{0,19}$/;

/** A row of the mirror, with the fields by which its deliveries are found. */
export interface FoundRow {
  resource: Resource;
  id: string;
  shopifyId: string | null;
  customerId: string | null;
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
 * Finds the rows that match the user's input: a gid, an internal id, or a number, also as `#1042`. One number can match
 * a contract, an order and a customer.
 */
export async function findRows(pages: PageStore, shop: MirroredShop, typed: string): Promise<FoundRow[]> {
  const text = subjectText(typed);
  const found = await Promise.all(
    RESOURCES.map((resource) => {
      const name = namedRow(resource, NUMBER.test(text) ? gidOfNumber(resource, text) : text, shop.firstDomain);
      return name === undefined ? undefined : findRow(pages, shop.id, resource, name);
    }),
  );
  return found.flatMap((row) => row ?? []);
}

/**
 * Finds the rows that match the user's input (`findRows`), and returns the subjects of deliveries about these rows.
 * A contract's gid or number needs no row to be a subject. Test events name contracts that have no row.
 * @returns an empty list if the input matches nothing
 */
export async function findSubjects(pages: PageStore, shop: MirroredShop, typed: string): Promise<SubjectSearch[]> {
  const text = subjectText(typed);
  const isContract = NUMBER.test(text) || (isRowName("subscriptions", text) && !text.startsWith("sub_"));
  const rows = (await findRows(pages, shop, typed)).filter((row) => !isContract || row.resource !== "subscriptions");
  return [...(isContract ? [{ subject: numberOf(text) }] : []), ...(await subjectsOf(pages, shop.id, rows))];
}

/** Returns the subjects of deliveries about these rows. For a customer, adds subjects of the newest contracts. */
export async function subjectsOf(
  pages: PageStore,
  shopId: number,
  rows: readonly FoundRow[],
): Promise<SubjectSearch[]> {
  const found = (await Promise.all(rows.map((row) => subjectsOfRow(pages, shopId, row)))).flat();
  // A number can match a customer, a contract and an order, which can have the same subject. A search for a whole
  // subject includes all its orders. So it replaces a search for one order of the subject.
  const whole = new Map(found.filter(({ order }) => order === undefined).map((each) => [each.subject, each]));
  return [...whole.values(), ...found.filter(({ subject, order }) => order !== undefined && !whole.has(subject))];
}

async function subjectsOfRow(pages: PageStore, shopId: number, row: FoundRow): Promise<SubjectSearch[]> {
  const { resource, id, shopifyId } = row;
  if (resource === "orders") {
    const contract = await findRow(pages, shopId, "subscriptions", { id: row.contractId });
    const order = { gid: shopifyId, cycle: row.cycleNumber };
    return contract?.shopifyId == null ? [] : [{ subject: numberOf(contract.shopifyId), order }];
  }
  if (shopifyId === null) return [];
  if (resource === "subscriptions") return [{ subject: numberOf(shopifyId) }];
  const page = await pages.listFiltered(shopId, "subscriptions", { customerId: id }, CONTRACTS_OF_CUSTOMER, null);
  const contracts = JSON.parse(`[${new TextDecoder().decode(page?.rows)}]`) as { shopifyId: string }[];
  return [...customerSubjects(id, shopifyId), ...contracts.map((contract) => numberOf(contract.shopifyId))].map(
    (subject) => ({ subject }),
  );
}

async function findRow(
  pages: PageStore,
  shopId: number,
  resource: Resource,
  name: NamedRow,
): Promise<FoundRow | undefined> {
  const row = await pages.find(shopId, resource, name);
  return row === undefined ? undefined : { resource, ...(JSON.parse(row.json) as Omit<FoundRow, "resource">) };
}

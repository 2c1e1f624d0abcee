import type { ShopAddress } from "./address.ts";
import { mayBeOneObject, type PlatformError } from "./platform-error.ts";

/** Query sizes that the platform accepts, by shop and operation. They are kept until the program ends. */
export interface BatchSizes {
  /** Returns the size for the next query. @param most the size to use if no query was refused yet */
  of(shop: ShopAddress, operation: string, most: number): number;
  /** Sets the size for the next query to half of `refused`, a size that was too costly. */
  halve(shop: ShopAddress, operation: string, refused: number): void;
}

export function createBatchSizes(): BatchSizes {
  const sizes = new Map<string, number>();
  const keyOf = ({ id }: ShopAddress, operation: string) => `${id} ${operation}`;
  return {
    of: (shop, operation, most) => Math.min(most, sizes.get(keyOf(shop, operation)) ?? most),
    halve(shop, operation, refused) {
      sizes.set(keyOf(shop, operation), Math.max(1, Math.floor(refused / 2)));
    },
  };
}

/**
 * Maximum number of consecutive objects that may fail when each is queried alone. More failures are not caused by
 * single objects. Without this limit, an outage of the platform would put all objects of a shop into the inbox.
 */
export const MAX_FAILURES_IN_A_ROW = 10;

interface Batch<I, O> {
  sizes: BatchSizes;
  shop: ShopAddress;
  operation: string;
  most: number;
  /** Returns a result or an error for each item. */
  query(items: readonly I[]): Promise<PromiseSettledResult<O>[]>;
}

/**
 * Queries items, many at a time. If one item may have caused an error, the two halves are queried separately.
 * @returns for each item its result or its error @throws PlatformError if no single item can be the cause
 */
export async function queryInBatches<I, O>(
  { sizes, shop, operation, most, query }: Batch<I, O>,
  items: readonly I[],
): Promise<PromiseSettledResult<O>[]> {
  let failuresInARow = 0;

  async function queryHalving(part: readonly I[]): Promise<PromiseSettledResult<O>[]> {
    try {
      const results = await query(part);
      failuresInARow = 0;
      return results;
    } catch (thrown) {
      if (!mayBeOneObject(thrown)) throw thrown;
      if (thrown.isTooCostly) sizes.halve(shop, operation, part.length);
      if (part.length > 1) {
        const half = Math.ceil(part.length / 2);
        return [...(await queryHalving(part.slice(0, half))), ...(await queryHalving(part.slice(half)))];
      }
      if (thrown.reason === "incomplete") failuresInARow += 1;
      if (failuresInARow > MAX_FAILURES_IN_A_ROW) throw thrown;
      return [{ status: "rejected", reason: thrown }];
    }
  }

  const results: PromiseSettledResult<O>[] = [];
  while (results.length < items.length) {
    const size = sizes.of(shop, operation, most);
    results.push(...(await queryHalving(items.slice(results.length, results.length + size))));
  }
  return results;
}

/**
 * Returns a result for each item of a list in an incomplete answer. The result is the item, or the item's error.
 * @returns undefined if the answer does not have the list, or an error is outside the list
 */
export function settledItems<T>(thrown: PlatformError, ...listPath: string[]): PromiseSettledResult<T>[] | undefined {
  const { data, errors } = thrown.partial ?? { data: {}, errors: [] };
  const list = listPath.reduce<unknown>((parent, step) => (parent as Record<string, unknown> | null)?.[step], data);
  const isInList = (path: readonly (string | number)[]) =>
    listPath.every((step, depth) => path[depth] === step) && typeof path[listPath.length] === "number";
  if (!Array.isArray(list) || !errors.every(({ path }) => isInList(path))) return undefined;
  const failures = new Map(errors.toReversed().map(({ path, error }) => [path[listPath.length], error]));
  return list.map((value: T, index) => {
    const reason = failures.get(index);
    return reason === undefined ? { status: "fulfilled", value } : { status: "rejected", reason };
  });
}

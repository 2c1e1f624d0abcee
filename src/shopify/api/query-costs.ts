/** What a query asks for. Queries of one operation and one size cost the same. */
export interface QueryShape {
  operationName: string;
  /** How many nodes it asks for, if that varies; else 1. */
  size: number;
}

/** What queries cost in points, as far as responses have told. */
export interface QueryCosts {
  /** @returns an estimate that is rarely too low; undefined if no query of the operation was answered */
  estimate(shape: QueryShape): number | undefined;
  note(shape: QueryShape, cost: number): void;
}

export function createQueryCosts(): QueryCosts {
  /** By operation, then by size. */
  const known = new Map<string, Map<number, number>>();

  return {
    estimate({ operationName, size }) {
      const costs = known.get(operationName);
      if (costs === undefined) return undefined;
      const larger = [...costs.keys()].filter((each) => each >= size);
      if (larger.length > 0) return costs.get(Math.min(...larger));
      // The platform charges a connection less than twice as much for twice as many nodes.
      const largest = Math.max(...costs.keys());
      return Math.ceil(((costs.get(largest) ?? 0) * size) / largest);
    },
    note({ operationName, size }, cost) {
      const costs = known.get(operationName) ?? new Map<number, number>();
      known.set(operationName, costs.set(size, cost));
    },
  };
}

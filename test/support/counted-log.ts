import { expect } from "bun:test";
import { numberOf } from "../../src/domain/deliveries/subject.ts";
import type { Store } from "../../src/store/port/store.ts";

const DAY = 86_400_000;

/**
 * Checks the delivery log after an upgrade. The log must count the attempts of the 30 days before the last attempt, and
 * find deliveries by their contract.
 *
 * When a delivery died, `serve` counted its last attempt as dead. The upgrade counts this attempt as retried if the
 * delivery was sent again later. So this check compares only the sum of dead and retried attempts.
 */
export async function expectCountedLog({ shops, deliveries }: Store): Promise<void> {
  const logs = await Promise.all(
    (await shops.list()).map(async ({ id }) => {
      const listed = await deliveries.list(id, { limit: 10_000 });
      return { id, shown: await Promise.all(listed.map((each) => deliveries.show(id, each.id))) };
    }),
  );
  const starts = logs.flatMap(({ shown }) => shown.flatMap(({ history }) => history.map(({ startedAt }) => startedAt)));
  const first = Math.max(...starts) - 30 * DAY;
  for (const { id, shown } of logs) {
    const counts = new Map<string, number>();
    const count = (into: Map<string, number>, key: string, attempts: number) =>
      into.set(key, (into.get(key) ?? 0) + attempts);
    for (const { kind, history } of shown)
      for (const { startedAt, error } of history.filter((each) => each.startedAt > first))
        count(counts, `${kind} ${startedAt - (startedAt % DAY)} ${error === null}`, 1);
    const counted = new Map<string, number>();
    for (const { kind, day, outcome, attempts } of await deliveries.countsByDay(id, 0))
      count(counted, `${kind} ${day} ${outcome === "delivered"}`, attempts);
    expect(counted).toEqual(counts);
    const contract = shown.find(({ subject }) => subject.contract !== null)?.subject.contract ?? "";
    const found = await deliveries.list(id, { limit: 10_000, subjects: [{ subject: numberOf(contract) }] });
    expect(found.map((each) => each.id)).toEqual(
      shown.filter(({ subject }) => subject.contract === contract).map((each) => each.id),
    );
    expect(found.length > 0).toBe(shown.length > 0);
  }
}

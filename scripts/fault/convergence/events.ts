import { join } from "node:path";
import type { ConnectedShop } from "../../../test/support/connected.ts";
import { readRows } from "../../../test/support/rows.ts";
import { contractsOf } from "./expected.ts";
import type { Unchecked } from "./mirror.ts";

interface QueuedEvent {
  topic: string;
  data: Record<string, unknown>;
}

/** Facts about the life of the shop that the checks of events need. */
export interface Lived {
  /** Contracts that existed before events were queued. */
  firstContracts: ReadonlySet<string>;
  /** Attempts that had ended before events were queued. */
  firstAttempts: ReadonlySet<string>;
  /** How often each contract was cancelled, by gid. */
  cancellations: ReadonlyMap<string, number>;
  /** Whether the shop was ever without a connection. Then events may be left out. */
  wasAway: boolean;
  /**
   * Whether the app ever lacked the approval for protected data. Then an event about a charge may lack the order's id.
   */
  lacksApproval: boolean;
}

/** Checks that each change and each attempt queued one event. @returns what is wrong */
export function wrongEvents({ test, remote }: ConnectedShop, lived: Lived, unchecked: Unchecked): string[] {
  const events = readRows(join(test.folder, "data"), "deliveries").map(
    ({ body }) => JSON.parse(String(body)) as QueuedEvent,
  );
  return contractsOf(remote).flatMap((contract) => {
    const gid = remote.gid(contract);
    if (unchecked.has(gid)) return [];
    const own = events.filter(({ data }) => data["contract_id"] === gid);
    const of = (topic: string) => own.filter((event) => event.topic === topic);
    const wrong: string[] = [];
    const expectCount = (what: string, count: number, expected: number) => {
      if (count > expected || (count < expected && !lived.wasAway && !lived.lacksApproval))
        wrong.push(`${gid}: ${what} was queued ${count} times, not ${expected}`);
    };
    expectCount("subscription.created", of("subscription.created").length, Number(!lived.firstContracts.has(gid)));
    const cancelled = of("subscription.cancelled").length;
    const most = lived.cancellations.get(gid) ?? 0;
    if (cancelled > most) wrong.push(`${gid}: subscription.cancelled was queued ${cancelled} times, not ${most}`);
    const charges = [...of("order.charged"), ...of("order.recovered")].flatMap(({ data }) =>
      data["order_id"] === null && lived.lacksApproval ? [] : [String(data["order_id"])],
    );
    const attempts = contract.attempts.filter((attempt) => !lived.firstAttempts.has(remote.gid(attempt)));
    const charged = attempts.flatMap(({ order }) => (order === null ? [] : [remote.gid(order)]));
    if (contract.originOrder !== null && !lived.firstContracts.has(gid)) charged.push(remote.gid(contract.originOrder));
    for (const order of new Set([...charges, ...charged]))
      expectCount(`a charge of ${order}`, charges.filter((each) => each === order).length, +charged.includes(order));
    const declines = attempts.filter(({ state }) => state === "failed");
    const failed = of("order.failed").map(({ data }) => `${data["cycle_number"]}/${data["attempt_count"]}`);
    expectCount("order.failed", new Set(failed).size, declines.length);
    if (new Set(failed).size < failed.length) wrong.push(`${gid}: order.failed was queued twice: ${failed.join(", ")}`);
    wrong.push(...wrongUpdates(gid, own, lived));
    return wrong;
  });
}

function wrongUpdates(gid: string, own: readonly QueuedEvent[], { wasAway }: Lived): string[] {
  if (wasAway) return [];
  const states = own
    .filter(({ topic }) => topic === "subscription.created" || topic === "subscription.updated")
    .map(({ data }) => `${data["status"]} ${data["next_billing_date"]}`);
  const repeated = states.filter((state, index) => index > 0 && state === states[index - 1]);
  return repeated.map((state) => `${gid}: subscription.updated was queued twice for ${state}`);
}

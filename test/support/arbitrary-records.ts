import fc from "fast-check";
import type { MirrorRecord } from "../../src/domain/records/platform-records.ts";
import { START } from "./app.ts";
import { type AttemptText, billingCycle, cancelFlow, customer, gid, order, reward, subscription } from "./records.ts";

/** Few ids of each kind, so that records are often about the same object. */
const n = fc.integer({ min: 1, max: 3 });
const email = fc.constantFrom("ada@example.com", "grace@example.com", null);
const asOf = fc.integer({ min: START - 5_000, max: START + 5_000 });
const day = fc.integer({ min: 1, max: 9 });

/**
 * Any record of a small shop: people, their contracts, orders, rewards, cancellation flows, billing cycles and
 * redactions.
 */
export const mirrorRecord: fc.Arbitrary<MirrorRecord> = fc.oneof(
  fc
    .tuple(n, email, asOf)
    .map(([of, address, time]) =>
      customer(of, { email: address, firstName: address === null ? null : "Ada", asOf: time }),
    ),
  fc
    .tuple(n, n, fc.constantFrom("ACTIVE", "PAUSED", "CANCELLED", "PAYMENT_FAILED"), fc.option(n))
    .map(([of, owner, status, revision]) =>
      subscription(of, {
        customer: gid.customer(owner),
        status,
        ...(revision !== null && { revision: String(revision) }),
      }),
    ),
  fc
    .tuple(n, n, fc.constantFrom("PAID", "FAILED", "PENDING", "RECOVERED", "UNCOLLECTIBLE"))
    .map(([of, cycle, status]) => order(of, cycle, { status })),
  fc.tuple(n, n, email).map(([id, of, address]) =>
    reward(address === null ? `r${id}` : `r${id} for ${address}`, {
      customer: gid.customer(of),
      contact: address,
      given_to: [address, { email: address }],
    }),
  ),
  fc.tuple(n, n).map(([id, of]) => cancelFlow(`c${id}`, { subscription: gid.contract(of) })),
  fc
    .tuple(
      n,
      n,
      fc.array(fc.tuple(fc.constantFrom("charged", "waiting", "card_declined", "out_of_stock"), day), { maxLength: 3 }),
      fc.boolean(),
    )
    .map(([of, cycle, attempts, contractEnded]) =>
      billingCycle(
        of,
        cycle,
        attempts.map(([outcome, day]): AttemptText => `${outcome}@${day}`),
        { contractEnded },
      ),
    ),
  fc.tuple(n, asOf).map(([of, time]) => ({ type: "redaction" as const, shopifyId: gid.customer(of), asOf: time })),
);

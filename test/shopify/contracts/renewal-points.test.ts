import { expect, test } from "bun:test";
import fc from "fast-check";
import { cleanUp } from "../../support/cleanup.ts";
import { connected, createContract, DOMAIN, HOUR_MS, LINE } from "../../support/connected.ts";

/** The longest time between two webhooks of one renewal, in these tests. */
const MAX_GAP_MS = 5_000;

/** A sequence of the six webhooks of a renewal, and the gap before each webhook. */
const arrival = fc.record({
  ranks: fc.array(fc.double({ noNaN: true }), { minLength: 6, maxLength: 6 }),
  gapsMs: fc.array(fc.nat(MAX_GAP_MS), { minLength: 6, maxLength: 6 }),
});

test("a renewal with its six webhooks costs at most 20 points and two readings, however they come", async () => {
  await fc.assert(
    fc.asyncProperty(arrival, async ({ ranks, gapsMs }) => {
      try {
        const all = await connected();
        const { remote, test: program, platform } = all;
        const contract = createContract(remote, { lines: [LINE], interval: "WEEK" });
        await all.deliverAll();
        program.clock.ms += 7 * 24 * HOUR_MS;
        const order = remote.succeedAttempt(remote.startAttempt(contract, 1));
        remote.updateOrder(order, {});
        remote.updateCustomer(remote.ids("customer")[0] ?? "", {});
        const webhooks = remote.outgoing.splice(0);
        expect(webhooks.map(({ topic }) => topic).toSorted()).toEqual([
          "customers/update",
          "orders/create",
          "orders/paid",
          "orders/updated",
          "subscription_billing_attempts/success",
          "subscription_contracts/update",
        ]);
        const begun = platform.requests.length;
        const spent = platform.bucket(DOMAIN).spent;
        const ranked = webhooks.map((webhook, index) => ({ webhook, rank: ranks[index] ?? 0 }));
        for (const [index, { webhook }] of ranked.toSorted((a, b) => a.rank - b.rank).entries()) {
          await all.send(webhook);
          program.clock.ms += gapsMs[index] ?? 0;
          program.app.processor.wake();
        }
        await all.processed();
        expect(all.operations(begun).filter((name) => name === "BillingCycles").length).toBeLessThanOrEqual(2);
        expect(platform.bucket(DOMAIN).spent - spent).toBeLessThanOrEqual(20);
        expect(await all.shop.all("orders")).toContainEqual(
          expect.objectContaining({ shopifyId: order, status: "PAID" }),
        );
      } finally {
        await cleanUp();
      }
    }),
    { numRuns: Number(process.env["SDS_RUNS"] ?? 15) },
  );
});

import { expect, test } from "bun:test";
import { startPlatform } from "../../../src/cli/demo/platform.ts";
import { isOfPlatform } from "../../../src/cli/demo/sample-records.ts";
import { type TestShop, testApp } from "../../support/app.ts";
import { afterTest } from "../../support/cleanup.ts";
import { platformEnv, SECRET } from "../../support/connected.ts";
import { eventually } from "../../support/eventually.ts";
import { simulateShop } from "./simulate-shop.ts";

const SHOP = "demo.myshopify.com";
const TOKEN = "the token";

/** A demo's platform, and a program that is connected to it. */
async function connectedDemo() {
  const platform = startPlatform({ domain: SHOP, token: TOKEN, clientSecret: SECRET });
  afterTest(() => platform.stop());
  const program = await testApp(platformEnv(platform));
  program.clock.ms = Date.now();
  const shop = await program.addShop(SHOP);
  await program.app.platform.connect(SHOP, { kind: "token", token: TOKEN });
  return { platform, program, shop };
}

/** A shop's rows without the fields that the platform does not know. */
async function platformRows(shop: TestShop) {
  const [customers, subscriptions, orders] = await Promise.all(
    ["customers", "subscriptions", "orders"].map((resource) => shop.all(resource)),
  );
  return {
    customers: customers?.map(({ createdAt, loyaltyTier, creditsCents, ...row }) => row).toSorted(byId),
    // The platform knows a contract's next billing from its cycles. It has no status for a declined payment.
    subscriptions: subscriptions
      ?.map(({ nextBillingDate, cancelledAt, ...row }) => ({
        ...row,
        status: row["status"] === "PAYMENT_FAILED" ? "ACTIVE" : row["status"],
      }))
      .toSorted(byId),
    // The platform has no discount of a cycle that is not charged.
    orders: orders
      ?.map(({ discountCents, totalCents, ...row }) =>
        row["shopifyId"] === null ? row : { ...row, discountCents, totalCents },
      )
      .toSorted(byId),
  };
}

function byId(a: Record<string, unknown>, b: Record<string, unknown>): number {
  return String(a["id"]).localeCompare(String(b["id"]));
}

test("a shop has the same rows from the demo's platform as from the demo's records at the intake", async () => {
  const { platform, program, shop } = await connectedDemo();
  const { past, events } = simulateShop({ customers: 20, events: 60, startedAt: Date.now() - 3_600_000 });
  const intakeShop = await (await testApp()).addShop(SHOP);

  await platform.apply(past.filter(isOfPlatform));
  await program.app.platform.synchronizer.load(shop.shop, { events: false });
  await program.app.platform.synchronizer.reconcile(shop.shop);
  expect((await intakeShop.intake(past.filter(isOfPlatform))).status).toBe(202);
  expect(await platformRows(shop)).toEqual(await platformRows(intakeShop));

  platform.webhooksTo = `${await program.app.start()}/platform/webhooks`;
  for (const { records } of events) {
    const platformRecords = records.filter(isOfPlatform);
    await platform.apply(platformRecords);
    if (platformRecords.length > 0) expect((await intakeShop.intake(platformRecords)).status).toBe(202);
  }
  await eventually(async () => {
    // The program collects webhooks about one contract for a while.
    program.clock.ms += 1_000;
    program.app.processor.wake();
    return (await program.app.store.inbox.list(shop.shop.id, { limit: 1, status: "waiting" })).length === 0;
  });
  expect(await platformRows(shop)).toEqual(await platformRows(intakeShop));
});

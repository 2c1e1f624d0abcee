import { expect, test } from "bun:test";
import { type ConnectedShop, LINE, withMirroredContract } from "../../support/connected.ts";

const DECAF = { ...LINE, title: "Decaf", price: "8.00", quantity: 3, variant: "gid://shopify/ProductVariant/21" };

/** Mirrors a contract with two lines, and a charged renewal that has a discount of 4.90 and a credit of 2.45. */
async function charged() {
  const { all, contract } = await withMirroredContract({ lines: [LINE, DECAF], originOrder: false });
  const attempt = all.remote.startAttempt(contract, 1);
  const discounts = [
    { title: "Summer", amount: "4.90" },
    { title: "Loyalty credit", amount: "2.45" },
  ];
  const order = all.remote.succeedAttempt(attempt, { discounts });
  await all.deliverAll();
  return { all, order };
}

async function moneyOf(all: ConnectedShop) {
  await all.deliverAll();
  const [order] = await all.shop.all("orders");
  const { lines, subtotalCents, discountCents, creditsCents, totalCents } = order as Record<string, unknown>;
  const quantities = (lines as { quantity: number }[]).map(({ quantity }) => quantity);
  return { quantities, money: [subtotalCents, discountCents, creditsCents, totalCents] };
}

const WHOLE = { quantities: [2, 3], money: [4900, 490, 245, 4165] };

test("an edited order counts what is left of its lines, with their part of the discounts", async () => {
  const { all, order } = await charged();
  expect(await moneyOf(all)).toEqual(WHOLE);
  all.remote.editOrder(order, [2, 1]);
  // One of the second line's three pieces is left. It keeps a third of the line's discount (2.40) and credit (1.20).
  expect(await moneyOf(all)).toEqual({ quantities: [2, 1], money: [3300, 330, 165, 2805] });
});

test("an edited order does not list a line that was removed", async () => {
  const { all, order } = await charged();
  all.remote.editOrder(order, [2, 0]);
  expect(await moneyOf(all)).toEqual({ quantities: [2], money: [2500, 250, 125, 2125] });
});

test("an edited order of which nothing is left counts what was charged", async () => {
  const { all, order } = await charged();
  all.remote.editOrder(order, [0, 0]);
  expect(await moneyOf(all)).toEqual(WHOLE);
});

test("a refund does not change what an order cost", async () => {
  const { all, order } = await charged();
  all.remote.refundOrder(order, [0, 3]);
  expect(await moneyOf(all)).toEqual(WHOLE);
});

test("an order for two contracts from which the lines of one were removed costs that one nothing", async () => {
  const { all } = await withMirroredContract({ originOrder: false });
  const customer = all.remote.createCustomer({ email: "b@example.com" });
  const [first = ""] = all.remote.createContracts([
    { customer, lines: [LINE] },
    { customer, lines: [DECAF] },
  ]);
  await all.deliverAll();
  all.remote.editOrder(all.remote.originOrder(first) ?? "", [0, 3]);
  await all.deliverAll();
  const orders = (await all.shop.all("orders")) as { lines: unknown[]; totalCents: number }[];
  expect(orders.map(({ lines, totalCents }) => [lines.length, totalCents]).toSorted()).toEqual([
    [0, 0],
    [1, 2400],
  ]);
});

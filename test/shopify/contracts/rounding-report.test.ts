import { expect, spyOn, test } from "bun:test";
import { afterTest } from "../../support/cleanup.ts";
import { connected } from "../../support/connected.ts";
import { createContract, LINE } from "../../support/connected-shop.ts";

/** Every answer of the platform has amounts with fractions of a cent: the stand-in itself has whole cents only. */
function addFractions(): void {
  const { fetch } = globalThis;
  const withFractions = async (...args: Parameters<typeof fetch>) => {
    const response = await fetch(...args);
    const text = (await response.text()).replaceAll('"amount":"12.5"', '"amount":"12.505"');
    return new Response(text, { status: response.status });
  };
  const spy = spyOn(globalThis, "fetch").mockImplementation(withFractions as typeof fetch);
  afterTest(() => spy.mockRestore());
}

test("a contract with fractions of a cent is mirrored, and the log says once that they are rounded", async () => {
  addFractions();
  const all = await connected();
  for (let n = 0; n < 2; n += 1) createContract(all.remote, { lines: [{ ...LINE, quantity: 1 }] });
  await all.deliverAll();
  expect(await all.shop.all("subscriptions")).toMatchObject([
    { lines: [{ unitPriceCents: 1250 }] },
    { lines: [{ unitPriceCents: 1250 }] },
  ]);
  expect((await all.shop.all("orders")).map(({ totalCents }) => totalCents)).toEqual([1250, 1250]);
  const warnings = all.test.logged.filter((line) => line.includes("fractions of a minor unit"));
  expect(warnings.map((line) => JSON.parse(line))).toMatchObject([
    { level: "warn", amount: "12.505", currency: "USD" },
  ]);
});

import { expect, test } from "bun:test";
import { LINE } from "../support/connected.ts";
import { PlatformProcess } from "../support/platform-process.ts";
import { DOMAIN, markPage, settingsPages } from "../support/settings-page.ts";

const open = settingsPages();

test("triggers start workflows while they are switched on, and the numbers of the mirror follow its changes", async () => {
  const platform = await new PlatformProcess().start();
  await platform.tell("addShop", { currency: "USD" });
  const connect = ["shop", "connect", DOMAIN, "--client-credentials"];
  const { page, url, troubles, goto } = await open({ env: platform.env, prepare: (program) => program.json(connect) });
  await platform.tell("webhooksTo", { url: `${url}/platform/webhooks` });
  const customer = await platform.tell("createCustomer", {
    email: "ada@example.com",
    firstName: "Ada",
    lastName: "Lovelace",
  });

  await goto("/admin/deliveries/workflows");
  await page.locator("#no-starts").waitFor();
  await page.getByRole("link", { name: "Switch a trigger on" }).click();
  expect(await page.locator("#connection").count()).toBe(0);
  await page.getByLabel("Subscription created").check();
  await page.getByRole("button", { name: "Save" }).click();
  expect(await page.textContent("#notices")).toBe("Saved. On: Subscription created.");
  await goto("/admin/deliveries/workflows");
  const isSamePage = await markPage(page);
  await platform.tell("createContract", { customer, lines: [LINE] });
  await page.locator("#last tbody tr", { hasText: "Delivered" }).waitFor();
  expect(await page.textContent("#last tbody th")).toBe("subscription-created");
  expect(await isSamePage()).toBe(true);
  expect((await platform.workflows()).map(({ handle }) => handle)).toEqual(["subscription-created"]);

  await goto("/admin/triggers");
  await page.getByLabel("Subscription created").uncheck();
  await page.getByRole("button", { name: "Save" }).click();
  expect(await page.textContent("#notices")).toBe("Saved. All triggers are off.");
  expect(await page.getByLabel("Subscription created").isChecked()).toBe(false);

  await page.getByRole("link", { name: "Plan", exact: true }).click();
  expect(await page.textContent("#plan")).toBe("Pro");
  expect(await page.locator("#plan-facts dd").allTextContents()).toEqual(["included", "included", "included"]);
  await page.getByRole("link", { name: "Data", exact: true }).click();
  const subscriptions = page.locator("#counts dt:text-is('Subscriptions') + dd");
  expect(await subscriptions.textContent()).toBe("1Browse");
  expect(await page.locator("#mirror-facts dt:text-is('Shopify') + dd").textContent()).toBe("connected");
  expect(await page.locator("#mirror-facts dt:text-is('Last change from Shopify') + dd time").count()).toBe(1);
  const isSamePlan = await markPage(page);
  await platform.tell("createContract", { customer, lines: [LINE] });
  await page.locator("#counts dt:text-is('Subscriptions') + dd", { hasText: /^2/ }).waitFor();
  expect(await isSamePlan()).toBe(true);
  expect((await platform.workflows()).length).toBe(1);
  expect(troubles).toEqual([]);
});

test("a shop without access sees why, and its forms that need access are disabled", async () => {
  const { page, troubles, goto } = await open({ shop: ["--plan", "free"] });
  for (const [path, button] of [
    ["/admin/keys", "#create"],
    ["/admin/webhooks", "#save-endpoint"],
    ["/admin/webhooks", "#send-test"],
    ["/admin/webhooks/topics", "#choose-all"],
    ["/admin/triggers", "#save-triggers"],
  ] as const) {
    await goto(path);
    expect(await page.textContent("#plan-notice")).toContain("This shop's plan has no API access");
    expect(await page.locator(button).isDisabled()).toBe(true);
  }
  await page.getByRole("link", { name: "See the plan" }).click();
  expect(await page.textContent("#plan")).toBe("Free");
  expect(await page.locator("#plan-facts dd").allTextContents()).toEqual([
    "not included",
    "not included",
    "not included",
  ]);
  await goto("/admin/data");
  await page.locator("#empty-mirror").waitFor();
  expect(troubles).toEqual([]);
});

import { expect, test } from "bun:test";
import { eventually } from "../support/eventually.ts";
import { enter, settingsPages, tabTo } from "../support/settings-page.ts";

const open = settingsPages();

test("without scripts everything works except copying and updates of the page", async () => {
  const { page, url, program, receiver, goto } = await open({
    env: { SDS_RETRY_WAITS: "20ms" },
    browser: { javaScriptEnabled: false },
  });
  await page.fill("#label", "Warehouse");
  await page.click("#create");
  const key = (await page.textContent("#new-secret")) ?? "";
  const read = async () =>
    (await fetch(`${url}/api/v1/orders`, { headers: { Authorization: `Bearer ${key}` } })).status;
  expect(await read()).toBe(200);
  // A button that needs a script is hidden.
  expect(await page.locator("button[data-copy]:visible").count()).toBe(0);
  expect(await page.textContent("#keys time")).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d UTC$/);
  await page.getByRole("link", { name: "Revoke Warehouse" }).click();
  await page.click("#confirm");
  expect(await read()).toBe(401);

  await goto("/admin/webhooks");
  await page.fill("#url", "http://10.0.0.1/");
  await page.click("#save-endpoint");
  await page.locator("#url-error").waitFor();
  await page.fill("#url", receiver.url);
  await page.click("#save-endpoint");
  expect(await page.textContent("#notices")).toBe("Saved. Now choose what your endpoint gets.");
  expect(await page.locator("#choose-all").isVisible()).toBe(false);
  await page.getByLabel("order.failed", { exact: true }).check();
  await page.click("#save-topics");
  expect(await page.textContent("#notices")).toBe("Saved.");
  await goto("/admin/webhooks/secret");
  await page.getByRole("button", { name: "Show the signing secret" }).click();
  const { secret } = await program.json<{ secret: string }>(["webhook", "secret"]);
  expect(await page.textContent("#secret")).toBe(secret);
  await page.click("#rotate");
  await page.click("#confirm");
  expect(await page.textContent("#new-secret")).not.toBe(secret);

  const release = receiver.hold(500);
  await goto("/admin/webhooks");
  await page.click("#send-test");
  expect(await page.textContent("#test-result strong")).toBe("The test event is on its way.");
  expect(await page.locator("noscript").textContent()).toContain("Reload the page to see what changed.");
  await page.click("#test-delivery");
  await receiver.gets(1);
  await page.reload();
  expect(await page.textContent("#on-its-way")).toBe("The test event is on its way. The result will appear here.");
  release();
  await receiver.gets(2);
  await eventually(async () => {
    await page.reload();
    return (await page.textContent("#status"))?.startsWith("✕ Dead");
  });
  expect(await page.locator("#on-its-way").count()).toBe(0);
  receiver.answer = () => new Response();
  await goto("/admin/deliveries");
  expect(await page.locator("noscript").textContent()).toContain("Reload the page to see what changed.");
  await page.click("#retry-dead");
  await page.click("#confirm");
  await page.locator("#notices", { hasText: "1 delivery is sent again now." }).waitFor();
  await receiver.gets(3);
  await eventually(async () => {
    await page.reload();
    return (await page.locator("#last .delivered").count()) === 1;
  });

  await goto("/admin/triggers");
  await page.getByLabel("Streak milestone reached").check();
  await page.click("#save-triggers");
  expect(await page.textContent("#notices")).toContain("Streak milestone reached");
  await page.click("#sign-out");
  expect(await page.textContent("h1")).toBe("You are signed out");
});

test("with the keyboard alone a key, an endpoint and a test event are made, and the focus is always visible", async () => {
  const { page, receiver, troubles } = await open();
  await page.keyboard.press("Tab");
  expect(await page.evaluate<string>("document.activeElement.textContent.trim()")).toBe("Skip to the content");
  await page.keyboard.press("Enter");
  await eventually(async () => (await page.evaluate<string>("document.activeElement.id")) === "main");
  await tabTo(page, "#label");
  await page.keyboard.type("Warehouse");
  await enter(page);
  await page.locator("#new-secret").waitFor();
  await tabTo(page, 'a[href="/admin/webhooks"]');
  await enter(page);
  await tabTo(page, "#url");
  await page.keyboard.type(receiver.url);
  await tabTo(page, "#save-endpoint");
  await enter(page);
  await tabTo(page, "#choose-all");
  await page.keyboard.press("Space");
  await tabTo(page, "#save-topics");
  await enter(page);
  await page.locator("#notices", { hasText: "Saved." }).waitFor();
  await tabTo(page, '.tabs a[href="/admin/webhooks"]');
  await enter(page);
  await tabTo(page, "#send-test");
  await enter(page);
  await page.locator("#test-result", { hasText: "200 in" }).waitFor();
  await tabTo(page, 'a[href="/admin/keys"]');
  await enter(page);
  await tabTo(page, "#keys td a");
  await enter(page);
  await tabTo(page, "#confirm");
  await enter(page);
  await page.locator("#no-keys").waitFor();
  await tabTo(page, "#sign-out");
  await enter(page);
  await page.getByRole("heading", { name: "You are signed out" }).waitFor();
  expect(troubles).toEqual([]);
});

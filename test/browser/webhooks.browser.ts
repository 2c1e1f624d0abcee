import { expect, test } from "bun:test";
import { TOPIC_NAMES } from "../../src/domain/events/event.ts";
import { markPage, settingsPages } from "../support/settings-page.ts";

const open = settingsPages();

test("a wrong URL is refused at its field and stays there; a right one is saved with its topics, and removed", async () => {
  const { page, program, receiver, troubles, goto } = await open();
  await goto("/admin/webhooks");
  await page.locator("#no-endpoint").waitFor();
  expect(await page.locator("#send-test").isDisabled()).toBe(true);

  const url = page.getByLabel("URL");
  await url.fill("https://10.0.0.1/hooks");
  await page.getByLabel("order.failed").check();
  await page.click("#save-endpoint");
  expect(await page.textContent("#url-error")).toContain("10.0.0.1 is a private address");
  expect(await url.inputValue()).toBe("https://10.0.0.1/hooks");
  expect(await url.getAttribute("aria-invalid")).toBe("true");
  expect(await url.getAttribute("aria-describedby")).toBe("url-error url-help");
  expect(await page.getByLabel("order.failed").isChecked()).toBe(true);
  expect(await program.json(["webhook", "show"])).toEqual({ url: null, topics: [] });

  await url.fill(receiver.url);
  const choose = page.locator("#choose-all");
  expect(await choose.textContent()).toBe("Choose all");
  await choose.click();
  expect(await page.locator('input[name="topics"]:checked').count()).toBe(TOPIC_NAMES.length);
  expect(await choose.textContent()).toBe("Choose none");
  await page.getByLabel("order.failed").uncheck();
  expect(await choose.textContent()).toBe("Choose all");
  await page.click("#save-endpoint");
  expect(await page.textContent("#notices")).toBe("Saved.");
  expect(await program.json(["webhook", "show"])).toEqual({
    url: receiver.url,
    topics: TOPIC_NAMES.filter((name) => name !== "order.failed"),
  });
  await page.reload();
  expect(await page.textContent("#notices")).toBe("");
  expect(await url.inputValue()).toBe(receiver.url);

  await page.click("#clear");
  expect(await page.textContent("main form")).toContain(`Remove the endpoint ${receiver.url}?`);
  await page.click("#confirm");
  await page.locator("#no-endpoint").waitFor();
  expect(await program.json(["webhook", "show"])).toMatchObject({ url: null });
  expect(troubles).toEqual([]);
});

test("the signing secret is hidden until it is asked for, can be copied, and is rotated after a question", async () => {
  const { page, program, receiver, troubles, goto } = await open();
  await program.json(["webhook", "set", "--url", receiver.url, "--all-topics"]);
  const { secret } = await program.json<{ secret: string }>(["webhook", "secret"]);
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await goto("/admin/webhooks");
  expect(await page.content()).not.toContain("whsec_");
  await page.getByRole("button", { name: "Show the signing secret" }).click();
  expect(await page.textContent("#secret")).toBe(secret);
  await page.getByRole("button", { name: "Copy the signing secret" }).click();
  await page.locator("#said", { hasText: "Copied" }).waitFor({ state: "attached" });
  expect(await page.evaluate<string>("navigator.clipboard.readText()")).toBe(secret);
  expect(page.url()).not.toContain("whsec");

  await page.getByRole("link", { name: "Rotate the signing secret" }).click();
  await page.getByRole("button", { name: "Make a new secret" }).click();
  const rotated = (await page.textContent("#new-secret")) ?? "";
  expect(rotated).toStartWith("whsec_");
  expect(rotated).not.toBe(secret);
  await page.reload();
  expect(await page.content()).not.toContain("whsec_");

  await page.click("#send-test");
  await receiver.gets(1);
  expect(await receiver.allGenuine(rotated)).toBe(true);
  expect(troubles).toEqual([]);
});

test("a test event is sent, and its result replaces the notice without a reload", async () => {
  const { page, program, receiver, troubles, goto } = await open();
  const release = receiver.hold();
  await program.json(["webhook", "set", "--url", receiver.url]);
  await goto("/admin/webhooks");
  await page.selectOption("#topic", "order.failed");
  await page.click("#send-test");
  expect(await page.textContent("h1")).toBe("Delivery: order.failed");
  const notice = page.locator("#on-its-way");
  expect(await notice.textContent()).toBe("The test event is on its way. The result will appear here.");
  expect(await page.textContent("#status")).toBe("○ Pending · test event");
  const [sent] = await receiver.gets(1);
  expect(sent?.topic).toBe("order.failed");
  const isSamePage = await markPage(page);
  release();
  await page.locator("#status", { hasText: "Delivered" }).waitFor();
  expect(await notice.count()).toBe(0);
  expect(await page.textContent("#notices")).toBe("");
  expect(await page.textContent("#verdict")).toMatch(/^Delivered in \d+ ms at the first attempt\.$/);
  expect(await page.textContent("#attempts summary")).toMatch(/^1 ● 200 · \d+ ms · /);
  expect(await page.textContent("#said")).toBe("Delivered, attempts: 1");
  expect(await isSamePage()).toBe(true);
  expect(troubles).toEqual([]);
});

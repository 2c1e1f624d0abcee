import { expect, test } from "bun:test";
import { TOPIC_NAMES } from "../../src/domain/events/event.ts";
import { markPage, settingsPages } from "../support/settings-page.ts";

const open = settingsPages();
const SECRET = /whsec_[\w+/]/;

test("a wrong URL is refused at its field and stays there; a right one is saved with its topics, and removed", async () => {
  const { page, program, receiver, troubles, goto } = await open();
  await goto("/admin/webhooks");
  await page.locator("#no-endpoint").waitFor();
  expect(await page.locator("#send-test").isDisabled()).toBe(true);

  const url = page.getByLabel("URL");
  await url.fill("https://10.0.0.1/hooks");
  await page.click("#save-endpoint");
  expect(await page.textContent("#url-error")).toContain("10.0.0.1 is a private address");
  expect(await url.inputValue()).toBe("https://10.0.0.1/hooks");
  expect(await url.getAttribute("aria-invalid")).toBe("true");
  expect(await url.getAttribute("aria-describedby")).toBe("url-error url-help");
  expect(await program.json(["webhook", "show"])).toEqual({ url: null, topics: [] });

  await url.fill(receiver.url);
  await page.click("#save-endpoint");
  expect(await page.textContent("#notices")).toBe("Saved. Now choose what your endpoint gets.");
  const choose = page.locator("#choose-all");
  expect(await choose.textContent()).toBe("Choose all");
  await choose.click();
  expect(await page.locator('input[name="topics"]:checked').count()).toBe(TOPIC_NAMES.length);
  expect(await choose.textContent()).toBe("Choose none");
  await page.getByLabel("order.failed", { exact: true }).uncheck();
  expect(await choose.textContent()).toBe("Choose all");
  await page.click("#save-topics");
  expect(await page.textContent("#notices")).toBe("Saved.");
  expect(await program.json(["webhook", "show"])).toEqual({
    url: receiver.url,
    topics: TOPIC_NAMES.filter((name) => name !== "order.failed"),
  });
  await page.reload();
  expect(await page.textContent("#notices")).toBe("");
  await page.getByRole("link", { name: "Endpoint" }).click();
  expect(await page.textContent("#chosen")).toStartWith("It gets 7 of 8 topics.");
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
  await goto("/admin/webhooks/secret");
  expect(await page.content()).not.toMatch(SECRET);
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
  expect(await page.content()).not.toMatch(SECRET);

  await goto("/admin/webhooks");
  await page.click("#send-test");
  await receiver.gets(1);
  expect(await receiver.allGenuine(rotated)).toBe(true);
  expect(troubles).toEqual([]);
});

test("the code of one language is shown at a time, and can be copied", async () => {
  const { page, troubles, goto } = await open();
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await goto("/admin/webhooks/secret");
  await page.locator("#verify-js").waitFor();
  await page.locator("summary", { hasText: "Ruby" }).click();
  await page.locator("#verify-ruby").waitFor();
  expect(await page.locator("#verify-js").isVisible()).toBe(false);
  await page.getByRole("button", { name: "Copy the code in Ruby" }).click();
  await page.locator("#said", { hasText: "Copied" }).waitFor({ state: "attached" });
  const copied = await page.evaluate<string>("navigator.clipboard.readText()");
  expect(copied).toStartWith('# Ruby\nrequire "openssl"');
  expect(copied).toEndWith("\nend");
  expect(troubles).toEqual([]);
});

test("the topic's sample and schema open beside its choice", async () => {
  const { page, troubles, goto } = await open();
  await goto("/admin/webhooks/topics");
  expect(await page.locator(".catalogue li").count()).toBe(TOPIC_NAMES.length);
  await page.locator("summary", { hasText: "of order.failed" }).click();
  await page.locator('[id="sample-order.failed"]', { hasText: '"topic": "order.failed"' }).waitFor();
  await page.locator('[id="schema-order.failed"]', { hasText: "retries_exhausted" }).waitFor();
  expect(troubles).toEqual([]);
});

test("a test event is sent, and its result appears beside the form without a reload, and stays", async () => {
  const { page, program, receiver, troubles, goto } = await open();
  const release = receiver.hold();
  await program.json(["webhook", "set", "--url", receiver.url]);
  await goto("/admin/webhooks");
  expect(await page.textContent("#no-test")).toBe("The answer of your endpoint appears here.");
  await page.selectOption("#topic", "order.failed");
  await page.click("#send-test");
  const result = page.locator("#test-result");
  expect(await result.locator("strong").textContent()).toBe("The test event is on its way.");
  const [sent] = await receiver.gets(1);
  expect(sent?.topic).toBe("order.failed");
  const isSamePage = await markPage(page);
  release();
  await result.locator("strong", { hasText: /^200 in \d+ ms,$/ }).waitFor();
  expect(await result.textContent()).toContain("signed with the current secret.");
  expect(await page.textContent("#said")).toMatch(/^200 in \d+ ms,$/);
  expect(await isSamePage()).toBe(true);

  receiver.answer = () => new Response("no such page", { status: 404 });
  await page.click("#send-test");
  await result.locator("strong", { hasText: "Your endpoint answered 404." }).waitFor();
  expect(await result.textContent()).toContain("Correct the path of the address.");
  expect(await page.inputValue("#topic")).toBe("order.failed");
  await goto("/admin/overview");
  await goto("/admin/webhooks");
  await result.locator("strong", { hasText: "Your endpoint answered 404." }).waitFor();
  await page.click("#test-delivery");
  expect(await page.textContent("h1")).toBe("Delivery: order.failed");
  expect(troubles).toEqual([]);
});

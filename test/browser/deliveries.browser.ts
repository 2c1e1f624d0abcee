import { expect, test } from "bun:test";
import { eventually } from "../support/eventually.ts";
import type { Program } from "../support/program.ts";
import { markPage, type Settings, settingsPages } from "../support/settings-page.ts";

const open = settingsPages();
const QUICKLY = { SDS_RETRY_WAITS: "20ms" };

/** Sends test events to an endpoint that fails, and waits until they are dead. */
async function die({ program, receiver }: Settings, topics: string[]): Promise<string[]> {
  receiver.answer = () => new Response("no", { status: 503 });
  await program.json(["webhook", "set", "--url", receiver.url]);
  const ids: string[] = [];
  for (const topic of topics) ids.push((await program.json<{ id: string }>(["webhook", "test", "--topic", topic])).id);
  await eventually(async () => (await dead(program)).length === topics.length);
  return ids;
}

function dead(program: Program): Promise<object[]> {
  return program.json<object[]>(["delivery", "list", "--status", "dead"]);
}

test("dead deliveries have a list of their own, and are sent again one by one or all at once", async () => {
  const settings = await open({ env: QUICKLY });
  const { page, receiver, program, troubles, goto } = settings;
  await goto("/admin/deliveries");
  await page.locator("#no-deliveries").waitFor();
  await page.locator("#no-dead").waitFor();
  const isSamePage = await markPage(page);
  const [first = ""] = await die(settings, ["order.failed", "order.charged", "order.recovered"]);
  await page.locator("#dead-count", { hasText: "(3)" }).waitFor();
  expect(await isSamePage()).toBe(true);
  const row = page.locator(`#dead-${first}`);
  expect(await row.locator("td").allTextContents()).toEqual([
    "Dead",
    "2",
    "503",
    "The endpoint responded with HTTP 503.",
    expect.any(String),
    "Retry",
  ]);

  receiver.answer = () => new Response();
  await row.getByRole("button", { name: "Retry order.failed" }).click();
  expect(await page.textContent("#notices")).toContain(`order.failed (${first}) is sent again now.`);
  await page.locator(`#last-${first}`, { hasText: "Delivered" }).waitFor();
  await page.locator("#dead-count", { hasText: "(2)" }).waitFor();
  expect(await page.locator(`#dead-${first}`).count()).toBe(0);

  await page.getByRole("link", { name: "Retry all Dead" }).click();
  expect(await page.textContent("#count")).toBe("2 deliveries");
  await page.getByRole("link", { name: "Cancel" }).click();
  expect(await dead(program)).toHaveLength(2);
  await page.getByRole("link", { name: "Retry all Dead" }).click();
  await page.getByRole("button", { name: "Retry 2 deliveries" }).click();
  expect(await page.textContent("#notices")).toContain("2 deliveries are sent again now.");
  await page.locator("#no-dead").waitFor();
  await eventually(async () => (await page.locator("#last .delivered").count()) === 3);
  expect(troubles).toEqual([]);
});

test("the page of a delivery shows its body, its headers and every attempt", async () => {
  const settings = await open({ env: { SDS_RETRY_WAITS: "20ms,20ms" } });
  const { page, receiver, troubles, goto } = settings;
  const [id = ""] = await die(settings, ["order.failed"]);
  await goto("/admin/deliveries");
  await page.click(`#open-last-${id}`);
  const [sent] = receiver.received;
  expect(JSON.parse((await page.textContent("#body")) ?? "")).toEqual(sent?.json);
  const headers = await page.locator("#headers dd").allTextContents();
  expect(headers).toContain(sent?.signature ?? "");
  expect(headers).toContain("order.failed");
  expect(await page.locator("#attempts tbody tr").count()).toBe(3);
  expect(await page.textContent("#attempts tbody tr:first-child .error")).toBe("The endpoint responded with HTTP 503.");

  receiver.answer = () => new Response();
  await page.getByRole("button", { name: "Retry order.failed" }).click();
  expect(await page.textContent("h1")).toBe("Delivery: order.failed");
  await page.locator("#status", { hasText: "Delivered" }).waitFor();
  expect(await page.locator("#attempts tbody tr").count()).toBe(4);
  expect(new Set(receiver.received.map(({ body, signature }) => body + signature)).size).toBe(1);
  await page.getByRole("link", { name: "Back to the log" }).click();
  expect(await page.textContent("h1")).toBe("Deliveries");
  expect(troubles).toEqual([]);
});

test("an update keeps the focus, the scroll position and selected text", async () => {
  const settings = await open({ env: QUICKLY, browser: { viewport: { width: 390, height: 500 } } });
  const { page, receiver, program, troubles, goto } = settings;
  const [first = ""] = await die(settings, ["order.failed", "order.charged"]);
  await goto("/admin/deliveries");
  const scrolled =
    "({ top: window.scrollY, left: document.querySelector('#dead').parentElement.scrollLeft, focus: document.activeElement.id })";
  await page.focus(`#open-dead-${first}`);
  await page.evaluate("document.querySelector('#dead').parentElement.scrollLeft = 120");
  await page.evaluate("window.scrollTo(0, 700)");
  const before = await page.evaluate<{ top: number; left: number; focus: string }>(scrolled);
  expect(before).toEqual({ top: expect.any(Number), left: expect.any(Number), focus: `open-dead-${first}` });
  expect(before.top).toBeGreaterThan(100);
  expect(before.left).toBeGreaterThan(0);
  await page.evaluate("window.before = document.querySelector('#live h2')");
  receiver.answer = () => new Response();
  const { id: added } = await program.json<{ id: string }>(["webhook", "test", "--topic", "order.recovered"]);
  await page.locator(`#last-${added}`, { hasText: "Delivered" }).waitFor();
  expect(await page.evaluate<boolean>("window.before.isConnected")).toBe(false);
  expect(await page.evaluate<unknown>(scrolled)).toEqual(before);

  // Selected text stays selected, because the page updates only after the selection has ended.
  await page.evaluate("getSelection().selectAllChildren(document.querySelector('#dead .error'))");
  const { id: later } = await program.json<{ id: string }>(["webhook", "test", "--topic", "order.charged"]);
  const asked = () => page.waitForResponse((response) => response.request().headers()["x-part"] === "live");
  await asked();
  await asked();
  expect(await page.evaluate<string>("getSelection().toString()")).toBe("The endpoint responded with HTTP 503.");
  expect(await page.locator(`#last-${later}`).count()).toBe(0);
  await page.evaluate("getSelection().empty()");
  await page.locator(`#last-${later}`).waitFor();
  expect(troubles).toEqual([]);
});

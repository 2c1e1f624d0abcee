import { expect, test } from "bun:test";
import { verify } from "../../src/client/verify.ts";
import { eventually } from "../support/eventually.ts";
import type { Program } from "../support/program.ts";
import { subscription } from "../support/records.ts";
import { enter, markPage, type Settings, settingsPages, tabTo } from "../support/settings-page.ts";

const open = settingsPages();
const QUICKLY = { SDS_RETRY_WAITS: "20ms" };

/** Sends test events to an endpoint that fails, and waits until their deliveries are dead. */
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

test("dead deliveries are found, and sent again one by one or all at once", async () => {
  const settings = await open({ env: QUICKLY });
  const { page, receiver, program, troubles, goto } = settings;
  await goto("/admin/deliveries");
  await page.locator("#no-deliveries").waitFor();
  expect(await page.locator("#retry-dead").count()).toBe(0);
  const isSamePage = await markPage(page);
  const [first = ""] = await die(settings, ["order.failed", "order.charged", "order.recovered"]);
  // In an empty log, new deliveries appear immediately, because no row of the page has to move.
  await page.locator("#last .dead").first().waitFor();
  expect(await isSamePage()).toBe(true);

  await goto("/admin/deliveries?status=dead");
  const row = page.locator(`#last-${first}`);
  expect(await row.locator("th, td").allTextContents()).toEqual([
    "✕ Dead",
    "order.failed",
    "Test event",
    "503 2 attemptsResend",
    expect.stringMatching(/^\d+ s ago$/),
  ]);
  receiver.answer = () => new Response();
  await row.getByRole("button", { name: "Resend order.failed" }).click();
  expect(await page.textContent("#notices")).toContain(`order.failed (${first}) is sent again now.`);
  expect(new URL(page.url()).search).toBe("?status=dead");
  expect(await page.locator("#last tbody tr").count()).toBe(2);

  await page.getByRole("link", { name: "Resend 2 dead…" }).click();
  expect(await page.textContent("#count")).toBe("2 deliveries");
  await page.getByRole("link", { name: "Cancel" }).click();
  expect(await dead(program)).toHaveLength(2);
  await page.getByRole("link", { name: "Resend 2 dead…" }).click();
  await page.getByRole("button", { name: "Resend 2 deliveries" }).click();
  expect(await page.textContent("#notices")).toContain("2 deliveries are sent again now.");
  await eventually(async () => (await page.locator("#last .delivered").count()) === 3);
  expect(troubles).toEqual([]);
});

test("the search stays in the address, also on older pages, and the keyboard does all of it", async () => {
  const { page, program, receiver, troubles, goto } = await open();
  await program.json(["webhook", "set", "--url", receiver.url, "--topics", "subscription.created"]);
  const records = Array.from({ length: 23 }, (_, index) => subscription(index + 1));
  await program.json(["import", "-", "--events"], {
    stdin: records.map((record) => JSON.stringify(record)).join("\n"),
  });
  await receiver.gets(23);
  await goto("/admin/deliveries");
  await tabTo(page, "#topic");
  await page.keyboard.type("subscription.created");
  await tabTo(page, "#search");
  await enter(page);
  expect(new URL(page.url()).searchParams.get("topic")).toBe("subscription.created");
  expect(await page.locator("#last tbody tr").count()).toBe(20);
  await tabTo(page, "#older");
  await enter(page);
  expect(await page.locator("#last tbody tr").count()).toBe(3);
  expect(await page.inputValue("#topic")).toBe("subscription.created");
  await tabTo(page, "#newer");
  await enter(page);
  expect(await page.locator("#last tbody tr").count()).toBe(20);

  await page.fill("#subject", "7");
  await page.press("#subject", "Enter");
  await page.locator("#clear").waitFor();
  expect(await page.locator("#last tbody tr td:nth-of-type(2)").allTextContents()).toEqual(["Subscription 7"]);
  await page.fill("#subject", "Jane");
  await page.press("#subject", "Enter");
  await page.locator("#subject-error").waitFor();
  expect(await page.inputValue("#subject")).toBe("Jane");
  expect(await page.getAttribute("#subject", "aria-describedby")).toBe("subject-error");
  await page.click("#clear");
  expect(await page.inputValue("#subject")).toBe("");
  expect(await page.locator("#last tbody tr").count()).toBe(20);
  expect(troubles).toEqual([]);
});

test("newer deliveries are counted, and nothing moves until the pill is clicked", async () => {
  const { page, program, receiver, troubles, goto } = await open();
  const release = receiver.hold();
  await program.json(["webhook", "set", "--url", receiver.url]);
  const send = async (topic: string) => (await program.json<{ id: string }>(["webhook", "test", "--topic", topic])).id;
  const first = await send("order.failed");
  await goto("/admin/deliveries?topic=order.failed");
  const row = page.locator(`#last-${first}`);
  await row.locator(".pending").waitFor();
  const top = (await row.boundingBox())?.y;
  const isSamePage = await markPage(page);
  for (const topic of ["order.failed", "order.charged", "order.failed"]) await send(topic);
  const pill = page.locator("#news", { hasText: "2 new" });
  await pill.waitFor();
  expect(await page.textContent("#said")).toBe("2 new");
  release();
  await row.locator(".delivered").waitFor();
  expect(await page.locator("#last tbody tr").count()).toBe(1);
  expect((await row.boundingBox())?.y).toBe(top);
  expect(await isSamePage()).toBe(true);
  await pill.click();
  expect(new URL(page.url()).search).toBe("?topic=order.failed");
  expect(await page.locator("#last tbody tr").count()).toBe(3);
  expect(await pill.count()).toBe(0);
  expect(troubles).toEqual([]);
});

test("on a phone each delivery is a card: status and age, topic, subject, result", async () => {
  const settings = await open({ env: QUICKLY, browser: { viewport: { width: 390, height: 800 } } });
  const { page, program, receiver, troubles, goto } = settings;
  const [id = ""] = await die(settings, ["order.failed"]);
  await goto("/admin/deliveries");
  const boxes = await Promise.all(
    ["td:nth-of-type(1)", "th", "td:nth-of-type(2)", "td:nth-of-type(3)", ".corner"].map(async (cell) => {
      const box = await page.locator(`#last-${id} ${cell}`).boundingBox();
      if (box === null) throw new Error(`${cell} is not shown`);
      return box;
    }),
  );
  const [status, topic, subject, result, age] = boxes;
  if (!(status && topic && subject && result && age)) throw new Error("a cell is missing");
  expect(age.y).toBe(status.y);
  expect(age.x).toBeGreaterThan(status.x + status.width - 1);
  expect([status, topic, subject, result].map(({ x }) => x)).toEqual(Array(4).fill(status.x));
  const tops = [status, topic, subject, result].map(({ y }) => y);
  expect(tops).toEqual(tops.toSorted((a, b) => a - b));
  expect(new Set(tops).size).toBe(4);
  const isTooWide = () => page.evaluate<boolean>("document.documentElement.scrollWidth > innerWidth");
  expect(await isTooWide()).toBe(false);
  expect(await page.getByRole("row", { name: "order.failed" }).getByRole("cell").count()).toBe(4);

  // A long word in an address, an error or an answer must wrap.
  const word = "x".repeat(300);
  receiver.answer = () => new Response(word, { status: 503 });
  await program.json(["webhook", "set", "--url", `${receiver.url}/${word}`]);
  await page.click(`#retry-last-${id}`);
  await page.locator(`#last-${id} .dead`).waitFor();
  await page.click(`#open-last-${id}`);
  expect(await page.textContent("#attempts li:first-child")).toContain(`/${word}`);
  expect(await page.textContent("#attempts li:first-child pre")).toBe(word);
  expect(await isTooWide()).toBe(false);
  await program.json(["webhook", "set", "--url", `https://${"y".repeat(60)}.${"z".repeat(60)}.invalid/`]);
  await page.getByRole("button", { name: "Resend" }).click();
  await page.locator("#verdict", { hasText: "yyyy" }).waitFor();
  expect(await isTooWide()).toBe(false);
  await goto("/admin/deliveries");
  await page.locator(`#last-${id}`, { hasText: "yyyy" }).waitFor();
  expect(await isTooWide()).toBe(false);
  expect(troubles).toEqual([]);
});

test("the page of a delivery shows its verdict, its payload, its headers and every attempt", async () => {
  const settings = await open({ env: { SDS_RETRY_WAITS: "20ms,20ms" } });
  const { page, receiver, troubles, goto } = settings;
  const [id = ""] = await die(settings, ["order.failed"]);
  await goto("/admin/deliveries");
  await page.click(`#open-last-${id}`);
  expect(await page.textContent("#verdict")).toMatch(
    /^Not delivered\. Your endpoint answered 503 three times\. We stopped on .+\. Then resend\.$/,
  );
  const [sent] = receiver.received;
  expect(JSON.parse((await page.textContent("#body")) ?? "")).toEqual(sent?.json);
  const headers = await page.locator("#headers dd").allTextContents();
  expect(headers).toContain(sent?.signature ?? "");
  expect(headers).toContain("order.failed");
  expect(await page.locator("#attempts li").count()).toBe(3);
  const newest = page.locator("#attempts li").first();
  expect(await newest.locator("summary").textContent()).toMatch(/^3 ✕ 503 · \d+ ms · /);
  expect(await newest.locator("p").allTextContents()).toEqual([`POST ${receiver.url}`]);
  expect(await newest.locator("pre").textContent()).toBe("no");
  expect(await page.locator("#attempt-1 pre").isVisible()).toBe(false);

  receiver.answer = () => new Response();
  await page.getByRole("button", { name: "Resend order.failed" }).click();
  expect(await page.textContent("h1")).toBe("Delivery: order.failed");
  await page.locator("#status", { hasText: "Delivered" }).waitFor();
  expect(await page.textContent("#verdict")).toMatch(/^Delivered in \d+ ms at attempt 4\.$/);
  expect(await page.locator("#attempts li").count()).toBe(4);
  expect(new Set(receiver.received.map(({ body, signature }) => body + signature)).size).toBe(1);
  await page.locator(".trail a").click();
  expect(await page.textContent("h1")).toBe("Deliveries");
  expect(troubles).toEqual([]);
});

test("a webhook is copied as a curl command, which sends it as it was", async () => {
  const settings = await open({ env: QUICKLY, browser: { permissions: ["clipboard-read", "clipboard-write"] } });
  const { page, program, receiver, troubles, goto } = settings;
  const [id = ""] = await die(settings, ["order.failed"]);
  receiver.answer = () => new Response();
  await goto(`/admin/deliveries/${id}`);
  const copied = () => page.evaluate<string>("navigator.clipboard.readText()");
  await page.getByRole("button", { name: "Copy the payload" }).click();
  await page.locator("#said", { hasText: "Copied" }).waitFor({ state: "attached" });
  expect(JSON.parse(await copied())).toEqual(receiver.received[0]?.json);
  await page.getByRole("link", { name: "Copy as curl…" }).click();
  await page.getByRole("button", { name: "Copy the command" }).click();
  await page.locator("#said", { hasText: "Copied" }).waitFor({ state: "attached" });
  const sent = receiver.received.length;
  const bash = Bun.spawn(["bash", "-c", await copied()], { stdout: "ignore", stderr: "ignore" });
  expect(await bash.exited).toBe(0);
  expect(receiver.received.length).toBe(sent + 1);
  expect(new Set(receiver.received.map(({ body, signature }) => body + signature)).size).toBe(1);
  const { secret } = await program.json<{ secret: string }>(["webhook", "secret"]);
  const { body = "", headers = {} } = receiver.received.at(-1) ?? {};
  expect(await verify(secret, body, headers)).toMatchObject({ isTest: true });
  expect(troubles).toEqual([]);
});

test("an update that gets no answer does not stop later updates", async () => {
  const settings = await open({ env: QUICKLY });
  const { page, receiver, program, troubles, goto } = settings;
  await die(settings, ["order.failed"]);
  await page.clock.install();
  await goto("/admin/deliveries");
  let hung = 0;
  await page.route("**/admin/deliveries*", async (route) => {
    if (hung > 0 || route.request().headers()["x-part"] !== "live") return route.continue();
    hung += 1;
  });
  await page.clock.runFor(2_000);
  await eventually(() => hung === 1);
  receiver.answer = () => new Response();
  await program.json(["webhook", "test", "--topic", "order.recovered"]);
  await page.clock.runFor(20_000);
  await page.locator("#news").waitFor();
  expect(troubles).toEqual([]);
});

test("an update keeps the focus, the scroll position, selected text and what is open", async () => {
  const settings = await open({ env: QUICKLY, browser: { viewport: { width: 390, height: 500 } } });
  const { page, receiver, program, troubles, goto } = settings;
  const ids = await die(settings, ["order.failed", "order.charged", "order.failed", "order.charged", "order.failed"]);
  await goto("/admin/deliveries");
  const scrolled = "({ top: window.scrollY, focus: document.activeElement.id })";
  await page.focus(`#open-last-${ids[0]}`);
  await page.evaluate("window.scrollTo(0, 700)");
  const before = await page.evaluate<{ top: number; focus: string }>(scrolled);
  expect(before).toEqual({ top: expect.any(Number), focus: `open-last-${ids[0]}` });
  expect(before.top).toBeGreaterThan(100);
  await page.evaluate("window.before = document.querySelector('#last')");
  receiver.answer = () => new Response();
  await program.json(["webhook", "test", "--topic", "order.recovered"]);
  await page.locator("#news").waitFor();
  expect(await page.evaluate<boolean>("window.before.isConnected")).toBe(false);
  expect(await page.evaluate<unknown>(scrolled)).toEqual(before);

  // Selected text stays selected, because the page updates only after the selection has ended.
  const selected = `#last-${ids[0]} .corner`;
  await page.evaluate(`getSelection().selectAllChildren(document.querySelector('${selected}'))`);
  const text = await page.evaluate<string>("getSelection().toString()");
  await program.json(["webhook", "test", "--topic", "order.charged"]);
  const asked = () => page.waitForResponse((response) => response.request().headers()["x-part"] === "live");
  await asked();
  await asked();
  expect(await page.evaluate<string>("getSelection().toString()")).toBe(text);
  expect(await page.textContent("#news")).toBe("1 new");
  await page.evaluate("getSelection().empty()");
  await page.locator("#news", { hasText: "2 new" }).waitFor();

  // When the next attempt appears, the earlier attempts stay open or closed as the visitor left them.
  const release = receiver.hold();
  await program.json(["delivery", "retry", ids[0] ?? ""]);
  await goto(`/admin/deliveries/${ids[0]}`);
  await page.locator("#on-its-way").waitFor();
  await page.click("#attempt-1 summary");
  await page.click("#attempt-2 summary");
  release();
  await page.locator("#attempt-3").waitFor();
  expect(await page.locator("#attempt-1 pre").isVisible()).toBe(true);
  expect(await page.locator("#attempt-2 pre").isVisible()).toBe(false);
  expect(await page.locator("#attempt-3 p").first().isVisible()).toBe(true);
  expect(troubles).toEqual([]);
});

import { expect, test } from "bun:test";
import type { FrameLocator, Page } from "playwright-core";
import { eventually } from "../support/eventually.ts";
import { subscription } from "../support/records.ts";
import { type Settings, settingsPages } from "../support/settings-page.ts";

const open = settingsPages();
const CONTRACT = subscription(1).shopifyId;

async function importContract({ program }: Pick<Settings, "program">): Promise<void> {
  await program.json(["import", "-"], { stdin: JSON.stringify(subscription(1)) });
}

/** Fills the form of a new field. */
async function addField(page: Page, key: string, label: string, type: string, options = ""): Promise<void> {
  await page.fill("#key", key);
  await page.fill("#label", label);
  await page.selectOption("#type", type);
  await page.fill("#options", options);
  await page.click("#save-field");
}

test.each([true, false])(
  "five fields are defined, and values of a subscription edited; script: %p",
  async (javaScriptEnabled) => {
    const { page, program, troubles } = await open({
      prepare: (program) => importContract({ program }),
      browser: { javaScriptEnabled },
    });
    await page.getByRole("link", { name: "Storefront" }).click();
    await page.locator("#no-fields").waitFor();
    await addField(page, "note", "Gift note", "text");
    await addField(page, "Weight", "Weight", "number");
    expect(await page.textContent("#field-error")).toContain("The key must be");
    expect([await page.inputValue("#key"), await page.inputValue("#type")]).toEqual(["Weight", "number"]);
    await addField(page, "weight", "Weight", "number");
    await addField(page, "gift", "Is a gift", "boolean");
    await addField(page, "until", "Until", "date");
    await addField(page, "size", "Size", "choice", "10\n2\n");
    expect(await page.textContent("#notices")).toBe("The field Size is added.");
    expect(await page.locator("#fields tbody tr").count()).toBe(5);

    await page.fill("#subscription", "9");
    await page.click("#find");
    expect(await page.textContent("#subscription-error")).toBe("There is no subscription 9.");
    await page.fill("#subscription", CONTRACT);
    await page.click("#find");
    expect(await page.textContent("#gid")).toBe(CONTRACT);
    await page.getByLabel("Gift note").fill("Enjoy!\nSee you");
    await page.getByLabel("Weight").fill("heavy");
    await page.getByLabel("Is a gift").selectOption("No");
    await page.getByLabel("Until").fill("2026-12-24");
    await page.getByLabel("Size").selectOption("2");
    await page.click("#save-values");
    expect(await page.textContent("#value-weight-error")).toBe("The value of weight must be a number.");
    expect(await page.getByLabel("Weight").inputValue()).toBe("heavy");
    expect(await page.getByLabel("Gift note").inputValue()).toBe("Enjoy!\nSee you");
    await page.getByLabel("Weight").fill("1.5");
    await page.click("#save-values");
    expect(await page.textContent("#notices")).toBe("Saved.");
    const stored = async (key: string) =>
      (await program.json<{ value: unknown }>(["field", "value", CONTRACT, key])).value;
    expect(await Promise.all(["note", "weight", "gift", "until", "size"].map(stored))).toEqual([
      "Enjoy!\nSee you",
      1.5,
      false,
      "2026-12-24",
      "2",
    ]);
    // The browser posts unchanged values as the page showed them, so saving changes nothing.
    await page.click("#save-values");
    expect(await page.textContent("#notices")).toBe("Nothing was changed.");
    await page.getByLabel("Size").selectOption("None");
    await page.click("#save-values");
    expect(await stored("size")).toBeNull();

    await page.getByRole("link", { name: "Storefront" }).click();
    await page.getByRole("link", { name: "Edit Size" }).click();
    await page.getByLabel("Label").fill("Box");
    await page.getByLabel("Subscribers may edit the value").check();
    await page.click("#save-field");
    expect(await page.textContent("#field-size")).toContain("you and subscribers");
    await page.getByRole("button", { name: "Archive Box" }).click();
    await page.getByRole("button", { name: "Bring back Box" }).click();
    expect(await page.textContent("#field-size th")).toBe("Box");
    expect(troubles).toEqual([]);
  },
);

/** Returns the computed colour of an element in the frame. The frame's document may not run scripts. */
async function colorIn(frame: FrameLocator, selector: string): Promise<string> {
  return frame.locator(selector).evaluate((element) => {
    const view = element.ownerDocument.defaultView;
    return view === null ? "" : view.getComputedStyle(element).color;
  });
}

test.each([true, false])("a style is previewed, saved, refused and removed; script: %p", async (javaScriptEnabled) => {
  const { page, url, program, troubles, goto } = await open({ browser: { javaScriptEnabled } });
  await goto("/admin/style");
  const frame = page.frameLocator("iframe.preview");
  const before = await colorIn(frame, ".button");
  const source = page.getByLabel("CSS");
  await source.fill(":root .button { color: rgb(1, 2, 3) }\nbody p { color: rgb(4, 5, 6) }\n");
  await page.getByRole("button", { name: "Preview" }).click();
  await frame.locator(".button").waitFor();
  await expectColor(frame, ".button", "rgb(1, 2, 3)");
  expect(await colorIn(frame, ".next")).toBe("rgb(4, 5, 6)");
  // Paragraphs outside the widget stay as they are.
  expect([await colorIn(frame, "#before"), await colorIn(frame, "#after")]).toEqual([
    "rgb(34, 34, 34)",
    "rgb(34, 34, 34)",
  ]);
  expect(page.url()).toBe(`${url}/admin/style`);
  expect(await program.json<unknown>(["style", "show"])).toEqual({ bytes: 0, source: "" });

  await page.click("#save-style");
  expect(await page.textContent("#notices")).toBe("Saved. Visitors may see the former style for up to a day.");
  await expectColor(frame, ".button", "rgb(1, 2, 3)");
  const address = (await page.textContent("#address")) ?? "";
  expect(await (await fetch(new URL(address, url))).text()).toContain("color:rgb(1,2,3)");

  const attack = ".button { color: red }\n  @import 'https://evil.example/x.css';";
  await source.fill(attack);
  await page.getByRole("button", { name: "Preview" }).click();
  await frame.locator("#refused", { hasText: "Line 2, column 3: The rule @import is not allowed" }).waitFor();
  await page.click("#save-style");
  expect(await page.textContent("#source-error")).toContain("Line 2, column 3: The rule @import is not allowed");
  expect(await source.inputValue()).toBe(attack);
  await expectColor(frame, ".button", "rgb(1, 2, 3)");

  await page.click("#clear");
  await page.click("#confirm");
  expect(await page.textContent("#notices")).toBe("The style is removed.");
  expect(await source.inputValue()).toBe("");
  await expectColor(frame, ".button", before);
  expect(troubles).toEqual([]);
});

async function expectColor(frame: FrameLocator, selector: string, color: string): Promise<void> {
  await eventually(async () => (await colorIn(frame, selector)) === color);
}

test("the frame runs no script, sends no request and has no origin, even with CSS that nobody scoped", async () => {
  const { page, url, troubles, goto } = await open();
  await goto("/admin/style");
  const frame = page.frameLocator("iframe.preview");
  await frame.locator(".button").waitFor();
  const inner = page.frames().find((each) => each.name() === "preview");
  expect(await inner?.evaluate<string>("window.origin")).toBe("null");
  await inner?.evaluate(`(() => {
    const add = (tag, attributes) => document.head.append(Object.assign(document.createElement(tag), attributes));
    add("link", { rel: "stylesheet", href: "data:text/css,body{background:url(${url}/healthz?css)}" });
    add("link", { rel: "stylesheet", href: "${url}/assets/page.css?frame" });
    add("style", { textContent: "body { color: rgb(9, 9, 9) }" });
    document.body.insertAdjacentHTML("beforeend", '<img src="${url}/healthz?img">');
  })()`);
  await page.waitForTimeout(300);
  expect(await colorIn(frame, "#before")).toBe("rgb(34, 34, 34)");
  expect(troubles.filter((text) => text.includes("Content Security Policy"))).toHaveLength(4);
  expect(troubles).toHaveLength(4);
});

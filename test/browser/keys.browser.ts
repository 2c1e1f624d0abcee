import { expect, test } from "bun:test";
import { DOMAIN, settingsPages } from "../support/settings-page.ts";

const open = settingsPages();

test("a sign-in link opens the settings of its shop and works once, and signing out ends the session", async () => {
  const { page, url, program, troubles, goto } = await open();
  expect(await page.textContent("h1")).toBe("API keys");
  expect(await page.textContent("#shop")).toBe(DOMAIN);
  expect(await page.textContent("#no-keys")).toStartWith("There is no key yet. Create one above");

  const { url: link } = await program.json<{ url: string }>(["admin", "link"]);
  await page.goto(link);
  await page.click("#open");
  await page.waitForURL(`${url}/admin/overview`);
  await page.goto(link);
  await page.click("#open");
  expect(await page.textContent("h1")).toBe("This link doesn't work");
  await goto("/admin");
  await page.waitForURL(`${url}/admin/overview`);

  for (const name of ["Deliveries", "Webhooks", "Data", "API keys"]) {
    await page.getByRole("navigation", { name: "Sections" }).getByRole("link", { name }).click();
    expect(await page.textContent("h1")).toBe(name);
    expect(await page.textContent("nav [aria-current]")).toBe(name);
  }

  await page.getByRole("button", { name: "Sign out" }).click();
  expect(await page.textContent("h1")).toBe("You are signed out");
  await page.goBack();
  await page.getByRole("heading", { name: "You are not signed in" }).waitFor();
  await goto("/admin/deliveries");
  expect(await page.textContent("h1")).toBe("You are not signed in");
  expect(troubles).toEqual([]);
});

test("a new key is shown once, can be copied, and opens the API until it is revoked", async () => {
  const { page, url, troubles } = await open();
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  const read = async (key: string) =>
    (await fetch(`${url}/api/v1/orders`, { headers: { Authorization: `Bearer ${key}` } })).status;

  await page.getByLabel("Label").fill("Warehouse");
  await page.getByRole("button", { name: "Create key" }).click();
  const notice = page.locator("#notices");
  expect(await notice.textContent()).toContain("This is the new key Warehouse:");
  expect(await notice.textContent()).toContain("It won't be shown again.");
  const key = (await page.textContent("#new-secret")) ?? "";
  expect(key).toMatch(/^cad_pk_[0-9a-f]{48}$/);
  const copy = page.getByRole("button", { name: "Copy the new key" });
  await copy.click();
  await page.locator("#said", { hasText: "Copied" }).waitFor({ state: "attached" });
  expect(await copy.textContent()).toBe("Copied");
  expect(await page.evaluate<string>("navigator.clipboard.readText()")).toBe(key);

  expect(await read(key)).toBe(200);
  const command = (await page.textContent("#new-key-command")) ?? "";
  const curl = Bun.spawn(["sh", "-c", command], { stdout: "pipe", stderr: "ignore" });
  expect(await new Response(curl.stdout).json()).toMatchObject({ data: [] });
  expect(await page.textContent("#api-address")).toBe(`${url}/api/v1`);
  await page.getByRole("button", { name: "Copy the command" }).click();
  expect(await page.evaluate<string>("navigator.clipboard.readText()")).toBe(command);
  await page.reload();
  expect(await page.content()).not.toContain(key);
  const row = page.getByRole("row", { name: /^Warehouse/ });
  expect(await row.textContent()).toContain(`${key.slice(0, 15)}…`);
  // The times when the key was created and last used.
  expect(await row.locator("time").count()).toBe(2);

  await row.getByRole("link", { name: "Revoke Warehouse" }).click();
  expect(await page.textContent("main form")).toContain(`Revoke the key Warehouse (${key.slice(0, 15)}…)?`);
  await page.getByRole("link", { name: "Cancel" }).click();
  expect(await read(key)).toBe(200);
  await page.getByRole("link", { name: "Revoke Warehouse" }).click();
  await page.getByRole("button", { name: "Revoke the key" }).click();
  expect(await page.textContent("#notices")).toContain("The key Warehouse");
  expect(await read(key)).toBe(401);
  await page.locator("#no-keys").waitFor();
  expect(troubles).toEqual([]);
});

test("a label that another key has is asked about, and both keys are listed with who made them", async () => {
  const { page, troubles } = await open({
    prepare: (program) => program.json(["key", "create", "--label", "Warehouse"]),
  });
  await page.fill("#label", "Warehouse");
  await page.click("#create");
  expect(await page.textContent("h1")).toBe("Create a second key with this label");
  await page.click("#cancel");
  expect(await page.locator("#keys tbody tr").count()).toBe(1);
  await page.fill("#label", "Warehouse");
  await page.click("#create");
  await page.click("#confirm");
  await page.locator("#new-secret").waitFor();
  expect(await page.locator("#keys [data-label='Made by']").allTextContents()).toEqual([
    "command line",
    expect.stringMatching(/^session [0-9a-f]{6}$/),
  ]);
  expect(troubles).toEqual([]);
});

test("on a phone each key is a card", async () => {
  const { page, troubles } = await open({
    prepare: (program) => program.json(["key", "create", "--label", "Warehouse"]),
    browser: { viewport: { width: 390, height: 844 } },
  });
  const row = page.getByRole("row", { name: /^Warehouse/ });
  expect((await row.boundingBox())?.width).toBeLessThan(390);
  expect(await page.evaluate<boolean>("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
  await row.getByRole("link", { name: "Revoke Warehouse" }).click();
  await page.locator("#confirm").waitFor();
  expect(troubles).toEqual([]);
});

test("a blank label is refused at its field, and the page asks to rotate a legacy key", async () => {
  const legacy = `cad_pk_${"ab".repeat(24)}`;
  const { page, troubles } = await open({
    prepare: (program) => program.run(["key", "import", "--label", "Old CRM", "--legacy"], { stdin: legacy }),
  });
  expect(await page.textContent("#keys .badge")).toBe("Legacy, rotate");
  expect(await page.textContent("#legacy-hint")).toContain("Rotate it soon");
  await page.fill("#label", "  ");
  await page.press("#label", "Enter");
  await page.locator("#label-error").waitFor();
  expect(await page.inputValue("#label")).toBe("  ");
  expect(await page.getAttribute("#label", "aria-invalid")).toBe("true");
  expect(await page.getAttribute("#label", "aria-describedby")).toStartWith("label-error");
  expect(troubles).toEqual([]);
});

test("times are in the viewer's time zone, with the exact time in UTC as title", async () => {
  const timezoneId = "America/Chicago";
  const { page } = await open({
    prepare: (program) => program.json(["key", "create", "--label", "Warehouse"]),
    browser: { timezoneId },
  });
  const time = page.locator("#keys time");
  const exact = (await time.getAttribute("datetime")) ?? "";
  const local = new Intl.DateTimeFormat("en-US", {
    dateStyle: "medium",
    timeStyle: "short",
    timeZone: timezoneId,
  }).format(new Date(exact));
  expect((await time.textContent())?.replaceAll(/\s/g, " ")).toBe(local.replaceAll(/\s/g, " "));
  expect(await time.getAttribute("title")).toBe(`${exact.slice(0, 10)} ${exact.slice(11, 23)} UTC`);
});

import { expect, test } from "bun:test";
import { afterTest } from "../support/cleanup.ts";
import { settingsPages } from "../support/settings-page.ts";

const open = settingsPages();

/**
 * Serves a page on a port of its own. To a browser, localhost is another site than 127.0.0.1. Another port of 127.0.0.1
 * is another origin of the same site.
 * @returns the page's URL
 */
function pageOf(host: "localhost" | "127.0.0.1", html: string): string {
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: () => new Response(html, { headers: { "Content-Type": "text/html" } }),
  });
  afterTest(() => server.stop(true));
  return `http://${host}:${server.port}/`;
}

test("a sign-in link works from a page of another site, such as a mail", async () => {
  const { page, url, program } = await open();
  await page.context().clearCookies();
  const { url: link } = await program.json<{ url: string }>(["admin", "link"]);
  await page.goto(pageOf("localhost", `<a href="${link}">Settings</a>`));
  await page.click("a");
  await page.click("#open");
  await page.waitForURL(`${url}/admin/overview`);
  expect(await page.textContent("h1")).toBe("Overview");
  const [cookie] = await page.context().cookies();
  expect(cookie).toMatchObject({ name: "sds_session", httpOnly: true, sameSite: "Strict", path: "/admin" });
});

test.each([
  // The settings page is on 127.0.0.1 too. This is the same site, so the browser sends the cookie.
  ["127.0.0.1", "This form was refused"],
  ["localhost", "You are not signed in"],
] as const)("a form on a page of %s is refused", async (host, title) => {
  const { page, url, program, goto } = await open();
  const csrf = await page.inputValue("#create-key input[name=csrf]");
  const form = `<form method="post" action="${url}/admin/keys"><input name="csrf" value="${csrf}"><input name="label" value="Theirs"><button>Win</button></form>`;
  await page.goto(pageOf(host, form));
  await page.click("button");
  await page.getByRole("heading", { name: title }).waitFor();
  expect(await program.json<object[]>(["key", "list"])).toEqual([]);
  await goto("/admin/keys");
  expect(await page.textContent("h1")).toBe("API keys");
});

test("the settings page cannot be shown in a frame of another page", async () => {
  const { page, url, troubles } = await open();
  await page.goto(pageOf("127.0.0.1", `<iframe src="${url}/admin/keys"></iframe>`));
  expect(await page.frameLocator("iframe").locator("#create-key").count()).toBe(0);
  expect(troubles.join()).toContain("frame-ancestors 'none'");
});

test("a form of an ended session is refused, also in a new session", async () => {
  const { page, program } = await open();
  const csrf = await page.inputValue("#create-key input[name=csrf]");
  await program.json(["admin", "sign-out"]);
  await page.fill("#label", "Late");
  await page.click("#create");
  await page.getByRole("heading", { name: "You are not signed in" }).waitFor();
  const { url: link } = await program.json<{ url: string }>(["admin", "link"]);
  await page.goto(link);
  await page.click("#open");
  await page.waitForURL("**/admin/overview");
  await page.getByRole("link", { name: "API keys" }).click();
  await page.evaluate(`document.querySelector("#create-key input[name=csrf]").value = ${JSON.stringify(csrf)}`);
  await page.fill("#label", "Replayed");
  await page.click("#create");
  await page.getByRole("heading", { name: "This form was refused" }).waitFor();
  expect(await program.json<object[]>(["key", "list"])).toEqual([]);
});
